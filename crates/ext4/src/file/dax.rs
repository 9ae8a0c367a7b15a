//! Files that are read and written in place, in the device's memory (`dax=`).
//!
//! Nothing of such a file is in the page cache. What it promises is what the kernel's DAX does
//! (Documentation/filesystems/dax.rst):
//!
//! * A write inside the file is in memory when it returns, and durable after fsync: its lines have
//!   been written back, only the fence is missing. A cut before it may leave any of its words of
//!   8 bytes old or new. With O_SYNC and O_DSYNC the writer makes the fence, and nobody else
//!   needs to know of it.
//! * Blocks that a write needs are taken, filled (zeros around the data) and fenced, and then the
//!   transaction is finished that maps them, or marks them as written, and sets the size. So a
//!   crash leaves either the file without them or the data; never what the blocks held before.
//! * Zeros beyond the end of a file are stored before the transaction that cuts it.
//!
//! # Who is
//!
//! With `dax=always` every regular file, with `dax=inode` (the default) those that have the flag
//! (`chattr +x`, taken from the directory when they are made), on devices that are memory. Not
//! those whose data goes through the journal. Refused where blocks are not pages and where files
//! may be in their inodes, as the kernel does.

use std::ops::Range;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use steadfast_block::DirectMemory;
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_pagecache::PAGE;
use steadfast_vfs::{FsError, OpenFlags};

use super::in_place::{is_dax, memory};
use super::pieces::{Piece, PieceSource, with_images};
use super::place::place_run;
use super::sync::fence;
use super::times::{check_end, touch_within, touch_written};
use crate::alloc::Purpose;
use crate::extents::mark_written;
use crate::meta::MetaLog;
use crate::mounted::{Ext4, key};
use crate::planted::Bug;
use crate::state::{Inode, OpenFile, UnwrittenPart, WriteError};

/// Blocks that one transaction fills at most: the metadata lock is held meanwhile, for as long as
/// it takes to store them.
const BLOCKS_AT_ONCE: u64 = 64;
/// Bytes of the sectors that poison comes in.
const SECTOR: u32 = 512;
/// Zeros to store from.
static ZEROS: [u8; PAGE] = [0; PAGE];

/// Reads bytes that are inside the file. The caller has the lock of its data.
pub(crate) fn read_dax(fs: &Ext4, inode: &Inode, bytes: Range<u64>) -> Result<Bytes> {
    let mut out = vec![0; (bytes.end - bytes.start) as usize];
    load(fs, inode, bytes.start, &mut out)?;
    Ok(out.into())
}

/// Fills `out`, which is zeros, with the file's bytes at `offset`.
pub(super) fn load(fs: &Ext4, inode: &Inode, offset: u64, out: &mut [u8]) -> Result<()> {
    let memory = memory(fs)?;
    let end = offset + out.len() as u64;
    let mut pieces = fs.parts.pieces(inode, offset, end, None)?;
    if matches!(fs.parts.log, MetaLog::ReadOnly(_)) {
        pieces = with_images(&fs.parts.log, fs.volume.block_size(), pieces);
    }
    for Piece { offset: from, len, place } in pieces {
        let from = (from - offset) as usize;
        let out = &mut out[from..from + len as usize];
        match place {
            PieceSource::Device(at) => memory.load(at, out)?,
            PieceSource::Image(bytes) => out.copy_from_slice(&bytes),
            PieceSource::Unwritten(_) | PieceSource::Hole => {}
        }
    }
    Ok(())
}

