//! The page cache's way to the device: finding places for pages, and writing them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{Completer, Completion, Payload};
use steadfast_ext4_format::extents::Lookup;
use steadfast_ext4_format::ondisk::{Extent, InodeNo, MAX_WRITTEN_LEN};
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_pagecache::{DirtyRun, FileKey, PAGE, PageStore, PageWrite, UnwrittenPages};
use steadfast_runtime::cpu;
use steadfast_vfs::FsError;

use super::elsewhere::Need;
use super::pieces::{Piece, Place};
use crate::alloc::{BlockRequest, Purpose};
use crate::extents::Placed;
use crate::extents::place_blocks;
use crate::extents::{find_extent, map_extent, mark_written};
use crate::indirect::prepare_map;
use crate::meta::Txn;
use crate::mounted::Ext4;
use crate::options::DataMode;
use crate::planted::Bug;
use crate::state::{Inode, Trouble};

/// Files below this size get no window: they are written whole, at once.
const STREAM_MIN: u64 = 64 << 10;
/// The window of a file that is used in place is so many times as large as the file.
const AHEAD_IN_PLACE: u64 = 8;
/// Largest write request.
const REQUEST_MAX: u64 = 1 << 20;

impl PageStore for Ext4 {
    fn read_pages(
        &self,
        file: FileKey,
        first: u64,
        count: u32,
    ) -> steadfast_vfs::Result<Completion> {
        self.run_inside(|| {
            let inode = self.cached_inode(file)?;
            self.start_read_pages(&inode, first, count)
        })
    }

    fn write_pages(
        &self,
        file: FileKey,
        runs: Vec<DirtyRun>,
    ) -> steadfast_vfs::Result<Vec<PageWrite>> {
        let outcome = self.run_inside(|| {
            let inode = self.cached_inode(file)?;
            self.write_runs(&inode, &runs)
        });
        if outcome.is_err() {
            self.drop_reservations(file, &runs);
        }
        outcome
    }

    fn write_failed(&self, what: &UnwrittenPages, error: &FsError) {
        self.volume.status.tell(&Trouble::Unwritten { part: self.part(what), error });
    }
}

impl Ext4 {
    fn cached_inode(&self, file: FileKey) -> Result<Arc<Inode>> {
        let no = u32::try_from(file.0).map_err(|_| FsError::NotFound)?;
        match self.volume.inodes.get(InodeNo(no)) {
            Some(inode) => Ok(inode),
            None => self.volume.with_blocks(|| self.volume.look_yielding().inode(InodeNo(no))),
        }
    }

    /// Pages that could not be written are lost: so is what was reserved for them.
    fn drop_reservations(&self, file: FileKey, runs: &[DirtyRun]) {
        let Ok(inode) = self.cached_inode(file) else { return };
        let per_page = |page: u64| (page * PAGE as u64).div_ceil(self.volume.block_size());
        for run in runs {
            let end = run.first + run.pages.len() as u64;
            self.unreserve(&inode, per_page(run.first), per_page(end));
        }
    }

    fn write_runs(&self, inode: &Inode, runs: &[DirtyRun]) -> Result<Vec<PageWrite>> {
        let block = self.volume.block_size();
        let end = inode.state().size_written().next_multiple_of(block);
        let ranges: Vec<(u64, u64, &DirtyRun)> = runs
            .iter()
            .map(|run| {
                let from = run.first * PAGE as u64;
                (from, (from + (run.pages.len() * PAGE) as u64).min(end), run)
            })
            .filter(|(from, to, _)| from < to)
            .collect();
        let mut started = Vec::new();
        for (from, to, run) in ranges {
            self.write_run(inode, from, to, run, &mut started)?;
        }
        Ok(started)
    }

    /// Writes `[from, to)` bytes of a run, in as many transactions as it takes. What a finished
    /// transaction waits for is started before the next one begins: that one may have to wait
    /// for a commit of the first.
    fn write_run(
        &self,
        inode: &Inode,
        mut from: u64,
        to: u64,
        run: &DirtyRun,
        started: &mut Vec<PageWrite>,
    ) -> Result<()> {
        cpu(super::CALL);
        while from < to {
            let mut writes = Writes::default();
            let pieces = self.volume.pieces(inode, from, to, None)?;
            let longer = {
                let state = inode.state();
                state.size_written().min(to) > state.raw.size()
            };
            let in_place = !longer && pieces.iter().all(|p| matches!(p.place, Place::Device(_)));
            if in_place && self.nothing_moves(inode, from, to)? {
                self.volume.check_writable()?;
                writes.add(pieces, run);
                from = to;
            } else {
                let (pieces, promise) =
                    self.volume.with_blocks(|| self.allocate_run(inode, from, to))?;
                from = pieces.last().map_or(to, |last| last.offset + last.len);
                writes.add(pieces, run);
                writes.promise = promise;
            }
            started.extend(writes.submit_pages(self, inode));
        }
        Ok(())
    }

