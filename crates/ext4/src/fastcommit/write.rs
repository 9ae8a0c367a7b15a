//! Making a fast commit of what the running transaction has done.

use std::sync::Arc;

use steadfast_ext4_format::extents::Lookup;
use steadfast_ext4_format::ondisk::{Extent, ExtentLeaf, InodeNo, MAX_UNWRITTEN_LEN, RawInode};
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_journal::{FastTag, Journal, Tid};
use zerocopy::IntoBytes;

use super::tags::{ADD_RANGE, CREATE, INODE, LINK, UNLINK};
use crate::extents::find_extent;
use crate::meta::Txn;
use crate::mounted::Ext4;
use crate::planted::Bug;
use crate::state::{Inode, NameChange, Pending, is_eligible};

/// Most tags of a fast commit: one with more is hardly faster than a full one.
const TAGS_MAX: usize = 400;

/// Makes what the running transaction `tid` has done so far durable by a fast commit. False if
/// it must be committed in full.
///
/// # Errors
/// Of the journal, which is no more then.
pub(crate) fn fast_commit(fs: &Ext4, journal: &Journal, tid: Tid) -> Result<bool> {
    let Some(track) = &fs.parts.fast else { return Ok(false) };
    let _one = track.one.lock();
    let (tags, files) = {
        // Under the metadata lock: nothing is half done.
        let txn = fs.parts.look();
        let Some(pending) = track.take(tid) else { return Ok(false) };
        let nothing = pending.names.is_empty() && pending.inodes.is_empty();
        if nothing && pending.begun {
            return Ok(true);
        }
        match tags(&txn, &pending) {
            Ok(Some(tags)) => (tags, files_of(&txn, &pending)),
            Ok(None) => {
                track.mark_ineligible(tid);
                return Ok(false);
            }
            Err(e) => {
                track.mark_ineligible(tid);
                return Err(e);
            }
        }
    };
    let done = journal.fast_commit(tid, &tags);
    match &done {
        Ok(true) => track.committed(tid),
        _ => {
            // What was taken is known to nobody any more.
            track.mark_ineligible(tid);
            files.iter().for_each(|inode| inode.state().data_in = Some(tid));
        }
    }
    Ok(done?)
}

/// The files whose data a fast commit is to hold. What one of them does from now on is in the next.
fn files_of(txn: &Txn<'_>, pending: &Pending) -> Vec<Arc<Inode>> {
    // OK to ignore: what was read for the tags is in memory.
    let inodes = pending.inodes.keys().filter_map(|no| txn.inode(*no).ok());
    let had_data = |inode: &Arc<Inode>| inode.state().data_in.take().is_some();
    inodes.filter(had_data).collect()
}

/// What is to be recorded; `None` if an inode has become one that cannot be, or it is too much.
fn tags(txn: &Txn<'_>, pending: &Pending) -> Result<Option<Vec<FastTag>>> {
    let mut out = Vec::new();
    for named in &pending.names {
        let what = match named.what {
            NameChange::Created => {
                // The inode comes first, so that there is something to be named.
                let Some(raw) = whole(txn, named.no)? else { return Ok(None) };
                out.push(inode(named.no, &raw));
                if let Some(ranges) = pending.inodes.get(&named.no)
                    && !push_ranges(txn, named.no, ranges, &mut out)?
                {
                    return Ok(None);
                }
                CREATE
            }
            NameChange::Linked => LINK,
            NameChange::Unlinked if txn.volume().has(Bug::FastCommitWithoutOldName) => continue,
            NameChange::Unlinked => UNLINK,
        };
        let mut value = [named.dir.0.to_le_bytes(), named.no.0.to_le_bytes()].concat();
        value.extend_from_slice(&named.name);
        out.push(FastTag { tag: what, value: value.into() });
    }
    for (no, ranges) in &pending.inodes {
        let Some(raw) = whole(txn, *no)? else { return Ok(None) };
        if !push_ranges(txn, *no, ranges, &mut out)? {
            return Ok(None);
        }
        out.push(inode(*no, &raw));
        if out.len() > TAGS_MAX {
            return Ok(None);
        }
    }
    Ok(Some(out))
}

/// The inode as it is, with its checksum, if it can be recorded.
fn whole(txn: &Txn<'_>, no: InodeNo) -> Result<Option<RawInode>> {
    let mut raw = txn.raw_inode(no)?;
    txn.volume().layout.checksums.set_inode(no, &mut raw);
    Ok(is_eligible(&raw).then_some(raw))
}

/// All of the inode's bytes: also those behind its fields, where the number's last owner may have
/// had attributes.
fn inode(no: InodeNo, raw: &RawInode) -> FastTag {
    let value = [&no.0.to_le_bytes()[..], raw.as_bytes()].concat();
    FastTag { tag: INODE, value: value.into() }
}

/// What is mapped in these file blocks. False if a part of them is a hole: what takes blocks from a
/// file makes its transaction one that cannot be recorded ([`Txn::take_recorded`]), so the kernel's
/// tag for a hole (`EXT4_FC_TAG_DEL_RANGE`) is only read here, never written.
fn push_ranges(
    txn: &Txn<'_>,
    no: InodeNo,
    ranges: &RangeSet,
    out: &mut Vec<FastTag>,
) -> Result<bool> {
    for (mut at, to) in ranges.iter() {
        while at < to {
            // OK to cast: files end below 2^32 blocks.
            let logical = at as u32;
            let Lookup::Mapped(e) = find_extent(txn, no, logical)? else { return Ok(false) };
            let len = (e.end().min(to) - at).min(MAX_UNWRITTEN_LEN.into()) as u32;
            let start = e.start + u64::from(logical - e.logical);
            let part = Extent { logical, len, start, unwritten: e.unwritten };
            let leaf = ExtentLeaf::from(part);
            let value = [&no.0.to_le_bytes()[..], leaf.as_bytes()].concat();
            out.push(FastTag { tag: ADD_RANGE, value: value.into() });
            at += u64::from(len);
        }
    }
    Ok(true)
}
