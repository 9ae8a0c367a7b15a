//! Files in clusters (`bigalloc`): blocks are taken and freed in whole clusters, but mapped one by
//! one.
//!
//! A block lies at the same place in its cluster on the device as in its cluster of the file, and
//! a cluster of the file in one cluster of the device. So a hole beside a mapped block of the same
//! cluster has its place already; and a cluster is free when none of its blocks is mapped any
//! more. (The kernel's `get_implied_cluster_alloc` and `ext4_remove_blocks`.)
//!
//! Without `bigalloc` a cluster is a block, and all this comes to nothing.

use steadfast_ext4_format::indirect::has_extents;
use steadfast_ext4_format::ondisk::{Extent, InodeNo};
use steadfast_ext4_format::{Ext4Error, Result, unsupported};

use super::file::{add_blocks, next_extent};
use crate::alloc::{BlockRequest, free_blocks};
use crate::meta::Txn;

/// A place for blocks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClusterRange {
    /// Device block of the first.
    pub start: u64,
    /// How many of the wanted blocks.
    pub len: u32,
    /// Blocks that were taken for it: none where the cluster is the file's already, else whole
    /// clusters. The inode counts them once the place is mapped.
    pub taken: u32,
}

fn ratio(txn: &Txn<'_>) -> u64 {
    txn.volume.layout.blocks_per_cluster.into()
}

/// Finds places for blocks of the request's owner from file block `logical` on, all of them
/// in a hole.
///
/// # Errors
/// No space; unsupported: clusters for a file with a block map; corrupt extents.
pub(crate) fn place_blocks(
    txn: &mut Txn<'_>,
    request: BlockRequest,
    logical: u32,
) -> Result<ClusterRange> {
    let ratio = ratio(txn);
    if ratio == 1 {
        let (start, len) = txn.allocator.allocate(txn, request)?;
        return Ok(ClusterRange { start, len, taken: len });
    }
    let no = request.owner;
    check_clustered(txn, no)?;
    let at = u64::from(logical);
    let skip = at % ratio;
    let mut end = at + u64::from(request.want);
    let cluster_end = at - skip + ratio;
    if let Some(start) = place_in_cluster(txn, no, at)? {
        // OK to cast: no more than was wanted.
        return Ok(ClusterRange { start, len: (end.min(cluster_end) - at) as u32, taken: 0 });
    }
    if end > cluster_end && !end.is_multiple_of(ratio) && place_in_cluster(txn, no, end)?.is_some()
    {
        // What is mapped behind the hole has the last cluster.
        end -= end % ratio;
    }
    // OK to cast: little more than was wanted, which is less than half of a u32.
    let want = (end - at + skip) as u32;
    let goal = request.goal.saturating_sub(skip);
    let (start, taken) = txn.allocator.allocate(txn, BlockRequest { goal, want, ..request })?;
    let len = (u64::from(taken) - skip).min(end - at) as u32;
    Ok(ClusterRange { start: start + skip, len, taken })
}

/// Where file block `at` lies, mapped or not, if its cluster is the file's.
fn place_in_cluster(txn: &Txn<'_>, no: InodeNo, at: u64) -> Result<Option<u64>> {
    let ratio = ratio(txn);
    let first = at - at % ratio;
    let next = next_extent(txn, no, first)?;
    let Some(e) = next.filter(|e| u64::from(e.logical) < first + ratio) else {
        return Ok(None);
    };
    check_aligned(no, &e, ratio)?;
    let part = e.clipped(first, e.end());
    Ok(Some(part.start - u64::from(part.logical) % ratio + at % ratio))
}

/// Gives back the clusters of extents that were just unmapped, all those of `[from, to)` file
/// blocks in order, as far as nothing is mapped in them any more.
pub(crate) fn free_extents(
    txn: &mut Txn<'_>,
    no: InodeNo,
    removed: &[Extent],
    from: u64,
    to: u64,
) -> Result<()> {
    let ratio = ratio(txn);
    if ratio > 1 {
        check_clustered(txn, no)?;
    }
    let kept = [cluster_in_use(txn, no, from)?, cluster_in_use(txn, no, to)?];
    let mut freed_before = None;
    for e in removed {
        check_aligned(no, e, ratio)?;
        // Clusters of the file, and of the device.
        let logical = u64::from(e.logical) / ratio;
        let device = e.start / ratio;
        let (mut first, mut end) = (logical, e.end().div_ceil(ratio));
        let place = |cluster: u64| device + (cluster - logical);
        if kept.contains(&Some(first)) || freed_before == Some(place(first)) {
            first += 1;
        }
        if first < end && kept.contains(&Some(end - 1)) {
            end -= 1;
        }
        if first < end {
            // Not the whole clusters: the last one may reach beyond the end of the volume.
            let from = e.start.max(place(first) * ratio);
            let to = (e.start + u64::from(e.len)).min(place(end) * ratio);
            let freed = free_blocks(txn, from, to - from)?;
            add_blocks(txn, no, -freed.cast_signed())?;
            freed_before = Some(place(end - 1));
        }
    }
    Ok(())
}

/// The cluster of the file that `edge` cuts in two, if a block of it is mapped.
fn cluster_in_use(txn: &Txn<'_>, no: InodeNo, edge: u64) -> Result<Option<u64>> {
    let ratio = ratio(txn);
    if edge.is_multiple_of(ratio) {
        return Ok(None);
    }
    let cluster = edge / ratio;
    let next = next_extent(txn, no, cluster * ratio)?;
    let used = next.is_some_and(|e| u64::from(e.logical) < (cluster + 1) * ratio);
    Ok(used.then_some(cluster))
}

/// The kernel does not give blocks to such a file either.
fn check_clustered(txn: &Txn<'_>, no: InodeNo) -> Result<()> {
    if has_extents(&txn.raw_inode(no)?) {
        return Ok(());
    }
    unsupported(format!("inode {no} has a block map (ext2/3) in a bigalloc file system"))
}

fn check_aligned(no: InodeNo, e: &Extent, ratio: u64) -> Result<()> {
    if u64::from(e.logical) % ratio == e.start % ratio {
        return Ok(());
    }
    let what = format!("file block {} does not lie in its cluster as in the file", e.logical);
    Err(Ext4Error::corrupt(what, format!("inode {no}, block {}", e.start)))
}
