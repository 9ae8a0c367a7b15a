//! The page cache's way to the device: finding places for pages, and writing them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{Completer, Completion, Payload};
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_pagecache::{
    DirtyParts, DirtyRange, FailedPages, FileKey, PAGE, PageStore, PageWrite,
};
use steadfast_runtime::cpu;
use steadfast_vfs::FsError;

use super::large_blocks::{has_large_blocks, zero_around};
use super::out_of_place::{PlacementRange, homeless, move_blocks, nothing_moves};
use super::pieces::{Piece, PieceSource};
use super::place::place_run;
use super::read::start_read_pages;
use super::reserve::{finish_placed, unreserve};
use crate::alloc::Purpose;
use crate::extents::mark_written;
use crate::mounted::{Ext4, key};
use crate::options::DataMode;
use crate::planted::Bug;
use crate::state::{Inode, WriteError};

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
            let inode = cached_inode(self, file)?;
            start_read_pages(self, &inode, first, count)
        })
    }

    fn write_pages(
        &self,
        file: FileKey,
        runs: Vec<DirtyRange>,
    ) -> steadfast_vfs::Result<Vec<PageWrite>> {
        // What was reserved for pages that cannot be written stays so, until they are written anew
        // or truncated. Somebody may have written to one of them meanwhile and counts on it, and
        // another block of the same page goes with the next write: without a reservation it would
        // be taken for a hole.
        self.run_inside(|| {
            let inode = cached_inode(self, file)?;
            write_runs(self, &inode, &runs)
        })
    }

    fn write_failed(&self, what: &FailedPages, error: &FsError) {
        self.volume.status.notify(&WriteError::Unwritten { part: self.part(what), error });
    }
}

fn cached_inode(fs: &Ext4, file: FileKey) -> Result<Arc<Inode>> {
    let no = u32::try_from(file.0).map_err(|_| FsError::NotFound)?;
    match fs.parts.inodes.get(InodeNo(no)) {
        Some(inode) => Ok(inode),
        None => fs.parts.with_blocks(|| fs.parts.look_yielding().inode(InodeNo(no))),
    }
}

fn write_runs(fs: &Ext4, inode: &Inode, runs: &[DirtyRange]) -> Result<Vec<PageWrite>> {
    let block = fs.volume.block_size();
    let end = inode.state().size_written().next_multiple_of(block);
    let ranges: Vec<(u64, u64, &DirtyRange)> = runs
        .iter()
        .map(|run| {
            let from = run.first * PAGE as u64;
            (from, (from + (run.pages.len() * PAGE) as u64).min(end), run)
        })
        .filter(|(from, to, _)| from < to)
        .collect();
    let mut started = Vec::new();
    let written = ranges
        .iter()
        .try_for_each(|(from, to, run)| write_run(fs, inode, *from, *to, run, &mut started));
    if let Err(e) = written {
        // All the pages count as failed and may be written again: not beside these writes, of which
        // the older could land last. How they end does not matter any more.
        let _ = Completion::wait_all(started.iter().map(|write: &PageWrite| &write.done));
        return Err(e);
    }
    Ok(started)
}

/// Writes `[from, to)` bytes of a run, in as many transactions as it takes. What a finished
/// transaction waits for is started before the next one begins: that one may have to wait
/// for a commit of the first.
fn write_run(
    fs: &Ext4,
    inode: &Inode,
    mut from: u64,
    to: u64,
    run: &DirtyRange,
    started: &mut Vec<PageWrite>,
) -> Result<()> {
    cpu(super::CALL);
    let block = fs.volume.block_size();
    let as_taken = |page| fs.pages.is_as_taken(key(inode.no), page);
    while from < to {
        let mut writes = Writes::default();
        let pieces = fs.parts.pieces(inode, from, to, None)?;
        let longer = {
            let state = inode.state();
            state.size_written().min(to) > state.raw.size()
        };
        let in_place = !longer && pieces.iter().all(|p| matches!(p.place, PieceSource::Device(_)));
        if in_place && nothing_moves(fs, inode, from, to)? {
            fs.parts.check_writable()?;
            writes.add(pieces, run, block, &as_taken);
            from = to;
        } else {
            let (pieces, promise) =
                fs.parts.with_blocks(|| allocate_run(fs, inode, from, to, run))?;
            from = pieces.last().map_or(to, |last| last.offset + last.len);
            writes.add(pieces, run, block, &as_taken);
            writes.promise = promise;
        }
        let homeless = writes.homeless;
        started.extend(writes.submit_pages(fs, inode));
        if let Some(at) = homeless {
            let what = format!("inode {}: no place for the data at byte {at}", inode.no);
            return Err(FsError::Io { what }.into());
        }
    }
    Ok(())
}