    /// Finds places for the reserved blocks of `[from, to)` bytes and marks unwritten extents
    /// written, in one transaction; returns the pieces as they are then. They end before `to` if
    /// the transaction would become too large.
    fn allocate_run(
        &self,
        inode: &Inode,
        from: u64,
        to: u64,
    ) -> Result<(Vec<Piece>, Option<Completer>)> {
        let block = self.volume.block_size();
        let mut txn = self.volume.begin_promised()?.yielding();
        let homeless = self.homeless(&txn, inode, from / block, to.div_ceil(block))?;
        let (size_now, size_before, moving) = {
            let state = inode.state();
            let moving: Vec<_> = state.moving.within(from / block, to.div_ceil(block)).collect();
            (state.size_written(), state.raw.size(), moving)
        };
        let mut to = to;
        for need in &homeless {
            let Need { start, end, moves } = *need;
            let reached = if moves {
                self.move_blocks(&mut txn, inode, start, end)?
            } else {
                self.place_blocks(&mut txn, inode, start, end, Purpose::DelayedData, false)?
            };
            if reached < end {
                to = reached * block;
                break;
            }
        }
        let pieces = self.volume.pieces(inode, from, to, Some(&txn))?;
        if self.has_large_blocks() {
            self.zero_around(&txn, inode, from, to, &homeless)?;
        }
        let mut unwritten = false;
        for p in pieces.iter().filter(|p| matches!(p.place, Place::Unwritten(_))) {
            mark_written(&mut txn, inode.no, p.offset / block, (p.offset + p.len).div_ceil(block))?;
            unwritten = true;
        }
        let disk_size = size_now.min(to);
        let longer = disk_size > size_before;
        if longer {
            txn.modify_inode(inode.no, |raw| raw.set_size(disk_size))?;
        }
        let ordered = self.options.data != DataMode::Writeback && (longer || !homeless.is_empty());
        let early = unwritten && self.volume.has(Bug::WrittenBeforeData);
        let promise = ((ordered || unwritten) && !early).then(|| {
            let (completer, completion) = Completion::pending();
            txn.wait_for(completion);
            completer
        });
        let last = to.div_ceil(block);
        let mut placed = RangeSet::new();
        let ranges = homeless.iter().map(|need| (need.start, need.end)).chain(moving);
        for (start, end) in ranges.filter(|(start, _)| *start < last) {
            placed.insert(start, end.min(last));
        }
        self.finish_placed(inode, txn, &placed.iter().collect::<Vec<_>>())?;
        let pieces = pieces.into_iter().map(Piece::into_written).collect();
        Ok((pieces, promise))
    }

    /// Maps the hole `[start, end)` file blocks to newly allocated ones. Returns where it ends
    /// because the transaction is large enough; at least one block is mapped.
    pub(super) fn place_blocks(
        &self,
        txn: &mut Txn<'_>,
        inode: &Inode,
        start: u64,
        end: u64,
        purpose: Purpose,
        unwritten: bool,
    ) -> Result<u64> {
        let size = inode.state().size_written().max(end * self.volume.block_size());
        // What is used in place is written call by call, and a fast commit holds files of a few
        // extents only: such a file has a window from its second block on, and a large one.
        let window = match start > 0 && self.is_dax(inode) {
            true => self.window_blocks(size.saturating_mul(AHEAD_IN_PLACE).max(STREAM_MIN)),
            false => self.window_blocks(size),
        };
        txn.quota_promised |= purpose == Purpose::DelayedData;
        let budget = self.volume.log.update_blocks_max();
        let mut at = start;
        while at < end && (at == start || txn.changed_blocks() < budget) {
            // OK to cast: files end below 2^32 blocks.
            let logical = at as u32;
            let (goal, room) = prepare_map(txn, inode.no, logical)?;
            let want = (end - at).min(u64::from(MAX_WRITTEN_LEN) - 1).min(room) as u32;
            let request = BlockRequest { goal, want, owner: inode.no, purpose, window };
            let Placed { start, len, taken } = place_blocks(txn, request, logical)?;
            map_extent(txn, inode.no, Extent { logical, len, start, unwritten }, taken)?;
            at += u64::from(len);
        }
        Ok(at)
    }

    /// Blocks kept free behind a growing file: as many as it has, up to a limit.
    pub(super) fn window_blocks(&self, size: u64) -> u32 {
        if size < STREAM_MIN {
            return 0;
        }
        let most = self.options.window_max;
        (size.next_power_of_two().min(most) / self.volume.block_size()) as u32
    }

