//! Ranges of files that are loaded and stored in place: what `mmap` is to a program whose file
//! system runs in its own process.
//!
//! A store into a hole, or into space that was never written, first gives it zeros in a
//! transaction that is durable when the store returns (what `MAP_SYNC` promises); after that
//! [`FileMapping::persist`] is all that a store needs. Locks of the file are held for each call
//! only: a truncation comes in between, and what lies beyond the new end answers with an error,
//! where a program would get a SIGBUS. A store does not change the file's times; the kernel's does
//! at the first of each page.

use std::ops::Range;
use std::sync::Arc;

use steadfast_vfs::{Fh, FileSystem, FsError, OpenFlags, Result};

use super::dax::{load, note_stored, write_new};
use super::in_place::{is_dax, memory};
use super::pieces::{Piece, PieceSource};
use super::sync::{fence, make_durable};
use crate::mounted::{Ext4, key};
use crate::state::OpenFile;

/// Zeros that are stored at once.
const ZEROS_AT_ONCE: u64 = 64 << 10;

/// A range of an open file that is used in place. It keeps the file open.
pub struct FileMapping {
    fs: Arc<Ext4>,
    fh: Fh,
    file: Arc<OpenFile>,
    range: Range<u64>,
}

impl Ext4 {
    /// Maps `range` bytes of an open file. It may reach beyond the file's end, which may move.
    ///
    /// # Errors
    /// Unsupported if the file is not used in place (`dax=`); a bad handle; an empty range.
    pub fn map(self: &Arc<Self>, fh: Fh, range: Range<u64>) -> Result<FileMapping> {
        let file = self.handles.get(fh)?;
        if range.is_empty() {
            return Err(FsError::Invalid { what: "an empty range cannot be mapped" });
        }
        if !is_dax(self, &file.inode) {
            let what = "mapping a file that is not used in place: mount with dax=always, or set \
                        its flag (chattr +x)";
            return Err(FsError::Unsupported { what: what.into() });
        }
        let errors = self.pages.error_cursor(key(file.inode.no));
        let fh = self.handles.add(Arc::clone(&file.inode), file.flags, errors)?;
        let file = self.handles.get(fh)?;
        Ok(FileMapping { fs: Arc::clone(self), fh, file, range })
    }
}

impl FileMapping {
    /// Bytes of the range.
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Never: an empty range is not mapped.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Fills `out` from byte `at` of the range. What has no place is zeros.
    ///
    /// # Errors
    /// Invalid beyond the range or the file's end; that of the memory.
    pub fn load(&self, at: u64, out: &mut [u8]) -> Result<()> {
        let inode = &*self.file.inode;
        let shared = inode.data_lock.read();
        let bytes = self.bytes(at, out.len() as u64)?;
        out.fill(0);
        let loaded = load(&self.fs, inode, bytes.start, out);
        drop(shared);
        self.fs.outcome(loaded)
    }

    /// Stores `data` at byte `at` of the range: words of 8 bytes at a time, durable after
    /// [`persist`](Self::persist).
    ///
    /// # Errors
    /// As for [`load`](Self::load); no space; a file that was opened for reading only.
    pub fn store(&self, at: u64, data: &[u8]) -> Result<()> {
        if !self.file.flags.contains(OpenFlags::WRITE) {
            return Err(FsError::BadHandle);
        }
        loop {
            {
                let _shared = self.file.inode.data_lock.read();
                let bytes = self.bytes(at, data.len() as u64)?;
                let stored = self.store_in_place(bytes, data);
                if let Some(()) = self.fs.outcome(stored)? {
                    return Ok(());
                }
            }
            self.give_places(at, data.len() as u64)?;
        }
    }

    /// Makes what was stored in `len` bytes from byte `at` on durable.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn persist(&self, at: u64, len: u64) -> Result<()> {
        let inode = &*self.file.inode;
        let _shared = inode.data_lock.read();
        let bytes = self.bytes(at, len)?;
        let persisted = || {
            let memory = memory(&self.fs)?;
            for piece in self.fs.parts.pieces(inode, bytes.start, bytes.end, None)? {
                if let PieceSource::Device(at) = piece.place {
                    memory.persist(at, piece.len)?;
                }
            }
            fence(&self.fs)
        };
        self.fs.outcome(persisted())
    }

    /// Bytes of the file, which reaches so far. The caller has the lock of its data.
    fn bytes(&self, at: u64, len: u64) -> Result<Range<u64>> {
        if !is_dax(&self.fs, &self.file.inode) {
            let what = "a mapped file that is not used in place any more (chattr)".into();
            return Err(FsError::Unsupported { what });
        }
        let inside = at.checked_add(len).is_some_and(|end| end <= self.len());
        let start = self.range.start.saturating_add(at);
        let end = start.saturating_add(len);
        match inside && end <= self.file.inode.state().size {
            true => Ok(start..end),
            false => Err(FsError::Invalid { what: "beyond the mapped range, or the file's end" }),
        }
    }

    /// `None`: part of it has no place yet.
    fn store_in_place(
        &self,
        bytes: Range<u64>,
        data: &[u8],
    ) -> steadfast_ext4_format::Result<Option<()>> {
        let inode = &*self.file.inode;
        let pieces = self.fs.parts.pieces(inode, bytes.start, bytes.end, None)?;
        if pieces.iter().any(|piece| !matches!(piece.place, PieceSource::Device(_))) {
            return Ok(None);
        }
        self.fs.parts.check_writable()?;
        let memory = memory(&self.fs)?;
        for Piece { offset, len, place } in pieces {
            if let PieceSource::Device(at) = place {
                let from = (offset - bytes.start) as usize;
                memory.store_through(at, &data[from..from + len as usize])?;
            }
        }
        // An fsync is as good as a persist.
        note_stored(&self.fs, inode);
        Ok(Some(()))
    }

    /// Gives what has no place zeros, durably.
    fn give_places(&self, at: u64, len: u64) -> Result<()> {
        let inode = &*self.file.inode;
        self.fs.run(|| {
            let _exclusive = inode.data_lock.write();
            self.fs.parts.check_writable()?;
            let bytes = self.bytes(at, len)?;
            for piece in self.fs.parts.pieces(inode, bytes.start, bytes.end, None)? {
                if matches!(piece.place, PieceSource::Device(_)) {
                    continue;
                }
                let (mut at, end) = (piece.offset, piece.offset + piece.len);
                while at < end {
                    let zeros = vec![0; (end - at).min(ZEROS_AT_ONCE) as usize];
                    at = write_new(&self.fs, inode, at, &zeros)?;
                }
            }
            let tid = inode.state().datasync_tid;
            make_durable(&self.fs, tid, 0)
        })
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // What could fail is the end of a file without a name, which the next mount makes good.
        let _ = self.fs.release(self.fh);
    }
}

steadfast_runtime::debug_fields!(FileMapping: range);