/// Writes `data`; returns how many bytes were written, and where they end. `None`: the file is
/// not used in place any more.
pub(crate) fn write_dax(
    fs: &Ext4,
    file: &OpenFile,
    how: OpenFlags,
    offset: u64,
    data: &Bytes,
) -> Result<Option<(usize, u64)>> {
    let inode = &*file.inode;
    let _exclusive = inode.data_lock.write();
    if !is_dax(fs, inode) {
        return Ok(None);
    }
    let size = inode.state().size;
    let offset = if how.contains(OpenFlags::APPEND) { size } else { offset };
    let end = check_end(fs, inode, offset, data.len() as u64)?;
    touch_written(fs, inode)?;
    let mut at = offset;
    while at < end {
        let rest = &data[(at - offset) as usize..];
        match write_some(fs, inode, how, at, rest) {
            Ok(reached) => at = reached,
            // What is written so far is: as the kernel answers when space runs out on the way.
            Err(Ext4Error::Fs(FsError::NoSpace { .. } | FsError::QuotaExceeded)) if at > offset => {
                break;
            }
            Err(e) => {
                report_not_stored(fs, inode, at..end, &e);
                return Err(e);
            }
        }
    }
    Ok(Some(((at - offset) as usize, at)))
}

/// Nothing of a file in place is in the page cache, which counts what cannot be written: the
/// mount's status must hear of memory that fails from here.
fn report_not_stored(fs: &Ext4, inode: &Inode, bytes: Range<u64>, error: &Ext4Error) {
    if matches!(error, Ext4Error::Block(_)) {
        let part = UnwrittenPart { inode: inode.no, bytes, kept: false };
        let error = &FsError::from(error.clone());
        fs.volume.status.notify(&WriteError::NotStored { part, error });
    }
}

/// Writes from byte `at` on as much of `data` as lies in blocks of one kind; returns how far.
fn write_some(fs: &Ext4, inode: &Inode, how: OpenFlags, at: u64, data: &[u8]) -> Result<u64> {
    let size = inode.state().size;
    let end = at + data.len() as u64;
    if at < size {
        let inside = end.min(size);
        let pieces = fs.parts.pieces(inode, at, inside, None)?;
        if let Some(Piece { len, place: PieceSource::Device(place), .. }) = pieces.first() {
            let data = &data[..*len as usize];
            put(fs, *place, data)?;
            match how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
                true if fs.volume.has(Bug::DaxFsyncWithoutFence) => {}
                true => fence(fs)?,
                false => note_stored(fs, inode),
            }
            return Ok(at + len);
        }
    }
    fs.with_space(|| write_new(fs, inode, at, data))
}

/// Stores data so that a fence makes it durable. Where the memory cannot be stored to, whole
/// sectors are written by a request: that clears poison.
fn put(fs: &Ext4, at: u64, data: &[u8]) -> Result<()> {
    let memory = memory(fs)?;
    let stored = match fs.volume.has(Bug::DaxWriteBackOmitted) {
        true => memory.store(at, data),
        false => memory.store_through(at, data),
    };
    let whole = |n: u64| n.is_multiple_of(u64::from(SECTOR));
    match stored {
        Err(_) if whole(at) && whole(data.len() as u64) => {
            Ok(fs.volume.device.write_fua(at, Bytes::copy_from_slice(data).into())?)
        }
        stored => Ok(stored?),
    }
}

/// Stored, and not fenced yet: the next flush of the device covers it (see `outside`).
pub(crate) fn note_stored(fs: &Ext4, inode: &Inode) {
    if let MetaLog::Journal(journal) = &fs.parts.log
        && !fs.volume.has(Bug::DaxFsyncWithoutFence)
    {
        let number = journal.flushes().after_store();
        inode.outside.fetch_max(number, Ordering::SeqCst);
        fs.parts.outside.fetch_max(number, Ordering::SeqCst);
    }
}

