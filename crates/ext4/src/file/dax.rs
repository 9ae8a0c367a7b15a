//! Files that are read and written in place, in the device's memory (`dax=`).
//!
//! Nothing of such a file is in the page cache. What it promises is what the kernel's DAX does
//! (Documentation/filesystems/dax.rst):
//!
//! * A write inside the file is in memory when it returns, and durable after fsync: its lines have
//!   been written back, only the fence is missing. A cut before it may leave any of its words of
//!   8 bytes old or new. With O_SYNC and O_DSYNC whoever writes makes the fence, and nobody else
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
use steadfast_pagecache::PAGE;
use steadfast_vfs::{FileType, FsError, OpenFlags};

use super::pieces::{Piece, Place};
use crate::alloc::Purpose;
use crate::error::{Ext4Error, Result};
use crate::fs::{Ext4, OpenFile, key};
use crate::inode::Inode;
use crate::meta::{MetaLog, Trouble, UnwrittenPart, Volume};
use crate::mount::{DataMode, Dax, MountOptions};
use crate::ondisk::{Incompat, InodeFlags};
use crate::planted::Bug;

/// Blocks that one transaction fills at most: the metadata lock is held meanwhile, for as long as
/// it takes to store them.
const BLOCKS_AT_ONCE: u64 = 64;
/// Bytes of the sectors that poison comes in.
const SECTOR: u32 = 512;
/// Zeros to store from.
static ZEROS: [u8; PAGE] = [0; PAGE];

/// Whether files can be used in place on this device with these options; by name what cannot be.
pub(crate) fn check(volume: &Volume, options: &MountOptions) -> Result<bool> {
    let refuse = |what: &str| {
        let device = volume.device.info().name;
        let what = format!("dax=always: {device}: {what}");
        Err(Ext4Error::Refused { what })
    };
    let layout = &volume.layout;
    let hindrance = if volume.device.direct_memory().is_none() {
        Some(
            "the device is not memory, or is a sector namespace, which is used by way of a table, \
             or cannot be mapped: mount without dax, or make a range of memory with `steadfast \
             pmem create`, of mode raw or fsdax",
        )
    } else if layout.block_size as usize != PAGE {
        Some("the file system's blocks are no pages of 4096 bytes: make it with mkfs -b 4096")
    } else if layout.features.incompat.contains(Incompat::INLINE_DATA) {
        Some("the file system may hold files in their inodes (inline_data): mount without dax")
    } else {
        None
    };
    match (options.dax, hindrance) {
        (Dax::Never, _) => Ok(false),
        (Dax::Inode, hindrance) => Ok(hindrance.is_none() && options.data != DataMode::Transact),
        (Dax::Always, Some(what)) => refuse(what),
        (Dax::Always, None) => Ok(true),
    }
}

impl Ext4 {
    /// Whether the inode's data is used in place.
    pub(crate) fn is_dax(&self, inode: &Inode) -> bool {
        if !self.dax {
            return false;
        }
        let raw = &inode.state().raw;
        raw.file_type() == Some(FileType::Regular)
            && (self.options.dax == Dax::Always || raw.flags().contains(InodeFlags::DAX))
            && !(self.options.data == DataMode::Journal
                || raw.flags().contains(InodeFlags::JOURNAL_DATA))
    }

    /// The device's memory, of a file that is used in place.
    pub(super) fn memory(&self) -> Result<&dyn DirectMemory> {
        self.volume.device.direct_memory().ok_or_else(|| {
            let device = self.volume.device.info().name;
            let reason = "it is no longer memory".into();
            Ext4Error::Block(steadfast_block::BlockError::Gone { device, reason })
        })
    }

    /// Reads up to `len` bytes at `offset`, which is inside the file. The caller has the lock of
    /// its data.
    pub(super) fn read_dax(
        &self,
        inode: &Inode,
        offset: u64,
        len: usize,
        size: u64,
    ) -> Result<Bytes> {
        let end = offset.saturating_add(len as u64).min(size);
        let mut out = vec![0; (end - offset) as usize];
        self.load(inode, offset, &mut out)?;
        Ok(out.into())
    }

