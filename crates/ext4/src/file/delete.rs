//! The end of an inode without links.

use std::sync::Arc;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{Incompat, InodeFlags, RawInode};

use super::reserve::unreserve;
use super::truncate::free_blocks_from;
use crate::inode::delete_inode;
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::state::{Deletion, Inode, Life};
use crate::xattr::{UnusedInodes, release_xattrs};

/// Deletes a file in the transaction of its final unlink: in half the work, and no crash
/// can leave it half-done. Only if nobody has it open or holds it, no data of it is on its way to
/// the device, and its blocks are few; `None`: it has to become an orphan, for
/// `delete_if_unused`.
pub(crate) fn delete_with_final_unlink(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Arc<Inode>,
) -> Result<Option<Deletion>> {
    // A transaction point ends between the two, if need be; attributes in inodes of their own
    // take further transactions.
    let values = txn.superblock().features().incompat.contains(Incompat::EA_INODE);
    if fs.parts.transacts() || values {
        return Ok(None);
    }
    let may = |raw: &RawInode| is_small(raw) && !fs.parts.holds.contains(inode.no);
    let Some(deletion) = Deletion::begin(inode, may) else { return Ok(None) };
    let file = key(inode.no);
    if fs.pages.file_dirty_bytes(file) > 0 {
        return Ok(None);
    }
    // All pages are clean and nobody can make others. They go before the number can become
    // another file's.
    fs.pages.forget(file);
    txn.meta.alloc.windows.remove(inode.no);
    if !free_blocks_from(fs, txn, inode, 0)? {
        return Ok(None);
    }
    let UnusedInodes(values) = release_xattrs(txn, inode.no)?;
    debug_assert!(values.is_empty(), "without the feature there are none");
    txn.touch(inode.no, false)?;
    delete_inode(txn, inode.no)?;
    debug_assert!(txn.inodes.get(&inode.no).is_some_and(|edit| edit.life == Life::Ends));
    Ok(Some(deletion))
}

/// Deletes the inode if it has no links and nobody has it open or holds it; else the last close
/// does, or who lets go of it last.
pub(crate) fn delete_if_unused(fs: &Ext4, inode: &Inode) -> Result<()> {
    {
        let mut state = inode.state();
        if state.raw.links() > 0 || state.is_in_use() || state.doomed {
            return Ok(());
        }
        if fs.parts.holds.keep(inode.no) {
            return Ok(());
        }
        state.doomed = true;
    }
    // What could not be done for lack of room in the log is done at another try.
    delete(fs, inode).inspect_err(|_| inode.state().doomed = false)
}

/// Frees everything that an orphan without links has, and the inode.
pub(crate) fn delete(fs: &Ext4, inode: &Inode) -> Result<()> {
    fs.pages.forget(key(inode.no));
    unreserve(fs, inode, 0, u64::MAX);
    loop {
        if let Some(unused) = fs.parts.with_blocks(|| delete_step(fs, inode))? {
            return delete_values(fs, unused);
        }
    }
}

/// Frees as much as one transaction may. Once the inode is gone: what it leaves to be deleted.
fn delete_step(fs: &Ext4, inode: &Inode) -> Result<Option<UnusedInodes>> {
    let mut txn = fs.parts.begin_promised()?.yielding();
    txn.meta.alloc.windows.remove(inode.no);
    let mut unused = None;
    if free_blocks_from(fs, &mut txn, inode, 0)? {
        unused = Some(release_xattrs(&mut txn, inode.no)?);
        txn.orphans.remove(&mut txn, inode.no)?;
        delete_inode(&mut txn, inode.no)?;
    }
    txn.finish()?;
    Ok(unused)
}

/// Deletes the inodes of attributes' values that nobody uses any more.
pub(crate) fn delete_values(fs: &Ext4, unused: UnusedInodes) -> Result<()> {
    unused.0.iter().try_for_each(|inode| delete_if_unused(fs, inode))
}

/// Whether the inode has no blocks, or only what its own extents lead to.
fn is_small(raw: &RawInode) -> bool {
    if raw.flags().contains(InodeFlags::EXTENTS) {
        // The header's depth: 0 for extents, more for nodes above them.
        return raw.block()[6..8] == [0, 0];
    }
    raw.blocks_field() == 0
}
