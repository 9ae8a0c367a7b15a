//! Space for data that is written to the page cache and allocated later.

use steadfast_ext4_format::extents::FILE_END;
use steadfast_ext4_format::{Ext4Error, RangeSet, Result};
use steadfast_vfs::FsError;

use super::out_of_place::reserve_out_of_place;
use super::pieces::PieceSource;
use crate::alloc::Purpose;
use crate::meta::Txn;
use crate::mounted::{Ext4, key};
use crate::state::{Inode, InodeState};

/// Reserves the blocks of `[from, to)` bytes that have neither a place nor a reservation.
/// Returns where the range ends that can be written, and what was newly reserved.
///
/// # Errors
/// No space for even the first block.
pub(crate) fn reserve(fs: &Ext4, inode: &Inode, from: u64, to: u64) -> Result<(u64, RangeSet)> {
    if fs.parts.transacts() {
        return reserve_out_of_place(fs, inode, from, to);
    }
    let size = fs.volume.block_size();
    if fs.volume.layout.blocks_per_cluster > 1 {
        return reserve_clusters(fs, inode, from, to);
    }
    let holes = holes(fs, inode, from / size, to.div_ceil(size))?;
    if holes.is_empty() {
        return Ok((to, RangeSet::new()));
    }
    let (_held, mut allowed) = quota_blocks(fs, inode)?;
    let mut new = RangeSet::new();
    let mut state = inode.state();
    let mut space = fs.parts.allocator.counts();
    for (start, end) in holes {
        let is_wanted = |b: &u64| !state.delayed.contains(*b) && !has_place(&state, *b);
        let wanted: Vec<u64> = (start..end).filter(is_wanted).collect();
        let most = usize::try_from(space.available().min(allowed)).unwrap_or(usize::MAX);
        let taken = wanted.len().min(most);
        for block in &wanted[..taken] {
            state.delayed.insert(*block, block + 1);
            new.insert(*block, block + 1);
        }
        space.delayed_blocks += taken as u64;
        allowed -= (taken as u64).min(allowed);
        fs.parts.quotas.add_delayed(&state.raw, taken as u64 * size);
        if let Some(full) = wanted.get(taken) {
            let end = full * size;
            if end <= from && allowed == 0 && space.available() > 0 {
                return Err(FsError::QuotaExceeded.into());
            }
            if end <= from {
                return Err(Ext4Error::Fs(FsError::NoSpace { what: "blocks" }));
            }
            return Ok((end, new));
        }
    }
    Ok((to, new))
}

/// Whether a block that was found to be a hole has its place by now: its reservation has ended, and
/// nobody would end another one.
pub(crate) fn has_place(state: &InodeState, block: u64) -> bool {
    // OK to cast: files end below 2^32 blocks.
    state.map.get(block as u32).is_some()
}

/// Blocks that the quotas of the inode's owners leave for its data, and the lock under which that
/// is so: two who looked before either has reserved would both take them.
pub(crate) fn quota_blocks<'f>(fs: &'f Ext4, inode: &Inode) -> Result<(Option<Txn<'f>>, u64)> {
    let quotas = &fs.parts.quotas;
    if !quotas.is_on() {
        return Ok((None, u64::MAX));
    }
    let held = fs.parts.look();
    let left = quotas.left(&held, inode.no)?;
    Ok((Some(held), left.map_or(u64::MAX, |bytes| bytes / fs.volume.block_size())))
}

