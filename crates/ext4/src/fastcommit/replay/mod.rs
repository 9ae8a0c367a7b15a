//! The changes that fast commits record, replayed in one transaction.
//!
//! They are taken in order, each over what the ones before it have left. What is recorded of an
//! inode in one fast commit is its state when that was written, but the parts of it come in an
//! order that suits a kernel; so an inode's own record is taken when it is first spoken of.
//!
//! * A record holds everything of an inode but where its blocks are, and, for a directory, its
//!   entries. Another generation or type than what is there means that the number has been
//!   given to another inode: what the old one had is free.
//! * Names are added and removed as if by the operations themselves; a name that is already as it
//!   should be is left alone. The directory's times become those of the inode, if they are later.
//! * An inode after its final unlink is an orphan at the end, as after the operation itself: the
//!   next mount deletes it. So is a file with data beyond its end: the next mount cuts it.
//!
//! What kernels get wrong in this (counts of links of directories, targets of symbolic links, an
//! unnamed inode that is given a name) is made right.

mod names;
mod records;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use steadfast_ext4_format::extents::Lookup;
use steadfast_ext4_format::indirect::has_extents;
use steadfast_ext4_format::ondisk::{Extent, InodeNo, RawInode, RoCompat};
use steadfast_ext4_format::{Ext4Error, Result, unsupported};
use steadfast_journal::FastTag;
use steadfast_vfs::FileType;

use crate::extents::{add_blocks, find_extent, map_extent, next_extent, remove_from_map};
use crate::fastcommit::space::{claim_blocks, disclaim_blocks, sum_up_free};
use crate::fastcommit::tags::{Change, decode};
use crate::meta::{Parts, Txn};
use crate::state::NameChange;

/// Makes the changes in a volume that is only staged.
///
/// # Errors
/// Corrupt: the fast commits or what they change make no sense. Unsupported: by name.
pub(super) fn replay(parts: &Parts, commits: &[Vec<FastTag>]) -> Result<()> {
    if parts.volume.layout.features.ro_compat.contains(RoCompat::BIGALLOC) {
        return unsupported(
            "replaying fast commits of a file system with bigalloc: let e2fsck do it",
        );
    }
    let size = usize::from(parts.volume.layout.inode_size);
    let mut decoded = Vec::with_capacity(commits.len());
    for commit in commits {
        let changes: Result<Vec<Change>> = commit.iter().map(|tag| decode(tag, size)).collect();
        decoded.push(changes?);
    }
    // What belongs to files is not for nodes of trees and directories.
    for change in decoded.iter().flatten() {
        if let Change::Mapped { extent, .. } = change {
            let end = extent.start.saturating_add(extent.len.into());
            parts.lock_meta().alloc.busy.insert(extent.start, end);
        }
    }
    let mut txn = parts.look();
    txn.quota_promised = true;
    let mut replay = Replay { txn, records: BTreeMap::new(), touched: BTreeSet::new() };
    for commit in &decoded {
        replay.commit(commit)?;
    }
    replay.end()
}

struct Replay<'v> {
    txn: Txn<'v>,
    /// Inodes of which this fast commit holds a record that has not been taken yet.
    records: BTreeMap<InodeNo, Bytes>,
    touched: BTreeSet<InodeNo>,
}

impl<'v> Replay<'v> {
    fn commit(&mut self, changes: &[Change]) -> Result<()> {
        self.records = changes
            .iter()
            .filter_map(|change| match change {
                Change::Inode { no, raw } => Some((*no, raw.clone())),
                _ => None,
            })
            .collect();
        for change in changes {
            match change {
                Change::Inode { no, raw } => self.take_record(*no, raw)?,
                Change::Mapped { no, extent } => self.map(*no, *extent)?,
                Change::Unmapped { no, from, to } => self.unmap(*no, *from, *to)?,
                Change::Name { what, dir, no, name } => match what {
                    NameChange::Unlinked => self.remove_name(*dir, *no, name)?,
                    NameChange::Linked => self.add_name(*dir, *no, name, false)?,
                    NameChange::Created => self.add_name(*dir, *no, name, true)?,
                },
            }
        }
        Ok(())
    }

    fn map(&mut self, no: InodeNo, extent: Extent) -> Result<()> {
        let Some(raw) = self.recorded(no)? else { return Ok(()) };
        if raw.file_type() == Some(FileType::Directory) || !raw.is_mapped() {
            let what = "a range of blocks for an inode that has none";
            return Err(Ext4Error::corrupt(what, format!("fast commit, inode {no}")));
        }
        self.touched.insert(no);
        if find_extent(&self.txn, no, extent.logical)? == Lookup::Mapped(extent) {
            return claim_blocks(&mut self.txn, extent.start, extent.len.into());
        }
        self.unmap_blocks(no, extent.logical.into(), extent.end())?;
        claim_blocks(&mut self.txn, extent.start, extent.len.into())?;
        // No clusters here: file systems that have them are refused.
        map_extent(&mut self.txn, no, extent, extent.len)
    }

    fn unmap(&mut self, no: InodeNo, from: u64, to: u64) -> Result<()> {
        let Some(raw) = self.recorded(no)? else { return Ok(()) };
        if raw.file_type() == Some(FileType::Directory) || !raw.is_mapped() {
            return Ok(());
        }
        self.touched.insert(no);
        self.unmap_blocks(no, from, to)
    }

    fn unmap_blocks(&mut self, no: InodeNo, from: u64, to: u64) -> Result<()> {
        let txn = &mut self.txn;
        for e in remove_from_map(txn, no, from, to)? {
            disclaim_blocks(txn, e.start, e.len.into())?;
            add_blocks(txn, no, -i64::from(e.len))?;
        }
        Ok(())
    }

    /// What follows from all of it.
    fn end(mut self) -> Result<()> {
        for no in std::mem::take(&mut self.touched) {
            let Some(raw) = self.present(no)? else { continue };
            let beyond = raw.is_mapped() && self.claim_all(no, &raw)?;
            if raw.links() == 0 || beyond {
                self.txn.orphans.add(&mut self.txn, no)?;
            }
        }
        sum_up_free(&mut self.txn);
        self.txn.finish().map(drop)
    }

    /// Claims the inode's blocks. Whether a regular file has data beyond its end.
    fn claim_all(&mut self, no: InodeNo, raw: &RawInode) -> Result<bool> {
        let end = raw.size().div_ceil(self.txn.volume.block_size());
        let (mut at, mut beyond) = (0, false);
        while let Some(e) = next_extent(&self.txn, no, at)? {
            claim_blocks(&mut self.txn, e.start, e.len.into())?;
            at = e.end();
            beyond |= !e.unwritten && at > end;
        }
        Ok(beyond && raw.file_type() == Some(FileType::Regular))
    }
}

/// Whether `i_block` is the root of a tree of extents.
fn keeps_tree(raw: &RawInode) -> bool {
    has_extents(raw) && !raw.is_inline()
}

fn unsupported_attributes(no: InodeNo) -> Ext4Error {
    let what = format!("fast commits that change the attributes of an inode ({no})");
    Ext4Error::Unsupported { what }
}
