//! data=transact: what a transaction point holds is never overwritten.
//!
//! Data that is written over a block which the last point holds is *moved*: write-back finds a
//! new place for the block, writes there, and maps the new place over the old in one update. The
//! old block stays allocated until the next point is durable. A block that was allocated since the
//! last point is *fresh* ([`Fresh`](crate::meta::Fresh)) and is overwritten where it is. Unwritten
//! extents count as what they show, zeros: those that a point holds are moved too.
//!
//! Write-back goes by what it finds (a block of a dirty page that is not fresh moves); what is
//! reserved here, when the page becomes dirty, only sees to it that there is space for that.
//! A page is written whole, so all blocks under it move with it.

use steadfast_ext4_format::ondisk::{Extent, MAX_WRITTEN_LEN};
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_pagecache::PAGE;
use steadfast_vfs::FsError;

use super::pieces::PieceSource;
use super::place::{still_holes, window_blocks};
use super::reserve::{has_place, quota_blocks, unreserve};
use crate::alloc::{BlockRequest, Purpose};
use crate::extents::{block_goal, map_extent, unmap_blocks};
use crate::meta::{LOG_FULL, Txn};
use crate::mounted::{Ext4, key};
use crate::state::Inode;

/// File blocks `[start, end)` that need a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlacementRange {
    pub start: u64,
    pub end: u64,
    /// They have one, which a transaction point holds.
    pub moves: bool,
}

/// Reserves what will move when the page that byte `at` lies in becomes dirty; nothing if `at`
/// is where a page begins.
pub(crate) fn reserve_page(fs: &Ext4, inode: &Inode, at: u64) -> Result<()> {
    let page = PAGE as u64;
    if !fs.parts.transacts() || at.is_multiple_of(page) {
        return Ok(());
    }
    fs.parts.log_room()?;
    let size = fs.volume.block_size();
    reserve_moves(fs, inode, at / page * page / size, at.next_multiple_of(page) / size)
}

/// Takes back what `reserve_page` has reserved if the page did not become
/// dirty: what was to be zeros was zeros already. A reservation that stayed would be taken for
/// that of other data, should its blocks become a hole.
pub(crate) fn release_clean_page(fs: &Ext4, inode: &Inode, at: u64) {
    let page = PAGE as u64;
    if !fs.parts.transacts() || at.is_multiple_of(page) {
        return;
    }
    let (number, size) = (at / page, fs.volume.block_size());
    if fs.pages.next_dirty(key(inode.no), number..number + 1).is_none() {
        unreserve(fs, inode, number * page / size, ((number + 1) * page).div_ceil(size));
    }
}

/// Reserves for those of the file blocks `[from, to)` that will move.
fn reserve_moves(fs: &Ext4, inode: &Inode, from: u64, to: u64) -> Result<()> {
    let needs = needs(fs, inode, from, to, None)?;
    let mut state = inode.state();
    let mut space = fs.parts.allocator.counts();
    for need in needs.iter().filter(|n| n.moves) {
        if space.available() < need.end - need.start {
            return Err(FsError::NoSpace { what: "blocks" }.into());
        }
        space.delayed_blocks += state.moving.insert(need.start, need.end);
    }
    Ok(())
}

fn give_back(fs: &Ext4, inode: &Inode, new: &mut RangeSet, from: u64) {
    let back: Vec<(u64, u64)> = new.within(from, u64::MAX).collect();
    for (start, end) in back {
        unreserve(fs, inode, start, end);
        new.remove(start, end);
    }
}

/// Whether write-back of `[from, to)` bytes may write where the blocks are.
pub(crate) fn nothing_moves(fs: &Ext4, inode: &Inode, from: u64, to: u64) -> Result<bool> {
    if !fs.parts.transacts() {
        return Ok(true);
    }
    let size = fs.volume.block_size();
    let (first, last) = (from / size, to.div_ceil(size));
    // A reservation must be given back even where it turns out not to be needed.
    let reserved = inode.state().moving.overlaps(first, last);
    Ok(!reserved && needs(fs, inode, first, last, None)?.iter().all(|n| !n.moves))
}

/// The file blocks of `[from, to)` that write-back must find places for, in order.
pub(crate) fn homeless(
    fs: &Ext4,
    txn: &Txn<'_>,
    inode: &Inode,
    from: u64,
    to: u64,
) -> Result<Vec<PlacementRange>> {
    let delayed: Vec<(u64, u64)> = inode.state().delayed.within(from, to).collect();
    let delayed = still_holes(txn, inode, delayed)?;
    let delayed =
        delayed.into_iter().map(|(start, end)| PlacementRange { start, end, moves: false });
    let mut all = needs(fs, inode, from, to, Some(txn))?;
    all.retain(|n| n.moves);
    all.extend(delayed);
    all.sort_unstable_by_key(|n| n.start);
    Ok(all)
}