/// Finds places for the reserved blocks of `[from, to)` bytes of a run and marks what it writes of
/// unwritten extents written, in one transaction; returns the pieces as they are then. They end
/// before `to` if the transaction would become too large.
fn allocate_run(
    fs: &Ext4,
    inode: &Inode,
    from: u64,
    to: u64,
    run: &DirtyRange,
) -> Result<(Vec<Piece>, Option<Completer>)> {
    let block = fs.volume.block_size();
    let mut txn = fs.parts.begin_promised()?.yielding();
    // Also where nothing was reserved: unwritten extents that are split, and blocks that move, may
    // need a block of the tree, and nobody is there who could be refused.
    txn.quota_promised = true;
    let homeless = homeless(fs, &txn, inode, from / block, to.div_ceil(block))?;
    let (size_now, size_before, moving) = {
        let state = inode.state();
        let moving: Vec<_> = state.moving.within(from / block, to.div_ceil(block)).collect();
        (state.size_written(), state.raw.size(), moving)
    };
    let mut to = to;
    for need in &homeless {
        let PlacementRange { start, end, moves } = *need;
        let reached = if moves {
            move_blocks(fs, &mut txn, inode, start, end)?
        } else {
            place_run(fs, &mut txn, inode, start, end, Purpose::DelayedData, false)?
        };
        if reached < end {
            to = reached * block;
            break;
        }
    }
    let pieces = fs.parts.pieces(inode, from, to, Some(&txn))?;
    let pieces = without_untouched(pieces, run, block);
    if has_large_blocks(fs) {
        zero_around(fs, &txn, inode, from, to, &homeless)?;
    }
    let mut unwritten = false;
    for p in pieces.iter().filter(|p| matches!(p.place, PieceSource::Unwritten(_))) {
        mark_written(&mut txn, inode.no, p.offset / block, (p.offset + p.len).div_ceil(block))?;
        unwritten = true;
    }
    let disk_size = size_now.min(to);
    let longer = disk_size > size_before;
    if longer {
        txn.modify_inode(inode.no, |raw| raw.set_size(disk_size))?;
    }
    let ordered = fs.options.data != DataMode::Writeback && (longer || !homeless.is_empty());
    let early = unwritten && fs.volume.has(Bug::WrittenBeforeData);
    let promise = ((ordered || unwritten) && !early).then(|| {
        let (completer, completion) = Completion::pending();
        txn.wait_for(completion);
        completer
    });
    let last = to.div_ceil(block);
    let mut placed = RangeSet::new();
    let ranges = homeless.iter().map(|need| (need.start, need.end)).chain(moving);
    placed.extend(ranges.filter(|(start, _)| *start < last).map(|(s, e)| (s, e.min(last))));
    txn.record();
    finish_placed(fs, inode, txn, &placed.iter().collect::<Vec<_>>())?;
    let pieces = pieces.into_iter().map(Piece::into_written).collect();
    Ok((pieces, promise))
}

/// Whether something was written into these bytes of the file, which lie in one page of the run.
fn is_dirty(run: &DirtyRange, from: u64, to: u64) -> bool {
    let (page, bytes) = in_page(run, from, to);
    let parts: Option<&DirtyParts> = run.parts.get(page);
    parts.is_none_or(|parts| parts.touch(bytes))
}

/// Which page of the run these bytes of the file lie in, and where in it.
fn in_page(run: &DirtyRange, from: u64, to: u64) -> (usize, Range<usize>) {
    let at = from - run.first * PAGE as u64;
    let (page, skip) = ((at / PAGE as u64) as usize, (at % PAGE as u64) as usize);
    (page, skip..skip + (to - from) as usize)
}

