//! Requests as system calls on one open file.

use std::io::IoSlice;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock};

use bytes::Bytes;
use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};
use steadfast_block::{BlockError, Payload, Request, Result};

/// Alignment of our own buffers for direct I/O: no device asks for more than a page.
const BUFFER_ALIGN: usize = 4096;
/// Most pieces that the kernel takes in one call (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;

/// How direct I/O wants its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectAlign {
    /// Alignment of addresses in bytes.
    pub memory: usize,
    /// Unit of lengths in bytes.
    pub length: usize,
}

/// An open file together with what is known of its durability.
pub(super) struct Image {
    name: String,
    file: OwnedFd,
    read_only: bool,
    direct: Option<DirectAlign>,
    /// Held shared by an FUA write and exclusively by a flush. Linux reports a write-back error
    /// to one caller of a file only; were the two to run side by side, the flush could succeed
    /// because the write took its error.
    syncing: RwLock<()>,
    syncs_started: AtomicU64,
    /// Number of the last `fdatasync` that succeeded.
    sync_done: AtomicU64,
    /// The first failed flush or FUA write: final.
    failed: OnceLock<BlockError>,
    no_discard: AtomicBool,
    no_dsync: AtomicBool,
    /// Bytes that an image file has at the least; 0 for a block device.
    least: u64,
}

impl Drop for Image {
    /// Unlocks by hand: a child process that another thread is just starting has a copy of the
    /// descriptor until its `exec`, and would keep the lock for that long.
    fn drop(&mut self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::NonBlockingUnlock);
    }
}

impl Image {
    pub(super) fn new(
        name: String,
        file: OwnedFd,
        read_only: bool,
        direct: Option<DirectAlign>,
        least: u64,
    ) -> Self {
        Image {
            name,
            file,
            read_only,
            direct,
            syncing: RwLock::new(()),
            syncs_started: AtomicU64::new(0),
            sync_done: AtomicU64::new(0),
            failed: OnceLock::new(),
            no_discard: AtomicBool::new(false),
            no_dsync: AtomicBool::new(false),
            least,
        }
    }

    /// The open file.
    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    /// Whether it is no block device.
    pub(super) fn is_file(&self) -> bool {
        self.least > 0
    }

    /// Does a request that has been checked.
    pub(super) fn perform(&self, request: Request) -> Result<Bytes> {
        match request {
            Request::Read { offset, len } => return self.read(offset, len as usize),
            Request::Write { offset, data, fua: false } => {
                self.write(offset, data)?;
            }
            Request::Write { offset, data, fua: true } => self.write_durably(offset, data)?,
            Request::Flush => self.flush()?,
            Request::Discard { offset, len } => self.discard(offset, len)?,
        }
        Ok(Bytes::new())
    }

    fn read(&self, offset: u64, len: usize) -> Result<Bytes> {
        if self.direct.is_none() {
            // Not filled with zeros first: that would cost as much as the reading.
            let mut buffer = Vec::with_capacity(len);
            while buffer.len() < len {
                let (at, before) = (offset + buffer.len() as u64, buffer.len());
                let read = || rustix::io::pread(&self.file, spare_capacity(&mut buffer), at);
                self.has_read(at, offset, retry_on_intr(read))?;
                debug_assert!(buffer.len() > before);
            }
            buffer.truncate(len);
            return Ok(Bytes::from(buffer));
        }
        let (mut buffer, start) = self.buffer(len);
        self.fill(offset, &mut buffer[start..start + len])?;
        Ok(Bytes::from(buffer).slice(start..start + len))
    }