    /// Fills `out`, which is zeros, with the file's bytes at `offset`.
    pub(super) fn load(&self, inode: &Inode, offset: u64, out: &mut [u8]) -> Result<()> {
        let memory = self.memory()?;
        let end = offset + out.len() as u64;
        let mut pieces = self.volume.pieces(inode, offset, end, None)?;
        if matches!(self.volume.log, MetaLog::ReadOnly(_)) {
            pieces = self.volume.with_images(pieces);
        }
        for Piece { offset: from, len, place } in pieces {
            let from = (from - offset) as usize;
            let out = &mut out[from..from + len as usize];
            match place {
                Place::Device(at) => memory.load(at, out)?,
                Place::Image(bytes) => out.copy_from_slice(&bytes),
                Place::Unwritten(_) | Place::Hole => {}
            }
        }
        Ok(())
    }

    /// Writes `data`; returns how many bytes were written, and where they end. `None`: the file is
    /// not used in place any more.
    pub(super) fn write_dax(
        &self,
        file: &OpenFile,
        how: OpenFlags,
        offset: u64,
        data: &Bytes,
    ) -> Result<Option<(usize, u64)>> {
        let inode = &*file.inode;
        let _exclusive = inode.data_lock.write();
        if !self.is_dax(inode) {
            return Ok(None);
        }
        let size = inode.state().size;
        let offset = if how.contains(OpenFlags::APPEND) { size } else { offset };
        let end = self.check_end(inode, offset, data.len() as u64)?;
        self.touch_written(inode)?;
        let mut at = offset;
        while at < end {
            let rest = &data[(at - offset) as usize..];
            match self.write_some(inode, how, at, rest) {
                Ok(reached) => at = reached,
                // What is written so far is: as the kernel answers when space runs out on the way.
                Err(Ext4Error::Fs(FsError::NoSpace { .. } | FsError::QuotaExceeded))
                    if at > offset =>
                {
                    break;
                }
                Err(e) => {
                    self.tell_not_stored(inode, at..end, &e);
                    return Err(e);
                }
            }
        }
        Ok(Some(((at - offset) as usize, at)))
    }

    /// Nothing of a file in place is in the page cache, which counts what cannot be written: the
    /// mount's status must hear of memory that fails from here.
    fn tell_not_stored(&self, inode: &Inode, bytes: Range<u64>, error: &Ext4Error) {
        if matches!(error, Ext4Error::Block(_)) {
            let part = UnwrittenPart { inode: inode.no, bytes, kept: false };
            let error = &FsError::from(error.clone());
            self.volume.status.tell(&Trouble::NotStored { part, error });
        }
    }

    /// Writes from byte `at` on as much of `data` as lies in blocks of one kind; returns how far.
    fn write_some(&self, inode: &Inode, how: OpenFlags, at: u64, data: &[u8]) -> Result<u64> {
        let size = inode.state().size;
        let end = at + data.len() as u64;
        if at < size {
            let inside = end.min(size);
            let pieces = self.volume.pieces(inode, at, inside, None)?;
            if let Some(Piece { len, place: Place::Device(place), .. }) = pieces.first() {
                let data = &data[..*len as usize];
                self.put(*place, data)?;
                match how.intersects(OpenFlags::SYNC | OpenFlags::DSYNC) {
                    true if self.volume.has(Bug::DaxFsyncWithoutFence) => {}
                    true => self.fence()?,
                    false => self.note_stored(inode),
                }
                return Ok(at + len);
            }
        }
        self.with_space(|| self.write_new(inode, at, data))
    }

    /// Stores data so that a fence makes it durable. Where the memory cannot be stored to, whole
    /// sectors are written by a request: that clears poison.
    fn put(&self, at: u64, data: &[u8]) -> Result<()> {
        let memory = self.memory()?;
        let stored = match self.volume.has(Bug::DaxWriteBackOmitted) {
            true => memory.store(at, data),
            false => memory.store_through(at, data),
        };
        let whole = |n: u64| n.is_multiple_of(u64::from(SECTOR));
        match stored {
            Err(_) if whole(at) && whole(data.len() as u64) => {
                Ok(self.volume.device.write_fua(at, Bytes::copy_from_slice(data).into())?)
            }
            stored => Ok(stored?),
        }
    }

