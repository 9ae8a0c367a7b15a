//! Small files in their inodes (`inline_data`).
//!
//! A write that fits goes into the inode in one transaction and needs no block; the page cache
//! only holds clean copies. The first that does not fit moves the contents out, to a block that
//! is down before the transaction that maps it commits.

use bytes::Bytes;
use steadfast_block::Completion;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{Incompat, InodeFlags, RawInode};
use steadfast_vfs::FileType;

use super::pieces::PieceSource;
use super::place::place_run;
use super::times::touch_within;
use crate::alloc::Purpose;
use crate::mounted::{Ext4, key};
use crate::planted::Bug;
use crate::state::Inode;

/// Files of these kinds never have their contents in the inode.
const NEVER_INLINE: InodeFlags = InodeFlags::ENCRYPTED.union(InodeFlags::VERITY);

/// The contents of an inline file as far as they are kept; `None` if it is none.
pub(crate) fn inline_contents(inode: &Inode) -> Result<Option<Bytes>> {
    let state = inode.state();
    if !state.raw.is_inline() {
        return Ok(None);
    }
    let mut contents = state.raw.inline_contents(inode.no)?;
    contents.truncate(usize::try_from(state.raw.size()).unwrap_or(usize::MAX));
    Ok(Some(contents.into()))
}

/// Most bytes that the inode may hold of this file; `None` if they go to blocks: the file is
/// not inline and cannot become so.
fn inline_limit(fs: &Ext4, inode: &Inode) -> Option<u64> {
    let state = inode.state();
    let raw = &state.raw;
    let feature = fs.volume.layout.features.incompat.contains(Incompat::INLINE_DATA);
    let may_become = feature
        && raw.file_type() == Some(FileType::Regular)
        && state.size == 0
        && raw.size() == 0
        && state.delayed.is_empty()
        && raw.maps_nothing()
        && !raw.flags().intersects(NEVER_INLINE);
    if !raw.is_inline() && !may_become {
        return None;
    }
    raw.inline_room().map(|room| room as u64)
}

/// Writes into the inode if what there is then fits; else the file has no contents in the
/// inode afterwards. Says whether it wrote. The caller has the exclusive lock.
pub(crate) fn write_inline(fs: &Ext4, inode: &Inode, offset: u64, data: &Bytes) -> Result<bool> {
    let end = offset + data.len() as u64;
    if inline_limit(fs, inode).is_none_or(|limit| end > limit) {
        move_out_of_inode(fs, inode)?;
        return Ok(false);
    }
    let mut txn = fs.parts.begin()?;
    let edit = txn.edit_inode(inode.no)?;
    let mut contents = kept(&edit.raw, inode)?;
    contents.resize(contents.len().max(end as usize), 0);
    contents[offset as usize..end as usize].copy_from_slice(data);
    edit.raw.set_inline_contents(&contents);
    edit.raw.set_size(edit.raw.size().max(end));
    edit.data_changed = true;
    touch_within(fs, &mut txn, inode)?;
    txn.finish()?;
    let mut state = inode.state();
    state.size = state.size.max(end);
    drop(state);
    fs.pages.insert_clean(key(inode.no), offset, data.clone());
    Ok(true)
}

/// Changes the size of an inline file. Says whether it did: if not, the contents are in
/// blocks now. The caller has the exclusive lock.
pub(crate) fn truncate_inline(fs: &Ext4, inode: &Inode, new_size: u64) -> Result<bool> {
    if !inode.state().raw.is_inline() {
        return Ok(false);
    }
    if inline_limit(fs, inode).is_none_or(|limit| new_size > limit) {
        move_out_of_inode(fs, inode)?;
        return Ok(false);
    }
    let mut txn = fs.parts.begin()?;
    let edit = txn.edit_inode(inode.no)?;
    let mut contents = kept(&edit.raw, inode)?;
    // OK to cast: the limit is below an inode's size.
    contents.resize(new_size as usize, 0);
    edit.raw.set_inline_contents(&contents);
    edit.raw.set_size(new_size);
    edit.data_changed = true;
    txn.touch(inode.no, true)?;
    txn.finish()?;
    inode.state().size = new_size;
    fs.pages.invalidate(key(inode.no), 0..u64::MAX);
    Ok(true)
}

/// Moves the contents of an inline file to a block, in one transaction; does nothing to any
/// other. The caller has the exclusive lock.
///
/// # Errors
/// No space: the file is as it was.
pub(crate) fn move_out_of_inode(fs: &Ext4, inode: &Inode) -> Result<()> {
    if !inode.state().raw.is_inline() {
        return Ok(());
    }
    let block = fs.volume.block_size();
    let extents = fs.volume.layout.features.incompat.contains(Incompat::EXTENT);
    let mut txn = fs.parts.begin()?;
    let edit = txn.edit_inode(inode.no)?;
    let contents = kept(&edit.raw, inode)?;
    edit.raw.leave_inline(extents);
    edit.data_changed = true;
    let mut write = None;
    if !contents.is_empty() {
        // An inode is no longer than a block.
        place_run(fs, &mut txn, inode, 0, 1, Purpose::Data, false)?;
        for piece in fs.parts.pieces(inode, 0, block, Some(&txn))? {
            let PieceSource::Device(offset) = piece.place else { continue };
            let mut whole = contents.clone();
            whole.resize(block as usize, 0);
            let data = Bytes::from(whole);
            if fs.journals_data(inode) {
                txn.create_data(offset / block, 1, |_| data.clone());
            } else {
                // In every mode: what was safe in the inode is not given up for a place that
                // a power cut may leave empty.
                let (completer, promise) = Completion::pending();
                if !fs.volume.has(Bug::InlineContentsNotWaitedFor) {
                    txn.wait_for(promise);
                }
                write = Some((completer, offset, data));
            }
        }
    }
    txn.finish()?;
    if let Some((completer, offset, data)) = write {
        let write = fs.parts.submit_data(inode, offset, data.into());
        super::gather::when_all(std::slice::from_ref(&write), completer);
        // Until it has arrived, the block must not be read.
        write.wait()?;
    }
    Ok(())
}

/// What an inline file holds, no more than its size says; nothing of a file that is to become one.
fn kept(raw: &RawInode, inode: &Inode) -> Result<Vec<u8>> {
    if !raw.is_inline() {
        return Ok(Vec::new());
    }
    let mut contents = raw.inline_contents(inode.no)?;
    contents.truncate(usize::try_from(raw.size()).unwrap_or(usize::MAX));
    Ok(contents)
}