    /// Without delayed allocation: finds places for what was just reserved, at once. They count
    /// as unwritten until the data has been written back.
    pub(super) fn allocate_reserved(&self, inode: &Inode, reserved: &RangeSet) -> Result<()> {
        if reserved.is_empty() {
            return Ok(());
        }
        let outcome =
            reserved.iter().try_for_each(|(start, end)| self.allocate_unwritten(inode, start, end));
        reserved.iter().for_each(|(start, end)| self.unreserve(inode, start, end));
        outcome
    }

    fn allocate_unwritten(&self, inode: &Inode, mut start: u64, end: u64) -> Result<()> {
        while start < end {
            let mut txn = self.volume.begin()?;
            let first = start;
            start = self.place_blocks(&mut txn, inode, start, end, Purpose::DelayedData, true)?;
            self.finish_placed(inode, txn, &[(first, start)])?;
        }
        Ok(())
    }
}

/// The parts of ranges of file blocks that have no place. Who gives a reserved block one takes
/// the reservation away afterwards, so it may still be there.
pub(super) fn still_holes(
    txn: &Txn<'_>,
    inode: &Inode,
    ranges: Vec<(u64, u64)>,
) -> Result<Vec<(u64, u64)>> {
    let mut holes = Vec::with_capacity(ranges.len());
    for (mut at, end) in ranges {
        while at < end {
            // OK to cast: files end below 2^32 blocks.
            at = match find_extent(txn, inode.no, at as u32)? {
                Lookup::Mapped(e) => e.end(),
                Lookup::Hole { until } => {
                    holes.push((at, until.min(end)));
                    until
                }
            };
        }
    }
    Ok(holes)
}

impl Piece {
    /// The piece once it has been written.
    fn into_written(self) -> Piece {
        match self.place {
            Place::Unwritten(at) => Piece { place: Place::Device(at), ..self },
            _ => self,
        }
    }
}

/// Writes collected before they are submitted, those that touch on the device joined.
#[derive(Default)]
pub(super) struct Writes {
    requests: Vec<(u64, Payload)>,
    /// Of each request the bytes of the file from its first to its last; for pages only.
    covers: Vec<Range<u64>>,
    /// Answered when all writes are done: what a transaction waits for.
    promise: Option<Completer>,
}

impl Writes {
    /// Adds the pages of a run, piece by piece. Pieces without a place are zeros that nobody
    /// wrote: they stay holes.
    fn add(&mut self, pieces: Vec<Piece>, run: &DirtyRun) {
        let base = run.first * PAGE as u64;
        for piece in pieces {
            let Place::Device(mut at) = piece.place else { continue };
            let (mut from, to) = (piece.offset - base, piece.offset - base + piece.len);
            while from < to {
                let (page, skip) = ((from / PAGE as u64) as usize, (from % PAGE as u64) as usize);
                let len = (PAGE - skip).min((to - from) as usize);
                self.push(at, run.pages[page].slice(skip..skip + len));
                let bytes = base + from..base + from + len as u64;
                match self.covers.get_mut(self.requests.len() - 1) {
                    Some(covered) => covered.end = bytes.end,
                    None => self.covers.push(bytes),
                }
                from += len as u64;
                at += len as u64;
            }
        }
    }

    pub(super) fn push(&mut self, at: u64, bytes: Bytes) {
        match self.requests.last_mut() {
            Some((start, data))
                if *start + data.len() as u64 == at
                    && (data.len() + bytes.len()) as u64 <= REQUEST_MAX =>
            {
                data.push(bytes);
            }
            _ => self.requests.push((at, bytes.into())),
        }
    }

    /// Starts all writes of pages, as [`submit`](Self::submit).
    fn submit_pages(mut self, fs: &Ext4, inode: &Inode) -> Vec<PageWrite> {
        let covers = std::mem::take(&mut self.covers);
        let pages = |b: Range<u64>| b.start / PAGE as u64..b.end.div_ceil(PAGE as u64);
        let writes = covers.into_iter().zip(self.submit(fs, inode));
        writes.map(|(bytes, done)| PageWrite { pages: pages(bytes), done }).collect()
    }

    /// Starts all writes. A promise is kept when all of them have completed.
    pub(super) fn submit(self, fs: &Ext4, inode: &Inode) -> Vec<Completion> {
        let submit = |(offset, data)| fs.volume.submit_data(inode, offset, data);
        let writes: Vec<Completion> = self.requests.into_iter().map(submit).collect();
        if let Some(promise) = self.promise {
            super::gather::when_all(&writes, promise);
        }
        writes
    }
}