    /// Stored, and not fenced yet: the next flush of the device covers it (see `outside`).
    pub(super) fn note_stored(&self, inode: &Inode) {
        if let MetaLog::Journal(journal) = &self.volume.log
            && !self.volume.has(Bug::DaxFsyncWithoutFence)
        {
            let number = journal.flushes().after_store();
            inode.outside.fetch_max(number, Ordering::SeqCst);
            self.volume.outside.fetch_max(number, Ordering::SeqCst);
        }
    }

    /// Writes `data` at byte `at` to blocks of which the first has no contents yet or ends beyond
    /// the file, in one transaction; returns how far that went.
    pub(super) fn write_new(&self, inode: &Inode, at: u64, data: &[u8]) -> Result<u64> {
        let block = self.volume.block_size();
        let memory = self.memory()?;
        self.zero_to(inode, at)?;
        let from = at / block;
        let until = (at + data.len() as u64).div_ceil(block).min(from + BLOCKS_AT_ONCE);
        let mut txn = self.volume.begin()?;
        let before = self.volume.pieces(inode, from * block, until * block, Some(&txn))?;
        let late = self.volume.has(Bug::DaxDataAfterItsTransaction);
        let mut stored: Vec<(u64, &[u8])> = Vec::new();
        let mut reached = until;
        for hole in before.iter().filter(|p| p.place == Place::Hole) {
            let (a, b) = (hole.offset / block, (hole.offset + hole.len) / block);
            let placed = self.place_blocks(&mut txn, inode, a, b, Purpose::Data, false)?;
            if placed < b {
                // The transaction is full.
                reached = placed;
                break;
            }
        }
        let end = (at + data.len() as u64).min(reached * block);
        for piece in &before {
            let fresh = !matches!(piece.place, Place::Device(_));
            let to = (piece.offset + piece.len).min(reached * block);
            if piece.offset >= to {
                break;
            }
            for place in self.volume.pieces(inode, piece.offset, to, Some(&txn))? {
                let (Place::Device(start) | Place::Unwritten(start)) = place.place else {
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
            stored.iter().try_for_each(|(at, part)| self.put(*at, part))?;
        }
        if !self.volume.has(Bug::DaxFenceOmitted) {
            self.fence()?;
        }
        txn.mark_written(inode.no, from, reached)?;
        if end > txn.raw_inode(inode.no)?.size() {
            txn.modify_inode(inode.no, |raw| raw.set_size(end))?;
        }
        self.touch_within(&mut txn, inode)?;
        txn.tell();
        txn.finish()?;
        if late {
            stored.iter().try_for_each(|(at, part)| self.put(*at, part))?;
        }
        let mut state = inode.state();
        state.size = state.size.max(end);
        Ok(end)
    }

    /// The file is about to be longer, and zeros up to byte `at`. What its last block has beyond
    /// its end need not be zeros: data of a write that a crash took the end away from, for one.
    pub(super) fn zero_to(&self, inode: &Inode, at: u64) -> Result<()> {
        let size = inode.state().size;
        let end = size.next_multiple_of(self.volume.block_size()).min(at);
        if size < end { self.store_zeros(inode, size..end) } else { Ok(()) }
    }

    /// Stores zeros over bytes of a file, where they have places, and fences them.
    pub(super) fn store_zeros(&self, inode: &Inode, bytes: Range<u64>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let memory = self.memory()?;
        for piece in self.volume.pieces(inode, bytes.start, bytes.end, None)? {
            if let Place::Device(at) = piece.place {
                zero(memory, at, piece.len)?;
            }
        }
        self.fence()
    }

    /// Takes everything of a file out of the page cache: from now on it is used in place, or not
    /// any more. The caller has the exclusive lock of its data.
    pub(crate) fn leave_page_cache(&self, inode: &Inode) -> Result<()> {
        self.pages.flush(key(inode.no))?;
        self.pages.check_lost(key(inode.no), &(0..u64::MAX))?;
        self.pages.drop_unmended(key(inode.no), 0..u64::MAX);
        self.pages.invalidate(key(inode.no), 0..u64::MAX);
        Ok(())
    }
}

fn zero(memory: &dyn DirectMemory, mut at: u64, mut len: u64) -> Result<()> {
    while len > 0 {
        let part = len.min(PAGE as u64);
        memory.store_through(at, &ZEROS[..part as usize])?;
        (at, len) = (at + part, len - part);
    }
    Ok(())
}