/// `reserve` with clusters: what is reserved is those that the file does not
/// have yet.
fn reserve_clusters(fs: &Ext4, inode: &Inode, from: u64, to: u64) -> Result<(u64, RangeSet)> {
    let layout = &fs.volume.layout;
    let size = fs.volume.block_size();
    let ratio = u64::from(layout.blocks_per_cluster);
    let (first, last) = (from / size, to.div_ceil(size));
    let (start, end) = layout.whole_clusters(first, last);
    let (mut holes, mut mapped) = (Vec::new(), RangeSet::new());
    for p in fs.parts.pieces(inode, start * size, end * size, None)? {
        let (a, b) = (p.offset / size, (p.offset + p.len) / size);
        if p.place == PieceSource::Hole {
            holes.push((a.max(first), b.min(last)));
        } else {
            mapped.insert(a / ratio, b.div_ceil(ratio));
        }
    }
    let (_held, mut allowed) = quota_blocks(fs, inode)?;
    let mut new = RangeSet::new();
    let mut state = inode.state();
    let mut space = fs.parts.allocator.counts();
    for block in holes.into_iter().flat_map(|(a, b)| a..b) {
        if state.delayed.contains(block) || has_place(&state, block) {
            continue;
        }
        let cluster = block / ratio;
        if !mapped.contains(cluster) && !state.promised.contains(cluster) {
            if space.available().min(allowed) < ratio {
                let end = block * size;
                if end > from {
                    return Ok((end, new));
                }
                let quota = space.available() >= ratio;
                let full = FsError::NoSpace { what: "blocks" };
                return Err(if quota { FsError::QuotaExceeded } else { full }.into());
            }
            state.promised.insert(cluster, cluster + 1);
            space.delayed_blocks += ratio;
            allowed = allowed.saturating_sub(ratio);
            fs.parts.quotas.add_delayed(&state.raw, ratio * size);
        }
        state.delayed.insert(block, block + 1);
        new.insert(block, block + 1);
    }
    Ok((to, new))
}

/// Writes out what is delayed in the clusters that `edges`, file blocks, cut in two: they may
/// be about to lose all that is mapped, and such data may count on them.
pub(crate) fn place_beside(fs: &Ext4, inode: &Inode, edges: [u64; 2]) -> Result<()> {
    let layout = &fs.volume.layout;
    let size = fs.volume.block_size();
    for edge in edges {
        let (start, end) = layout.whole_clusters(edge, edge);
        let waiting = inode.state().delayed.overlaps(start, end);
        if waiting {
            fs.pages.flush_range(key(inode.no), start * size..end * size)?;
        }
    }
    Ok(())
}

/// Ranges of file blocks within `[from, to)` that have no place.
fn holes(fs: &Ext4, inode: &Inode, from: u64, to: u64) -> Result<Vec<(u64, u64)>> {
    let size = fs.volume.block_size();
    let pieces = fs.parts.pieces(inode, from * size, to * size, None)?;
    let holes = pieces.into_iter().filter(|p| p.place == PieceSource::Hole);
    Ok(holes.map(|p| (p.offset / size, (p.offset + p.len) / size)).collect())
}

/// How far from file block `at` on, at most to `until`, blocks (or their clusters) have a
/// reservation or have none, and for which purpose that lets them be allocated.
pub(crate) fn promised(fs: &Ext4, inode: &Inode, at: u64, until: u64) -> (u64, Purpose) {
    let state = inode.state();
    let ratio = u64::from(fs.volume.layout.blocks_per_cluster);
    if ratio > 1 {
        let clusters = state.promised.within(at / ratio, until.div_ceil(ratio)).next();
        return match clusters.map(|(start, end)| (start * ratio, end * ratio)) {
            Some((start, end)) if start <= at => (end.min(until), Purpose::DelayedData),
            Some((start, _)) => (start, Purpose::Data),
            None => (until, Purpose::Data),
        };
    }
    match state.delayed.within(at, until).next() {
        Some((start, end)) if start == at => (end, Purpose::DelayedData),
        Some((start, _)) => (start, Purpose::Data),
        None => (until, Purpose::Data),
    }
}

/// Gives reservations back.
pub(crate) fn unreserve(fs: &Ext4, inode: &Inode, from: u64, to: u64) {
    let (delayed, moving) = end_reservations(fs, &mut inode.state(), from, to, false);
    count_ended(fs, delayed + moving, 0);
}