/// Maps the file blocks `[start, end)`, all of which have places, to newly allocated ones.
/// Returns where it ends because the transaction is large enough; at least one block moves.
pub(crate) fn move_blocks(
    fs: &Ext4,
    txn: &mut Txn<'_>,
    inode: &Inode,
    start: u64,
    end: u64,
) -> Result<u64> {
    let window = window_blocks(fs, inode.state().size_written());
    let budget = fs.parts.log.update_blocks_max();
    let mut at = start;
    while at < end && (at == start || txn.changed_blocks() < budget) {
        // OK to cast: files end below 2^32 blocks.
        let logical = at as u32;
        let want = (end - at).min(u64::from(MAX_WRITTEN_LEN) - 1) as u32;
        // One after the other into the file's window: scattered overwrites become long writes.
        let ahead = txn.meta.alloc.windows.of(inode.no).map(|(start, _)| start);
        let goal = ahead.unwrap_or_else(|| block_goal(txn, inode.no, Some(logical)));
        let (owner, purpose) = (inode.no, Purpose::DelayedData);
        let (place, len) =
            txn.allocator.allocate(txn, BlockRequest { goal, want, owner, purpose, window })?;
        unmap_blocks(txn, inode.no, at, at + u64::from(len), false)?;
        let extent = Extent { logical, len, start: place, unwritten: false };
        map_extent(txn, inode.no, extent, len)?;
        at += u64::from(len);
    }
    Ok(at)
}

/// Which of the file blocks `[from, to)` need a place when they are written: holes, and what a
/// transaction point holds. In order.
pub(super) fn needs(
    fs: &Ext4,
    inode: &Inode,
    from: u64,
    to: u64,
    txn: Option<&Txn<'_>>,
) -> Result<Vec<PlacementRange>> {
    let size = fs.volume.block_size();
    let Some(fresh) = &fs.parts.allocator.fresh else { return Ok(Vec::new()) };
    let mut needs = Vec::new();
    for piece in fs.parts.pieces(inode, from * size, to * size, txn)? {
        let (start, end) = (piece.offset / size, (piece.offset + piece.len) / size);
        match piece.place {
            PieceSource::Hole => needs.push(PlacementRange { start, end, moves: false }),
            PieceSource::Device(at) | PieceSource::Unwritten(at) => {
                let place = at / size;
                let held = fresh.held(place, place + (end - start));
                needs.extend(held.into_iter().map(|(s, e)| PlacementRange {
                    start: start + (s - place),
                    end: start + (e - place),
                    moves: true,
                }));
            }
            PieceSource::Image(_) => {}
        }
    }
    Ok(needs)
}

/// As `reserve`, also for blocks that will move.
pub(crate) fn reserve_out_of_place(
    fs: &Ext4,
    inode: &Inode,
    from: u64,
    to: u64,
) -> Result<(u64, RangeSet)> {
    let (size, page) = (fs.volume.block_size(), PAGE as u64);
    let room = fs.parts.log_room()?;
    let (first, last) = (from / page * page, to.next_multiple_of(page));
    let mut needs = needs(fs, inode, first / size, last / size, None)?;
    // What is a hole and is not written stays one.
    needs.retain_mut(|n| {
        if !n.moves {
            (n.start, n.end) = (n.start.max(from / size), n.end.min(to.div_ceil(size)));
        }
        n.start < n.end
    });
    let mut new = RangeSet::new();
    let mut full = None;
    {
        let (_held, allowed) = quota_blocks(fs, inode)?;
        // Before the counts, which nobody may hold while he waits for the journal's lock.
        let log = &fs.parts.log;
        let (on_demand, most) = (log.room_on_demand(), log.most_room_on_demand());
        let mut state = inode.state();
        let mut space = fs.parts.allocator.counts();
        // Others may have reserved while this waited for a lock.
        let room = room.min(on_demand.saturating_sub(space.promised()));
        let wanted: Vec<(u64, bool)> = needs
            .iter()
            .flat_map(|n| (n.start..n.end).map(|b| (b, n.moves)))
            .filter(|(b, _)| !state.delayed.contains(*b) && !state.moving.contains(*b))
            .filter(|(b, moves)| *moves || !has_place(&state, *b))
            .collect();
        let count = wanted.len() as u64;
        // A write that cannot fit any transaction is shortened, others must wait for one.
        if count > room && count <= most {
            return Err(FsError::NoSpace { what: LOG_FULL }.into());
        }
        let fits = count.min(space.available()).min(room) as usize;
        // What moves is counted already, where it is.
        let mut holes = wanted.iter().enumerate().filter(|(_, (_, moves))| !moves);
        let beyond = holes.nth(usize::try_from(allowed).unwrap_or(usize::MAX));
        let taken = beyond.map_or(fits, |(i, _)| fits.min(i));
        let mut added = 0;
        for (block, moves) in &wanted[..taken] {
            let set = if *moves { &mut state.moving } else { &mut state.delayed };
            set.insert(*block, block + 1);
            new.insert(*block, block + 1);
            added += u64::from(!moves);
        }
        space.delayed_blocks += taken as u64;
        fs.parts.quotas.add_delayed(&state.raw, added * size);
        if let Some((block, _)) = wanted.get(taken) {
            full = Some((
                *block,
                match taken < fits {
                    true => FsError::QuotaExceeded,
                    false if (taken as u64) < room => FsError::NoSpace { what: "blocks" },
                    false => FsError::NoSpace { what: LOG_FULL },
                },
            ));
        }
    }
    let Some((block, error)) = full else { return Ok((to, new)) };
    let end = block * size / page * page;
    if end > from {
        give_back(fs, inode, &mut new, end / size);
        return Ok((end, new));
    }
    give_back(fs, inode, &mut new, 0);
    Err(error.into())
}