/// The pieces, where blocks are smaller than pages, with those unwritten blocks as holes that are
/// in a dirty page and not dirty themselves: nothing is written there, and they stay unwritten.
fn without_untouched(pieces: Vec<Piece>, run: &DirtyRange, block: u64) -> Vec<Piece> {
    if block >= PAGE as u64 {
        return pieces;
    }
    // A block lies in one page.
    let is_dirty = |from: u64, to: u64| is_dirty(run, from, to);
    let mut out = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let PieceSource::Unwritten(start) = piece.place else {
            out.push(piece);
            continue;
        };
        let end = piece.offset + piece.len;
        let mut from = piece.offset;
        while from < end {
            let after = |from: u64| ((from / block + 1) * block).min(end);
            let dirty = is_dirty(from, after(from));
            let mut to = after(from);
            while to < end && is_dirty(to, after(to)) == dirty {
                to = after(to);
            }
            let place = match dirty {
                true => PieceSource::Unwritten(start + (from - piece.offset)),
                false => PieceSource::Hole,
            };
            out.push(Piece { offset: from, len: to - from, place });
            from = to;
        }
    }
    out
}

/// Without delayed allocation: finds places for what was just reserved, at once. They count
/// as unwritten until the data has been written back.
pub(crate) fn allocate_reserved(fs: &Ext4, inode: &Inode, reserved: &RangeSet) -> Result<()> {
    if reserved.is_empty() {
        return Ok(());
    }
    let outcome =
        reserved.iter().try_for_each(|(start, end)| allocate_unwritten(fs, inode, start, end));
    reserved.iter().for_each(|(start, end)| unreserve(fs, inode, start, end));
    outcome
}

fn allocate_unwritten(fs: &Ext4, inode: &Inode, mut start: u64, end: u64) -> Result<()> {
    while start < end {
        let mut txn = fs.parts.begin()?;
        let first = start;
        start = place_run(fs, &mut txn, inode, start, end, Purpose::DelayedData, true)?;
        txn.record();
        finish_placed(fs, inode, txn, &[(first, start)])?;
    }
    Ok(())
}

impl Piece {
    /// The piece once it has been written.
    fn into_written(self) -> Piece {
        match self.place {
            PieceSource::Unwritten(at) => Piece { place: PieceSource::Device(at), ..self },
            _ => self,
        }
    }
}

/// The first block of a piece without a place that has data: what would be lost, where zeros, as
/// those of a hole that was punched into a page, are what a hole shows. A punch or a truncation
/// that came after the run was taken has changed or dropped the page before it took the
/// reservation.
fn data_in_hole(
    piece: &Piece,
    run: &DirtyRange,
    block: u64,
    as_taken: &dyn Fn(u64) -> bool,
) -> Option<u64> {
    if piece.place != PieceSource::Hole {
        return None;
    }
    let step = block.min(PAGE as u64);
    let mut starts = (piece.offset..piece.offset + piece.len).step_by(step as usize);
    starts.find(|from| {
        let (page, bytes) = in_page(run, *from, from + step);
        is_dirty(run, *from, from + step)
            && run.pages[page][bytes].iter().any(|b| *b != 0)
            && as_taken(run.first + page as u64)
    })
}

/// Writes collected before they are submitted, those that touch on the device joined.
#[derive(Default)]
pub(super) struct Writes {
    requests: Vec<(u64, Payload)>,
    /// Of each request the bytes of the file from its first to its last; for pages only.
    covers: Vec<Range<u64>>,
    /// Answered when all writes are done: what a transaction waits for.
    promise: Option<Completer>,
    /// Where in the file there is data that has no place: its reservation is missing.
    homeless: Option<u64>,
}

impl Writes {
    /// Adds the pages of a run, piece by piece. Pieces without a place are zeros that nobody
    /// wrote: they stay holes. `block`: bytes of one. `as_taken`: whether a page, by its number,
    /// still is what the run holds.
    fn add(
        &mut self,
        pieces: Vec<Piece>,
        run: &DirtyRange,
        block: u64,
        as_taken: &dyn Fn(u64) -> bool,
    ) {
        let base = run.first * PAGE as u64;
        for piece in pieces {
            let PieceSource::Device(mut at) = piece.place else {
                self.homeless =
                    self.homeless.or_else(|| data_in_hole(&piece, run, block, as_taken));
                continue;
            };
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
        let submit = |(offset, data)| fs.parts.submit_data(inode, offset, data);
        let writes: Vec<Completion> = self.requests.into_iter().map(submit).collect();
        if let Some(promise) = self.promise {
            super::gather::when_all(&writes, promise);
        }
        writes
    }
}