    /// Reads into memory that is there. Has been checked.
    pub(super) fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let is_aligned = |a: DirectAlign| out.as_ptr().addr().is_multiple_of(a.memory);
        if self.direct.is_some_and(|align| !is_aligned(align)) {
            out.copy_from_slice(&self.read(offset, out.len())?);
            return Ok(());
        }
        self.fill(offset, out)
    }

    fn fill(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let (at, left) = (offset + done as u64, &mut out[done..]);
            let read = retry_on_intr(|| rustix::io::pread(&self.file, &mut *left, at));
            done += self.has_read(at, offset, read)?;
        }
        Ok(())
    }

    /// What a read at byte `at` has brought, of a request that began at `offset`.
    fn has_read(
        &self,
        at: u64,
        offset: u64,
        read: std::result::Result<usize, Errno>,
    ) -> Result<usize> {
        match read {
            Ok(0) => {
                let reason = format!("the file ends at byte {at}: it was truncated meanwhile");
                Err(self.error("read", offset, reason))
            }
            Ok(n) => Ok(n),
            Err(e) => Err(self.failure("read", at, e)),
        }
    }

    fn write(&self, offset: u64, data: Payload) -> Result<()> {
        self.still_reaches(offset, ("write", offset))?;
        self.put(offset, data, ReadWriteFlags::empty())
            .map_err(|(at, e)| self.failure("write", at, e))
    }

    fn write_durably(&self, offset: u64, data: Payload) -> Result<()> {
        if !self.no_dsync.load(Ordering::Relaxed) {
            let _no_flush = self.syncing.read().unwrap_or_else(PoisonError::into_inner);
            self.still_sound()?;
            self.still_reaches(offset, ("write", offset))?;
            match self.put(offset, data.clone(), ReadWriteFlags::DSYNC) {
                Ok(()) => return Ok(()),
                Err((_, Errno::OPNOTSUPP | Errno::NOSYS)) => {
                    self.no_dsync.store(true, Ordering::Relaxed);
                }
                Err((at, e)) => return Err(self.remember(self.failure("write", at, e))),
            }
        }
        self.write(offset, data)?;
        self.flush()
    }

    /// Writes all of `data`; on failure says at which byte.
    fn put(
        &self,
        offset: u64,
        data: Payload,
        flags: ReadWriteFlags,
    ) -> std::result::Result<(), (u64, Errno)> {
        let mut left = if self.usable_in_place(&data) { data } else { self.aligned_copy(&data) };
        let mut at = offset;
        while !left.is_empty() {
            let pieces: Vec<IoSlice> =
                left.parts().iter().take(PIECES_MAX).map(|p| IoSlice::new(p)).collect();
            let call = || match flags.is_empty() {
                true => rustix::io::pwritev(&self.file, &pieces, at),
                false => rustix::io::pwritev2(&self.file, &pieces, at, flags),
            };
            match retry_on_intr(call) {
                Ok(0) => return Err((at, Errno::IO)),
                Ok(n) => {
                    left = left.slice(n, left.len() - n);
                    at += n as u64;
                }
                Err(e) => return Err((at, e)),
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        let entered = self.syncs_started.load(Ordering::SeqCst);
        let _alone = self.syncing.write().unwrap_or_else(PoisonError::into_inner);
        self.still_sound()?;
        // One that started after this flush came, and has ended, did its work.
        if self.sync_done.load(Ordering::SeqCst) > entered {
            return Ok(());
        }
        let number = self.syncs_started.fetch_add(1, Ordering::SeqCst) + 1;
        self.still_reaches(self.least, ("flush", 0))?;
        match retry_on_intr(|| rustix::fs::fdatasync(&self.file)) {
            Ok(()) => {
                self.sync_done.store(number, Ordering::SeqCst);
                Ok(())
            }
            Err(e) => Err(self.remember(self.failure("flush", 0, e))),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        if self.no_discard.load(Ordering::Relaxed) {
            return Ok(());
        }
        // On a block device too: the kernel turns it into a discard that reads as zeros.
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| rustix::fs::fallocate(&self.file, punch, offset, len)) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                // Discarding is advice: contents that stay are right too.
                self.no_discard.store(true, Ordering::Relaxed);
                Ok(())
            }
            Err(e) => Err(self.failure("discard", offset, e)),
        }
    }

    /// The first bytes of a file at or after `from` that are no hole, perhaps beyond its end.
    pub(super) fn data_from(&self, from: u64) -> Option<Range<u64>> {
        let seek = |to| rustix::fs::seek(&self.file, to);
        match seek(SeekFrom::Data(from)) {
            Ok(data) => Some(data..seek(SeekFrom::Hole(data)).unwrap_or(u64::MAX)),
            Err(Errno::NXIO) => None,
            // Not every file system knows.
            Err(_) => Some(from..u64::MAX),
        }
    }

    /// An image that somebody has cut short has lost what had been durable. A write behind its end
    /// would make it long again, with zeros where the lost bytes were.
    ///
    /// By lseek(2), because fstat(2) looks at the time of change: since Linux 6.13 the next write
    /// then gives the inode a new one, and every durable write takes longer for it.
    fn still_reaches(&self, byte: u64, (op, offset): (&'static str, u64)) -> Result<()> {
        let byte = byte.min(self.least);
        if byte == 0 {
            return Ok(());
        }
        match rustix::fs::seek(&self.file, SeekFrom::End(0)) {
            Ok(now) if now < byte => {
                let least = self.least;
                let reason = format!("its file was cut short: {now} of {least} bytes are left");
                Err(self.remember(self.error(op, offset, reason)))
            }
            _ => Ok(()),
        }
    }

    fn still_sound(&self) -> Result<()> {
        self.failed.get().map_or(Ok(()), |e| Err(e.clone()))
    }

    /// Keeps the first failure that leaves it unknown what is durable.
    fn remember(&self, error: BlockError) -> BlockError {
        self.failed.get_or_init(|| error).clone()
    }

    /// A buffer for `len` bytes from the returned start on, aligned where that is needed.
    fn buffer(&self, len: usize) -> (Vec<u8>, usize) {
        if self.direct.is_none() {
            return (vec![0; len], 0);
        }
        let buffer = vec![0; len + BUFFER_ALIGN];
        let start = buffer.as_ptr().align_offset(BUFFER_ALIGN);
        (buffer, start)
    }

    fn usable_in_place(&self, data: &Payload) -> bool {
        let Some(DirectAlign { memory, length }) = self.direct else { return true };
        let fits =
            |p: &Bytes| p.as_ptr().addr().is_multiple_of(memory) && p.len().is_multiple_of(length);
        data.parts().iter().all(fits)
    }

    fn aligned_copy(&self, data: &Payload) -> Payload {
        let (mut buffer, start) = self.buffer(data.len());
        let mut at = start;
        for part in data.parts() {
            buffer[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Bytes::from(buffer).slice(start..at).into()
    }

    fn error(&self, op: &'static str, offset: u64, reason: String) -> BlockError {
        BlockError::Io { device: self.name.clone(), op, offset, reason }
    }

    fn failure(&self, op: &'static str, offset: u64, errno: Errno) -> BlockError {
        let text = std::io::Error::from(errno).to_string();
        match errno {
            Errno::NODEV | Errno::NXIO => {
                BlockError::Gone { device: self.name.clone(), reason: text }
            }
            Errno::NOSPC | Errno::DQUOT => {
                let reason = format!("{text} on the file system that holds the image");
                self.error(op, offset, reason)
            }
            _ => self.error(op, offset, text),
        }
    }
}