/// Writes `data` at byte `at` to blocks of which the first has no contents yet or ends beyond
/// the file, in one transaction; returns how far that went.
pub(crate) fn write_new(fs: &Ext4, inode: &Inode, at: u64, data: &[u8]) -> Result<u64> {
    let block = fs.volume.block_size();
    let memory = memory(fs)?;
    zero_to(fs, inode, at)?;
    let from = at / block;
    let until = (at + data.len() as u64).div_ceil(block).min(from + BLOCKS_AT_ONCE);
    let mut txn = fs.parts.begin()?;
    let before = fs.parts.pieces(inode, from * block, until * block, Some(&txn))?;
    let late = fs.volume.has(Bug::DaxDataAfterItsTransaction);
    let mut stored: Vec<(u64, &[u8])> = Vec::new();
    let mut reached = until;
    for hole in before.iter().filter(|p| p.place == PieceSource::Hole) {
        let (a, b) = (hole.offset / block, (hole.offset + hole.len) / block);
        let placed = place_run(fs, &mut txn, inode, a, b, Purpose::Data, false)?;
        if placed < b {
            // The transaction is full.
            reached = placed;
            break;
        }
    }
    let end = (at + data.len() as u64).min(reached * block);
    for piece in &before {
        let fresh = !matches!(piece.place, PieceSource::Device(_));
        let to = (piece.offset + piece.len).min(reached * block);
        if piece.offset >= to {
            break;
        }
        for place in fs.parts.pieces(inode, piece.offset, to, Some(&txn))? {
            let (PieceSource::Device(start) | PieceSource::Unwritten(start)) = place.place else {
                return Err(Ext4Error::Corrupt {
                    place: format!("inode {}", inode.no.0),
                    what: "a block that was given a place is a hole".into(),
                });
            };
            let stretch = place.offset..place.offset + place.len;
            let written = stretch.start.max(at)..stretch.end.min(end);
            if fresh {
                zero(memory, start, written.start - stretch.start)?;
                let after = start + (written.end - stretch.start);
                zero(memory, after, stretch.end - written.end)?;
            }
            let part = &data[(written.start - at) as usize..(written.end - at) as usize];
            stored.push((start + (written.start - stretch.start), part));
        }
    }
    if !late {
        stored.iter().try_for_each(|(at, part)| put(fs, *at, part))?;
    }
    if !fs.volume.has(Bug::DaxFenceOmitted) {
        fence(fs)?;
    }
    mark_written(&mut txn, inode.no, from, reached)?;
    if end > txn.raw_inode(inode.no)?.size() {
        txn.modify_inode(inode.no, |raw| raw.set_size(end))?;
    }
    touch_within(fs, &mut txn, inode)?;
    txn.record();
    txn.finish()?;
    if late {
        stored.iter().try_for_each(|(at, part)| put(fs, *at, part))?;
    }
    let mut state = inode.state();
    state.size = state.size.max(end);
    Ok(end)
}

/// The file is about to be longer, and zeros up to byte `at`. What its last block has beyond
/// its end need not be zeros: data of a write that a crash took the end away from, for one.
pub(crate) fn zero_to(fs: &Ext4, inode: &Inode, at: u64) -> Result<()> {
    let size = inode.state().size;
    let end = size.next_multiple_of(fs.volume.block_size()).min(at);
    if size < end { store_zeros(fs, inode, size..end) } else { Ok(()) }
}

/// Stores zeros over bytes of a file, where they have places, and fences them.
pub(crate) fn store_zeros(fs: &Ext4, inode: &Inode, bytes: Range<u64>) -> Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let memory = memory(fs)?;
    for piece in fs.parts.pieces(inode, bytes.start, bytes.end, None)? {
        if let PieceSource::Device(at) = piece.place {
            zero(memory, at, piece.len)?;
        }
    }
    fence(fs)
}

/// Takes everything of a file out of the page cache: from now on it is used in place, or not
/// any more. The caller has the exclusive lock of its data.
pub(crate) fn leave_page_cache(fs: &Ext4, inode: &Inode) -> Result<()> {
    fs.pages.flush(key(inode.no))?;
    fs.pages.check_lost(key(inode.no), &(0..u64::MAX))?;
    fs.pages.invalidate_before_direct_write(key(inode.no), 0..u64::MAX);
    fs.pages.invalidate(key(inode.no), 0..u64::MAX);
    Ok(())
}

fn zero(memory: &dyn DirectMemory, mut at: u64, mut len: u64) -> Result<()> {
    while len > 0 {
        let part = len.min(PAGE as u64);
        memory.store_through(at, &ZEROS[..part as usize])?;
        (at, len) = (at + part, len - part);
    }
    Ok(())
}