/// Finishes a transaction that gave the reserved blocks among these ranges of file blocks
/// their places, and ends the reservations. At no moment do they count twice, as reserved and
/// as taken: somebody else would find no space.
pub(crate) fn finish_placed(
    fs: &Ext4,
    inode: &Inode,
    mut txn: Txn<'_>,
    placed: &[(u64, u64)],
) -> Result<()> {
    let block = fs.volume.block_size();
    let (delayed, moving) = reserved_within(fs, &inode.state(), placed);
    txn.space.settles = delayed + moving;
    // What is placed counts as used. Until all is done the transaction holds the lock without
    // which nobody looks at either, or changes an owner.
    let quotas = &fs.parts.quotas;
    quotas.remove_delayed(&inode.state().raw, delayed * block);
    let give_back = |_: &Ext4Error| quotas.add_delayed(&inode.state().raw, delayed * block);
    txn.finish_held().inspect_err(give_back)?;
    let mut state = inode.state();
    let mut ended = (0, 0);
    for (from, to) in placed {
        let (delayed, moving) = end_reservations(fs, &mut state, *from, *to, true);
        ended = (ended.0 + delayed, ended.1 + moving);
    }
    // What is no longer there was taken back by somebody else meanwhile, a second time.
    quotas.add_delayed(&state.raw, delayed.saturating_sub(ended.0) * block);
    drop(state);
    count_ended(fs, ended.0 + ended.1, delayed + moving);
    Ok(())
}

/// How many blocks within these ranges of file blocks are reserved as delayed, and to move.
fn reserved_within(fs: &Ext4, state: &InodeState, ranges: &[(u64, u64)]) -> (u64, u64) {
    let count = |set: &RangeSet, (from, to)| -> u64 {
        set.within(from, to).map(|(start, end)| end - start).sum()
    };
    let delayed = match u64::from(fs.volume.layout.blocks_per_cluster) {
        1 => ranges.iter().map(|r| count(&state.delayed, *r)).sum(),
        n => {
            // Two ranges may share a cluster.
            let mut clusters = RangeSet::new();
            for (from, to) in ranges {
                clusters.extend(state.promised.within(from / n, to.div_ceil(n)));
            }
            clusters.len() * n
        }
    };
    (delayed, ranges.iter().map(|r| count(&state.moving, *r)).sum())
}

/// Takes the reservations of these file blocks out: they are `placed`, and held against quotas
/// as such, or nobody wants them any more. Returns how many were delayed, and how many were to
/// move.
fn end_reservations(
    fs: &Ext4,
    state: &mut InodeState,
    from: u64,
    to: u64,
    placed: bool,
) -> (u64, u64) {
    let delayed = match u64::from(fs.volume.layout.blocks_per_cluster) {
        1 => state.delayed.remove(from, to),
        ratio => end_promises(state, from, to, ratio, placed),
    };
    if !placed {
        fs.parts.quotas.remove_delayed(&state.raw, delayed * fs.volume.block_size());
    }
    (delayed, state.moving.remove(from, to))
}

/// Counts `ended` blocks as reserved no more, of which `settled` count as taken already.
fn count_ended(fs: &Ext4, ended: u64, settled: u64) {
    let mut space = fs.parts.allocator.counts();
    space.delayed_blocks = space.delayed_blocks.saturating_sub(ended);
    space.settled_blocks = space.settled_blocks.saturating_sub(settled);
}

/// Takes delayed file blocks `[from, to)` out, and the promises of the clusters they lie in:
/// of all if they are placed, else of those in which nothing is delayed any more. Returns how
/// many blocks are not reserved any more.
fn end_promises(state: &mut InodeState, from: u64, to: u64, ratio: u64, placed: bool) -> u64 {
    state.delayed.remove(from, to);
    let to = to.min(FILE_END);
    if from >= to {
        return 0;
    }
    let (mut first, mut end) = (from / ratio, to.div_ceil(ratio));
    if !placed {
        let waits = |cluster: u64, state: &InodeState| {
            state.delayed.overlaps(cluster * ratio, (cluster + 1) * ratio)
        };
        if waits(first, state) {
            first += 1;
        }
        if first < end && waits(end - 1, state) {
            end -= 1;
        }
    }
    state.promised.remove(first, end) * ratio
}
