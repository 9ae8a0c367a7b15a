//! Taking and freeing blocks: whole clusters, which are what the bitmaps have bits for. Without
//! `bigalloc` a cluster is a block.

use std::sync::PoisonError;

use steadfast_ext4_format::ondisk::{GroupNo, InodeNo};
use steadfast_ext4_format::{Ext4Error, RangeSet, Result};
use steadfast_vfs::FsError;

use super::bitmap::{self, Run};
use super::groups::block_bitmap;
use super::groups::modify_block_bitmap;
use crate::meta::{MetaLog, Txn, Volume};

/// A run at the goal that is shorter than wanted is taken if it has at least this many blocks;
/// else a whole run elsewhere is better.
const GOAL_RUN_MIN: u32 = 64;

/// Groups with free blocks that are searched for the longest run before it is taken.
const GROUPS_SEARCHED: u32 = 64;

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

/// A wish for blocks.
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

/// A request in clusters.
struct Wish {
    /// One of the volume's blocks.
    goal: u64,
    want: u32,
    window: u32,
    owner: InodeNo,
}

/// Whose windows to respect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Respect {
    Windows,
    Nothing,
}

impl Volume {
    /// Blocks whose freeing has been committed are free to use. With an external journal this may
    /// take a checkpoint (see `mount/home.rs`).
    ///
    /// # Errors
    /// Of the journal, which is no more then.
    pub(crate) fn use_freed_committed(&self) -> Result<()> {
        if self.home.as_ref().is_some_and(|home| home.holds_blocks())
            && let MetaLog::Journal(journal) = &self.log
        {
            journal.checkpoint_committed()?;
        }
        self.take_freed_committed(&mut self.lock_meta().alloc.resting);
        Ok(())
    }

    fn take_freed_committed(&self, resting: &mut RangeSet) {
        let mut freed_committed = std::mem::take(
            &mut *self.free.freed_committed.lock().unwrap_or_else(PoisonError::into_inner),
        );
        if let Some(home) = &self.home {
            freed_committed.extend(home.take_released());
        }
        let count: u64 =
            freed_committed.iter().map(|(start, end)| resting.remove(*start, *end)).sum();
        let mut space = self.space();
        space.resting_blocks = space.resting_blocks.saturating_sub(count);
    }
}

/// Takes a run of blocks: whole clusters.
///
/// # Errors
/// No space.
pub(crate) fn allocate_blocks(txn: &mut Txn<'_>, request: BlockRequest) -> Result<(u64, u32)> {
    txn.volume.take_freed_committed(&mut txn.meta.alloc.resting);
    let layout = &txn.volume.layout;
    let goal =
        if layout.contains(request.goal, 1) { request.goal } else { layout.first_data_block };
    let ratio = layout.blocks_per_cluster;
    let wish = Wish {
        goal,
        want: request
            .want
            .div_ceil(ratio)
            .min(layout.clusters_per_group())
            .min(space_for(txn, request.purpose)?),
        window: request.window / ratio,
        owner: request.owner,
    };
    let found = match next_of_window(txn, &wish)? {
        None => search(txn, &wish, Respect::Windows)?,
        found => found,
    };
    let found = match found {
        Some(found) => Some(found),
        None if txn.meta.alloc.windows.is_empty() => None,
        None => {
            txn.meta.alloc.windows.clear();
            search(txn, &wish, Respect::Nothing)?
        }
    };
    let (group, run) = found.ok_or(Ext4Error::Fs(FsError::NoSpace { what: "blocks" }))?;
    let (start, end) = blocks_of(txn, group, run);
    take(txn, group, run)?;
    set_window(txn, &wish, group, run)?;
    // OK to cast: at most a group.
    Ok((start, (end - start) as u32))
}

/// The blocks, start to end, that bits of a group's bitmap stand for.
fn blocks_of(txn: &Txn<'_>, group: GroupNo, run: Run) -> (u64, u64) {
    let layout = &txn.volume.layout;
    let ratio = u64::from(layout.blocks_per_cluster);
    let start = layout.group_start(group) + u64::from(run.start) * ratio;
    (start, start + u64::from(run.len) * ratio)
}

/// How many clusters a request may take at most.
fn space_for(txn: &Txn<'_>, purpose: Purpose) -> Result<u32> {
    let space = *txn.volume.space();
    let free = space.free_blocks.saturating_sub(space.resting_blocks + txn.taken.len());
    let left = match purpose {
        Purpose::Data => space.available().saturating_sub(txn.taken.len()),
        Purpose::DelayedData | Purpose::Metadata => free,
    };
    let left = left / u64::from(txn.volume.layout.blocks_per_cluster);
    if left == 0 {
        return Err(Ext4Error::Fs(FsError::NoSpace { what: "blocks" }));
    }
    Ok(u32::try_from(left).unwrap_or(u32::MAX))
}

