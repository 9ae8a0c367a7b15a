//! Changing a file's size.
//!
//! Cutting a large file changes more blocks than one update may, so it is done in steps. The
//! first sets the size and makes the inode an orphan; a crash from then on is finished by the
//! next mount.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo};
use steadfast_vfs::FileType;

use super::dax::{store_zeros, zero_to};
use super::fallocate::zero_journalled;
use super::in_place::is_dax;
use super::inline::truncate_inline;
use super::large_blocks::{has_large_blocks, zero_part};
use super::out_of_place::{release_clean_page, reserve_page};
use super::outside::commit_after_data;
use super::reserve::{place_beside, unreserve};
use super::times::check_end;
use crate::extents::{last_extents, next_extent, unmap_blocks};
use crate::indirect::drop_empty_pointer_blocks;
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::options::DataMode;
use crate::planted::Bug;
use crate::state::Inode;

/// Extents unmapped before the size of the transaction is looked at again.
const EXTENTS_AT_ONCE: usize = 16;

/// Makes the file `new_size` bytes long.
pub(crate) fn truncate(fs: &Ext4, inode: &Inode, new_size: u64) -> Result<()> {
    let _exclusive = inode.data_lock.write();
    check_end(fs, inode, new_size, 0)?;
    fs.drop_capability(inode)?;
    if truncate_inline(fs, inode, new_size)? {
        return Ok(());
    }
    let size = inode.state().size;
    if new_size < size {
        drop_tail(fs, inode, new_size, size)?;
    } else if is_dax(fs, inode) {
        zero_to(fs, inode, new_size)?;
    }
    let mut txn = fs.parts.begin()?;
    // Also what was allocated behind the end goes, unless the file grows over it.
    let first_gone = new_size.div_ceil(fs.volume.block_size());
    let cut =
        new_size < size || (new_size == size && next_extent(&txn, inode.no, first_gone)?.is_some());
    if cut {
        txn.orphans.add(&mut txn, inode.no)?;
        txn.meta.alloc.windows.remove(inode.no);
    }
    if new_size < size && fs.options.data != DataMode::Writeback {
        commit_after_data(&fs.parts.log, &mut txn, inode);
    }
    txn.modify_inode(inode.no, |raw| raw.set_size(new_size))?;
    txn.touch(inode.no, true)?;
    txn.finish()?;
    let mut state = inode.state();
    state.size = new_size;
    state.flush_on_close |= new_size == 0 && size > 0;
    drop(state);
    if cut { cut_to_size(fs, inode) } else { Ok(()) }
}

/// Takes what lies beyond `new_size` out of the page cache, and makes the rest of the last
/// block zeros.
fn drop_tail(fs: &Ext4, inode: &Inode, new_size: u64, size: u64) -> Result<()> {
    let block = fs.volume.block_size();
    let block_end = new_size.next_multiple_of(block).min(size);
    if is_dax(fs, inode) {
        return store_zeros(fs, inode, new_size..block_end);
    }
    reserve_page(fs, inode, new_size)?;
    if fs.journals_data(inode) {
        zero_journalled(fs, inode, new_size, block_end)?;
        fs.pages.invalidate(key(inode.no), new_size..u64::MAX);
    } else {
        if has_large_blocks(fs) {
            // What the block holds beyond its last page must not come back.
            zero_part(fs, inode, new_size..block_end)?;
        }
        let cut = fs.pages.set_size(key(inode.no), new_size);
        release_clean_page(fs, inode, new_size);
        cut?;
        let late = fs.volume.has(Bug::TruncatedTailNotWritten);
        if block_end > new_size && fs.options.data != DataMode::Writeback && !late {
            // The zeros are down before the new size is.
            fs.pages.flush_range(key(inode.no), new_size - 1..new_size)?;
        }
    }
    unreserve(fs, inode, new_size.div_ceil(block), u64::MAX);
    Ok(())
}

/// Frees the blocks beyond the size; the inode is no orphan then. That is the size in memory where
/// delayed data has made the file longer than it is on disk: such data may lie in blocks that have
/// their place already.
pub(crate) fn cut_to_size(fs: &Ext4, inode: &Inode) -> Result<()> {
    let end = |on_disk: u64| on_disk.max(inode.state().size).div_ceil(fs.volume.block_size());
    let on_disk = inode.state().raw.size();
    place_beside(fs, inode, [end(on_disk); 2])?;
    loop {
        let mut txn = fs.parts.begin_promised()?;
        let from = end(txn.raw_inode(inode.no)?.size());
        let done = free_blocks_from(fs, &mut txn, inode, from)?;
        if done || fs.volume.has(Bug::OrphanWholeTooSoon) {
            txn.orphans.whole(&mut txn, inode.no)?;
        }
        txn.finish()?;
        if done {
            return Ok(());
        }
    }
}

/// Blocks that one update should revoke at most: half of what a revoke block holds.
pub(crate) fn revokes_max(fs: &Ext4) -> usize {
    fs.volume.layout.block_size as usize / 32
}

/// Unmaps file blocks from the end down to `from`, as many as the transaction can take.
/// Whether all is done.
pub(crate) fn free_blocks_from(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Inode,
    from: u64,
) -> Result<bool> {
    let raw = txn.raw_inode(inode.no)?;
    if !raw.is_mapped() {
        return Ok(true);
    }
    let revoke = raw.file_type() != Some(FileType::Regular)
        || raw.flags().contains(InodeFlags::EA_INODE)
        || fs.journals_data(inode);
    let budget = fs.parts.log.update_blocks_max();
    let revokes = revokes_max(fs) * 2;
    loop {
        let longest = if revoke { (revokes / 2) as u64 } else { u64::MAX };
        let Some(last) = next_cut(txn, inode.no, from, longest)? else {
            drop_empty_pointer_blocks(txn, inode.no, from)?;
            return Ok(true);
        };
        unmap_blocks(txn, inode.no, last, 1 << 32, revoke)?;
        if txn.changed_blocks() >= budget || txn.revoked_blocks() >= revokes / 2 {
            return Ok(false);
        }
    }
}

/// Where to cut next, not below `from`, so that at most `longest` blocks go; `None` if nothing is
/// mapped there.
fn next_cut(txn: &Txn<'_>, no: InodeNo, from: u64, longest: u64) -> Result<Option<u64>> {
    if next_extent(txn, no, from)?.is_none() {
        return Ok(None);
    }
    let count = if longest == u64::MAX { EXTENTS_AT_ONCE } else { 1 };
    let Some(first) = last_extents(txn, no, count)? else { return Ok(None) };
    let mut at = u64::from(first);
    if longest < u64::MAX
        && let Some(extent) = next_extent(txn, no, at)?
    {
        at = at.max(extent.end().saturating_sub(longest));
    }
    Ok(Some(at.max(from)))
}
