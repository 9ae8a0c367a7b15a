//! Searching the bitmaps for a run of free clusters.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::bitmap::{self, FreeRange};
use steadfast_ext4_format::ondisk::{GroupNo, InodeNo};

use super::groups::block_bitmap;
use crate::meta::Txn;

/// A run at the goal that is shorter than wanted is taken if it has at least this many blocks;
/// else a whole run in another place is better.
const GOAL_RUN_MIN: u32 = 64;

/// Groups with free blocks that are searched for the longest run before it is taken.
const GROUPS_SEARCHED: u32 = 64;

/// A request in clusters, and where to look.
pub(super) struct BlockSearch {
    /// One of the volume's blocks.
    pub goal: u64,
    pub want: u32,
    pub window: u32,
    pub owner: InodeNo,
}

/// What is not taken: blocks in the windows of others, or nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exclude {
    Windows,
    Nothing,
}

/// The blocks, start to end, that bits of a group's bitmap stand for.
pub(super) fn blocks_of(txn: &Txn<'_>, group: GroupNo, run: FreeRange) -> (u64, u64) {
    let layout = &txn.volume.layout;
    let ratio = u64::from(layout.blocks_per_cluster);
    let start = layout.group_start(group) + u64::from(run.start) * ratio;
    (start, start + u64::from(run.len) * ratio)
}

/// The goal, where it lies in the file's own window: what is there is free, and nobody else's.
/// Not with clusters: a window may begin within one.
pub(super) fn next_of_window(
    txn: &Txn<'_>,
    request: &BlockSearch,
) -> Result<Option<(GroupNo, FreeRange)>> {
    let BlockSearch { goal, want, owner, .. } = *request;
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
    let held = |run: &FreeRange| {
        let (start, end) = blocks_of(txn, group, *run);
        txn.space.freed.overlaps(start, end) || txn.meta.alloc.busy.overlaps(start, end)
    };
    let run = run.filter(|run| run.start == bit && !held(run));
    // If more is asked for than is left, another place may have a longer run.
    Ok(run.filter(|run| run.len >= want.min(GOAL_RUN_MIN)).map(|run| (group, run)))
}

pub(super) fn search(
    txn: &Txn<'_>,
    request: &BlockSearch,
    exclude: Exclude,
) -> Result<Option<(GroupNo, FreeRange)>> {
    let layout = &txn.volume.layout;
    // OK to unwrap: the goal is one of the volume's blocks.
    let (goal_group, goal_block) = layout.group_of_block(request.goal).unwrap();
    let goal_bit = goal_block / layout.blocks_per_cluster;
    let groups = layout.groups;
    let in_order = || (0..groups).map(move |i| GroupNo((goal_group.0 + i) % groups));
    if txn.group(goal_group).free_blocks() > 0 {
        let map = usable(txn, goal_group, request, exclude)?;
        let bits = layout.clusters_in_group(goal_group);
        let enough = request.want.min(GOAL_RUN_MIN.div_ceil(layout.blocks_per_cluster));
        if !bitmap::is_set(&map, goal_bit)
            && let Some(run) = bitmap::next_run(&map, goal_bit, bits, request.want)
            && run.len >= enough
        {
            return Ok(Some((goal_group, run)));
        }
    }
    let mut best: Option<(GroupNo, FreeRange)> = None;
    let mut searched = 0;
    for group in in_order() {
        if txn.group(group).free_blocks() == 0 {
            continue;
        }
        let map = usable(txn, group, request, exclude)?;
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
pub(super) fn usable(
    txn: &Txn<'_>,
    group: GroupNo,
    request: &BlockSearch,
    exclude: Exclude,
) -> Result<Vec<u8>> {
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
    txn.meta.alloc.busy.within(start, end).for_each(&mut hide);
    txn.space.freed.within(start, end).for_each(&mut hide);
    if exclude == Exclude::Windows {
        txn.meta.alloc.windows.others(start, end, request.owner).for_each(&mut hide);
    }
    Ok(map)
}