/// The goal, where it lies in the file's own window: what is there is free, and nobody else's.
/// Not with clusters: a window may begin within one.
fn next_of_window(txn: &Txn<'_>, request: &Wish) -> Result<Option<(GroupNo, Run)>> {
    let Wish { goal, want, owner, .. } = *request;
    let layout = &txn.volume.layout;
    let ratio = layout.blocks_per_cluster;
    let Some((start, end)) = txn.meta.alloc.windows.of(owner) else { return Ok(None) };
    if goal < start || goal >= end || ratio != 1 {
        return Ok(None);
    }
    // OK to unwrap: the goal is one of the volume's blocks.
    let (group, bit) = layout.group_of_block(goal).unwrap();
    // OK to cast: a window lies in one group.
    let limit = bit + (end - goal) as u32;
    let map = block_bitmap(txn, group)?;
    let run = bitmap::next_run(&map, bit, limit.min(layout.clusters_in_group(group)), want);
    let held = |run: &Run| {
        let (start, end) = blocks_of(txn, group, *run);
        txn.freed.within(start, end).next().is_some()
            || txn.meta.alloc.resting.within(start, end).next().is_some()
    };
    let run = run.filter(|run| run.start == bit && !held(run));
    // If more is asked for than is left, there may be a longer run elsewhere.
    Ok(run.filter(|run| run.len >= want.min(GOAL_RUN_MIN)).map(|run| (group, run)))
}

fn search(txn: &Txn<'_>, request: &Wish, respect: Respect) -> Result<Option<(GroupNo, Run)>> {
    let layout = &txn.volume.layout;
    // OK to unwrap: the goal is one of the volume's blocks.
    let (goal_group, goal_block) = layout.group_of_block(request.goal).unwrap();
    let goal_bit = goal_block / layout.blocks_per_cluster;
    let groups = layout.groups;
    let in_order = || (0..groups).map(move |i| GroupNo((goal_group.0 + i) % groups));
    if txn.group(goal_group).free_blocks() > 0 {
        let map = usable(txn, goal_group, request, respect)?;
        let bits = layout.clusters_in_group(goal_group);
        let enough = request.want.min(GOAL_RUN_MIN.div_ceil(layout.blocks_per_cluster));
        if !bitmap::is_set(&map, goal_bit)
            && let Some(run) = bitmap::next_run(&map, goal_bit, bits, request.want)
            && run.len >= enough
        {
            return Ok(Some((goal_group, run)));
        }
    }
    let mut best: Option<(GroupNo, Run)> = None;
    let mut searched = 0;
    for group in in_order() {
        if txn.group(group).free_blocks() == 0 {
            continue;
        }
        let map = usable(txn, group, request, respect)?;
        let from = if group == goal_group { goal_bit } else { 0 };
        let bits = layout.clusters_in_group(group);
        let Some(run) = bitmap::best_run(&map, bits, from, request.want) else { continue };
        if run.len >= request.want {
            return Ok(Some((group, run)));
        }
        if best.is_none_or(|(_, b)| b.len < run.len) {
            best = Some((group, run));
        }
        searched += 1;
        if searched >= GROUPS_SEARCHED {
            break;
        }
    }
    Ok(best)
}

/// A group's bitmap with everything set that this request must not take.
fn usable(txn: &Txn<'_>, group: GroupNo, request: &Wish, respect: Respect) -> Result<Vec<u8>> {
    let mut map = block_bitmap(txn, group)?.to_vec();
    let layout = &txn.volume.layout;
    let ratio = u64::from(layout.blocks_per_cluster);
    let start = layout.group_start(group);
    let end = start + u64::from(layout.blocks_in_group(group));
    let mut hide = |(s, e): (u64, u64)| {
        let (first, end) = ((s - start) / ratio, (e - start).div_ceil(ratio));
        bitmap::set(&mut map, first as u32, (end - first) as u32);
    };
    if !(end - start).is_multiple_of(ratio) {
        // Part of the last cluster would lie beyond the end.
        hide((end - 1, end));
    }
    txn.meta.alloc.resting.within(start, end).for_each(&mut hide);
    txn.freed.within(start, end).for_each(&mut hide);
    if respect == Respect::Windows {
        txn.meta.alloc.windows.others(start, end, request.owner).for_each(&mut hide);
    }
    Ok(map)
}

fn take(txn: &mut Txn<'_>, group: GroupNo, run: Run) -> Result<()> {
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
    txn.taken.insert(start, end);
    Ok(())
}

/// Keeps the blocks after a run for its file.
fn set_window(txn: &mut Txn<'_>, request: &Wish, group: GroupNo, run: Run) -> Result<()> {
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
    let map = usable(txn, group, request, Respect::Windows)?;
    match bitmap::next_run(&map, next, bits, request.window) {
        Some(free) if free.start == next => {
            let (_, end) = blocks_of(txn, group, free);
            txn.meta.alloc.windows.set(request.owner, after, end);
        }
        _ => txn.meta.alloc.windows.remove(request.owner),
    }
    Ok(())
}

/// Gives blocks back, with all others of the clusters that they lie in. They rest until this
/// transaction has committed. Returns how many that are.
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
    txn.freed.insert(start, end);
    Ok(end - start)
}
