//! Writing past the page cache.
//!
//! An overwrite of blocks that are all in place needs no transaction and only the shared lock.
//! Anything else takes the exclusive one, as in the kernel: holes inside the file become
//! unwritten extents, which become written when the data is down; a write beyond the end maps
//! its blocks first, with the inode among the orphans so that a crash takes them back, then
//! writes, then sets the size. A block map cannot hold unwritten blocks: there, a write into a
//! hole inside the file goes through the page cache (as the kernel's ENOTBLK).

use std::time::Duration;

use bytes::Bytes;
use steadfast_block::Completion;
use steadfast_ext4_format::Result;
use steadfast_pagecache::PAGE;
use steadfast_runtime::cpu;

use super::in_place::is_dax;
use super::inline::move_out_of_inode;
use super::pieces::{Piece, PieceSource, all_in_place};
use super::place::place_run;
use super::reserve::{finish_placed, promised};
use super::times::{check_end, touch_written};
use super::truncate::cut_to_size;
use super::writeback::Writes;
use crate::extents::mark_written;
use crate::mounted::{Ext4, key};
use crate::state::{Inode, OpenFile};

/// Simulated processor time of a direct write beside the call itself: setting the request up,
/// the trip through the block layer and the interrupt at its end. Kernel 3 to 6 on a 3 GHz
/// processor: some 10 µs.
const REQUEST: Duration = Duration::from_micros(10);
/// Pinning one page of the caller's buffer and adding it to the request: 100 to 200 ns.
const PIN_PAGE: Duration = Duration::from_nanos(150);

/// Writes whole blocks. Returns how many bytes were written, and where they end; `None` if
/// it cannot be done past the page cache.
pub(crate) fn write_direct(
    fs: &Ext4,
    file: &OpenFile,
    offset: u64,
    data: &Bytes,
) -> Result<Option<(usize, u64)>> {
    let inode = &*file.inode;
    let end = check_end(fs, inode, offset, data.len() as u64)?;
    cpu(REQUEST + PIN_PAGE * data.len().div_ceil(PAGE) as u32);
    let done = (data.len(), end);
    {
        let _shared = inode.data_lock.read();
        if is_dax(fs, inode) {
            return Ok(None);
        }
        if end <= inode.state().size {
            fs.pages.flush_range(key(inode.no), offset..end)?;
            let pieces = fs.parts.pieces(inode, offset, end, None)?;
            if all_in_place(&pieces) {
                touch_written(fs, inode)?;
                write_pieces(fs, inode, pieces, offset, end, data)?;
                return Ok(Some(done));
            }
        }
    }
    let _exclusive = inode.data_lock.write();
    if is_dax(fs, inode) {
        return Ok(None);
    }
    touch_written(fs, inode)?;
    move_out_of_inode(fs, inode)?;
    fs.pages.flush_range(key(inode.no), offset..end)?;
    let size = inode.state().size;
    let pieces = fs.parts.pieces(inode, offset, end, None)?;
    if end <= size && all_in_place(&pieces) {
        write_pieces(fs, inode, pieces, offset, end, data)?;
        return Ok(Some(done));
    }
    let hole_inside = |p: &Piece| p.place == PieceSource::Hole && p.offset < size;
    if inode.has_block_map() && pieces.iter().any(hole_inside) {
        return Ok(None);
    }
    let written = map_for_write(fs, inode, offset, end, size, pieces)
        .and_then(|pieces| write_pieces(fs, inode, pieces, offset, end, data));
    match written {
        Ok(written) => settle_write(fs, inode, offset, end, size, written)?,
        Err(e) => {
            if end > size {
                // The blocks beyond the end hold nobody's data. If they cannot be freed the inode
                // stays an orphan, and the next mount does it: what the caller is to know is why
                // nothing was written.
                let _ = cut_to_size(fs, inode);
            }
            return Err(e);
        }
    }
    Ok(Some(done))
}

/// Gives every block of `[offset, end)` a place.
fn map_for_write(
    fs: &Ext4,
    inode: &Inode,
    offset: u64,
    end: u64,
    size: u64,
    pieces: Vec<Piece>,
) -> Result<Vec<Piece>> {
    let block = fs.volume.block_size();
    let mut holes: Vec<(u64, u64, bool)> = Vec::new();
    for hole in pieces.iter().filter(|p| p.place == PieceSource::Hole) {
        let (from, to) = (hole.offset / block, (hole.offset + hole.len) / block);
        let split = size.div_ceil(block).clamp(from, to);
        holes.extend([(from, split, true), (split, to, false)]);
    }
    let mut is_orphan = end <= size;
    for (mut from, to, unwritten) in holes {
        while from < to {
            let mut txn = fs.parts.begin()?;
            if !std::mem::replace(&mut is_orphan, true) {
                txn.orphans.add(&mut txn, inode.no)?;
            }
            let start = from;
            // Data that was lost may have left its reservation.
            let (until, purpose) = promised(fs, inode, start, to);
            from = place_run(fs, &mut txn, inode, start, until, purpose, unwritten)?;
            finish_placed(fs, inode, txn, &[(start, from)])?;
        }
    }
    fs.parts.pieces(inode, offset, end, None)
}

/// The data is down: the blocks are written, and the file is as long as it is. The writes
/// have completed, but perhaps only into the device's cache: the transaction claims that they
/// are in place, so it must know of them, for the flush before its commit block.
fn settle_write(
    fs: &Ext4,
    inode: &Inode,
    offset: u64,
    end: u64,
    size: u64,
    written: Vec<Completion>,
) -> Result<()> {
    let block = fs.volume.block_size();
    let mut txn = fs.parts.begin()?;
    written.into_iter().for_each(|w| txn.wait_for(w));
    mark_written(&mut txn, inode.no, offset / block, end / block)?;
    // Also inside the file, where delayed data has made it longer than it is on disk: written
    // blocks beyond the size on disk would be damage.
    if end > txn.raw_inode(inode.no)?.size() {
        txn.modify_inode(inode.no, |raw| raw.set_size(end))?;
    }
    if end > size {
        txn.orphans.whole(&mut txn, inode.no)?;
    }
    txn.record();
    txn.finish()?;
    let mut state = inode.state();
    state.size = state.size.max(end);
    Ok(())
}

/// Writes `data`, one request for each run on the device, all in flight together. Pages of
/// the range leave the cache before, and those that a read-ahead brings meanwhile after. What
/// an earlier failed write left missing is made good by a write that succeeds only.
fn write_pieces(
    fs: &Ext4,
    inode: &Inode,
    pieces: Vec<Piece>,
    offset: u64,
    end: u64,
    data: &Bytes,
) -> Result<Vec<Completion>> {
    fs.pages.invalidate_before_direct_write(key(inode.no), offset..end);
    let mut writes = Writes::default();
    for piece in pieces {
        if let PieceSource::Device(at) | PieceSource::Unwritten(at) = piece.place {
            let from = (piece.offset - offset) as usize;
            writes.push(at, data.slice(from..from + piece.len as usize));
        }
    }
    let started = writes.submit(fs, inode);
    let outcome = Completion::wait_all(&started);
    if let Err(e) = outcome {
        fs.pages.invalidate_before_direct_write(key(inode.no), offset..end);
        return Err(e.into());
    }
    fs.pages.invalidate(key(inode.no), offset..end);
    Ok(started)
}
