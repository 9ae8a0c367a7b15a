//! Changing a file's size.
//!
//! Cutting a large file changes more blocks than one update may, so it is done in steps. The
//! first sets the size and makes the inode an orphan; a crash from then on is finished by the
//! next mount.

use bytes::Bytes;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo};
use steadfast_vfs::FileType;

use crate::extents::{last_extents, next_extent, unmap_blocks};
use crate::indirect::drop_empty_pointer_blocks;
use crate::inode::{orphan_add, orphan_whole};
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::options::DataMode;
use crate::planted::Bug;
use crate::state::Inode;

/// Extents unmapped before the size of the transaction is looked at again.
const EXTENTS_AT_ONCE: usize = 16;

impl Ext4 {
    /// Makes the file `new_size` bytes long.
    pub(crate) fn truncate(&self, inode: &Inode, new_size: u64) -> Result<()> {
        let _exclusive = inode.data_lock.write();
        self.check_end(inode, new_size, 0)?;
        self.drop_capability(inode)?;
        if self.truncate_inline(inode, new_size)? {
            return Ok(());
        }
        let size = inode.state().size;
        if new_size < size {
            self.drop_tail(inode, new_size, size)?;
        } else if self.is_dax(inode) {
            self.zero_to(inode, new_size)?;
        }
        let mut txn = self.volume.begin()?;
        // Also what was allocated behind the end goes, unless the file grows over it.
        let first_gone = new_size.div_ceil(self.volume.block_size());
        let cut = new_size < size
            || (new_size == size && next_extent(&txn, inode.no, first_gone)?.is_some());
        if cut {
            orphan_add(&mut txn, inode.no)?;
            txn.meta.alloc.windows.remove(inode.no);
        }
        if new_size < size && self.options.data != DataMode::Writeback {
            self.volume.rests_on_data(&mut txn, inode);
        }
        txn.modify_inode(inode.no, |raw| raw.set_size(new_size))?;
        txn.touch(inode.no, true)?;
        txn.finish()?;
        let mut state = inode.state();
        state.size = new_size;
        state.flush_on_close |= new_size == 0 && size > 0;
        drop(state);
        if cut { self.cut_to_size(inode) } else { Ok(()) }
    }

    /// Takes what lies beyond `new_size` out of the page cache, and makes the rest of the last
    /// block zeros.
    fn drop_tail(&self, inode: &Inode, new_size: u64, size: u64) -> Result<()> {
        let block = self.volume.block_size();
        let block_end = new_size.next_multiple_of(block).min(size);
        if self.is_dax(inode) {
            return self.store_zeros(inode, new_size..block_end);
        }
        self.reserve_page(inode, new_size)?;
        if self.journals_data(inode) {
            if block_end > new_size {
                let zeros = Bytes::from(vec![0; (block_end - new_size) as usize]);
                self.write_journalled(inode, new_size, zeros)?;
            }
            self.pages.invalidate(key(inode.no), new_size..u64::MAX);
        } else {
            if self.has_large_blocks() {
                // What the block holds beyond its last page must not come back.
                self.zero_part(inode, new_size..block_end)?;
            }
            let cut = self.pages.set_size(key(inode.no), new_size);
            self.release_clean_page(inode, new_size);
            cut?;
            let late = self.volume.has(Bug::TruncatedTailNotWritten);
            if block_end > new_size && self.options.data != DataMode::Writeback && !late {
                // The zeros are down before the new size is.
                self.pages.flush_range(key(inode.no), new_size - 1..new_size)?;
            }
        }
        self.unreserve(inode, new_size.div_ceil(block), u64::MAX);
        Ok(())
    }

    /// Frees the blocks beyond the size on disk; the inode is no orphan then.
    pub(crate) fn cut_to_size(&self, inode: &Inode) -> Result<()> {
        let end = inode.state().raw.size().div_ceil(self.volume.block_size());
        self.place_beside(inode, [end, end])?;
        loop {
            let mut txn = self.volume.begin_promised()?;
            let size = txn.raw_inode(inode.no)?.size();
            let from = size.div_ceil(self.volume.block_size());
            let done = self.free_blocks_from(&mut txn, inode, from)?;
            if done {
                orphan_whole(&mut txn, inode.no)?;
            }
            txn.finish()?;
            if done {
                return Ok(());
            }
        }
    }

    /// Blocks that one update should revoke at most: half of what a revoke block holds.
    pub(super) fn revokes_max(&self) -> usize {
        self.volume.layout.block_size as usize / 32
    }

    /// Bytes that are allocated and freed as one.
    pub(super) fn allocation_unit(&self) -> u64 {
        self.volume.layout.cluster_size()
    }

    /// Unmaps file blocks from the end down to `from`, as many as the transaction can take.
    /// Whether all is done.
    pub(super) fn free_blocks_from(
        &self,
        txn: &mut Txn<'_>,
        inode: &Inode,
        from: u64,
    ) -> Result<bool> {
        let raw = txn.raw_inode(inode.no)?;
        if !is_mapped(&raw) {
            return Ok(true);
        }
        let revoke = raw.file_type() != Some(FileType::Regular)
            || raw.flags().contains(InodeFlags::EA_INODE)
            || self.journals_data(inode);
        let budget = self.volume.log.update_blocks_max();
        let revokes = self.revokes_max() * 2;
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
}

/// Whether the inode's `i_block` leads to blocks: not in short symbolic links and devices, nor
/// where it holds contents.
pub(crate) fn is_mapped(raw: &steadfast_ext4_format::ondisk::RawInode) -> bool {
    match raw.file_type() {
        _ if raw.is_inline() => false,
        Some(FileType::Regular | FileType::Directory) => true,
        Some(FileType::Symlink) => raw.fast_symlink_target().is_none(),
        _ => false,
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
