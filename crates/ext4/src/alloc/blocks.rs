//! Taking and freeing blocks: whole clusters, which are what the bitmaps have bits for. Without
//! `bigalloc` a cluster is a block.

use steadfast_ext4_format::bitmap::{self, FreeRange};
use steadfast_ext4_format::ondisk::{GroupNo, InodeNo};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::FsError;

use super::groups::modify_block_bitmap;
use super::search::{BlockSearch, Exclude, blocks_of, next_of_window, search, usable};
use crate::meta::{MetaLock, MetaLog, Txn};
use crate::state::Allocator;

/// What blocks are for: which reserves they may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Data written now.
    Data,
    /// Data for which the space was promised when it was written to the page cache.
    DelayedData,
    /// Blocks of an extent tree or a directory.
    Metadata,
}

/// A request for blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockRequest {
    /// Where they should be.
    pub goal: u64,
    /// How many; fewer may be given, at least one. With clusters, more: whole ones are given.
    pub want: u32,
    /// The file they are for.
    pub owner: InodeNo,
    pub purpose: Purpose,
    /// Blocks after them that the file will probably want next.
    pub window: u32,
}

impl BlockRequest {
    /// One block, which no window follows.
    pub(crate) fn metadata(goal: u64, owner: InodeNo) -> Self {
        BlockRequest { goal, want: 1, owner, purpose: Purpose::Metadata, window: 0 }
    }
}

impl Allocator {
    /// Blocks whose freeing has been committed are free to use. With an external journal this may
    /// take a checkpoint (see `state/home.rs`).
    ///
    /// # Errors
    /// Of the journal, which is no more then.
    pub(crate) fn use_freed_committed(&self, log: &MetaLog, meta: &MetaLock) -> Result<()> {
        if self.home.as_ref().is_some_and(|home| home.holds_blocks())
            && let MetaLog::Journal(journal) = log
        {
            journal.checkpoint_committed()?;
        }
        self.take_freed_committed(&mut meta.lock().alloc);
        Ok(())
    }

    /// Takes a run of blocks: whole clusters.
    ///
    /// # Errors
    /// No space.
    pub(crate) fn allocate(&self, txn: &mut Txn<'_>, request: BlockRequest) -> Result<(u64, u32)> {
        self.take_freed_committed(&mut txn.meta.alloc);
        let layout = &txn.volume.layout;
        let goal =
            if layout.contains(request.goal, 1) { request.goal } else { layout.first_data_block };
        let ratio = layout.blocks_per_cluster;
        let wanted = BlockSearch {
            goal,
            want: request
                .want
                .div_ceil(ratio)
                .min(layout.clusters_per_group())
                .min(self.space_for(txn, request.purpose)?),
            window: request.window / ratio,
            owner: request.owner,
        };
        let found = match next_of_window(txn, &wanted)? {
            None => search(txn, &wanted, Exclude::Windows)?,
            found => found,
        };
        let found = match found {
            Some(found) => Some(found),
            None if txn.meta.alloc.windows.is_empty() => None,
            None => {
                txn.meta.alloc.windows.clear();
                search(txn, &wanted, Exclude::Nothing)?
            }
        };
        let (group, run) = found.ok_or(Ext4Error::Fs(FsError::NoSpace { what: "blocks" }))?;
        let (start, end) = blocks_of(txn, group, run);
        take(txn, group, run)?;
        set_window(txn, &wanted, group, run)?;
        // OK to cast: at most a group.
        Ok((start, (end - start) as u32))
    }

    /// How many clusters a request may take at most.
    fn space_for(&self, txn: &Txn<'_>, purpose: Purpose) -> Result<u32> {
        let space = *self.counts();
        let free = space.free_blocks.saturating_sub(space.busy_blocks + txn.space.taken.len());
        let left = match purpose {
            Purpose::Data => space.available().saturating_sub(txn.space.taken.len()),
            Purpose::DelayedData | Purpose::Metadata => free,
        };
        let left = left / u64::from(txn.volume.layout.blocks_per_cluster);
        if left == 0 {
            return Err(Ext4Error::Fs(FsError::NoSpace { what: "blocks" }));
        }
        Ok(u32::try_from(left).unwrap_or(u32::MAX))
    }
}

fn take(txn: &mut Txn<'_>, group: GroupNo, run: FreeRange) -> Result<()> {
    let already = modify_block_bitmap(txn, group, |map| bitmap::set(map, run.start, run.len))?;
    debug_assert_eq!(already, 0, "the run was free");
    let edit = txn.group_mut(group);
    let free = edit.desc.free_blocks();
    if free < run.len {
        let place = format!("group {group}");
        return Err(Ext4Error::corrupt("more free blocks in the bitmap than counted", place));
    }
    edit.desc.set_free_blocks(free - run.len);
    let (start, end) = blocks_of(txn, group, run);
    txn.space.taken.insert(start, end);
    Ok(())
}

/// Keeps the blocks after a run for its file.
fn set_window(
    txn: &mut Txn<'_>,
    request: &BlockSearch,
    group: GroupNo,
    run: FreeRange,
) -> Result<()> {
    let next = run.start + run.len;
    let (_, after) = blocks_of(txn, group, run);
    if let Some((s, e)) = txn.meta.alloc.windows.of(request.owner)
        && s < after
        && after < e
    {
        txn.meta.alloc.windows.set(request.owner, after, e);
        return Ok(());
    }
    if request.window == 0 {
        return Ok(());
    }
    let bits = txn.volume.layout.clusters_in_group(group);
    let map = usable(txn, group, request, Exclude::Windows)?;
    match bitmap::next_run(&map, next, bits, request.window) {
        Some(free) if free.start == next => {
            let (_, end) = blocks_of(txn, group, free);
            txn.meta.alloc.windows.set(request.owner, after, end);
        }
        _ => txn.meta.alloc.windows.remove(request.owner),
    }
    Ok(())
}

/// Gives blocks back, with all others of the clusters that they lie in. They are not reused
/// before this transaction has committed. Returns how many that are.
///
/// # Errors
/// Corrupt: they are not a file's, or are free already.
pub(crate) fn free_blocks(txn: &mut Txn<'_>, start: u64, len: u64) -> Result<u64> {
    let place = || format!("blocks {start}+{len}");
    let layout = &txn.volume.layout;
    let ratio = layout.blocks_per_cluster;
    if !txn.volume.valid_file_blocks(start, len) {
        return Err(Ext4Error::corrupt("freeing blocks that no file may own", place()));
    }
    let (start, end) = layout.whole_clusters(start, start + len);
    let mut at = start;
    while at < end {
        // OK to unwrap: the blocks are the volume's.
        let (group, block) = txn.volume.layout.group_of_block(at).unwrap();
        let bit = block / ratio;
        let left_in_group = txn.volume.layout.clusters_in_group(group) - bit;
        let clusters = (end - at) / u64::from(ratio);
        let n = left_in_group.min(u32::try_from(clusters).unwrap_or(u32::MAX));
        let already = modify_block_bitmap(txn, group, |map| bitmap::clear(map, bit, n))?;
        if already > 0 {
            return Err(Ext4Error::corrupt("freeing blocks that are free", place()));
        }
        let edit = txn.group_mut(group);
        edit.desc.set_free_blocks(edit.desc.free_blocks() + n);
        at += u64::from(n) * u64::from(ratio);
    }
    txn.space.freed.insert(start, end);
    Ok(end - start)
}
