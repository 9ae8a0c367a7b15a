//! Open files.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_ext4_format::Result;
use steadfast_pagecache::ErrorCursor;
use steadfast_vfs::{Fh, FsError, OpenFlags};

use super::Inode;

/// An open file.
pub(crate) struct OpenFile {
    pub inode: Arc<Inode>,
    pub flags: OpenFlags,
    /// Write-back errors that this handle has reported.
    pub errors: Mutex<ErrorCursor>,
    /// Closing it has not been answered for yet, or it was written to since. With data=transact.
    pub unanswered: AtomicBool,
}

impl OpenFile {
    /// It is being written to.
    pub fn note_write(&self) {
        self.unanswered.store(true, Ordering::Release);
    }
}

/// Parts of the table: every call looks its handle up, and tasks with files of their own must not
/// wait for each other.
const PARTS: usize = 16;

/// All open files by handle.
#[derive(Default)]
pub(crate) struct Handles {
    last: AtomicU64,
    parts: [Part; PARTS],
}

/// The handles whose numbers have one remainder; on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Part {
    open: Mutex<BTreeMap<u64, Arc<OpenFile>>>,
}

impl Part {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Arc<OpenFile>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handles {
    fn part(&self, fh: u64) -> &Part {
        &self.parts[(fh % PARTS as u64) as usize]
    }

    /// # Errors
    /// Not found: the inode is being deleted.
    pub fn add(&self, inode: Arc<Inode>, flags: OpenFlags, errors: ErrorCursor) -> Result<Fh> {
        {
            let mut state = inode.state();
            if state.doomed {
                return Err(FsError::NotFound.into());
            }
            state.opens += 1;
        }
        let fh = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let unanswered = AtomicBool::new(flags.contains(OpenFlags::WRITE));
        let file = OpenFile { inode, flags, errors: Mutex::new(errors), unanswered };
        self.part(fh).lock().insert(fh, Arc::new(file));
        Ok(Fh(fh))
    }

    /// An inode is being changed by other ways than a write through a handle, as ftruncate(2) is:
    /// closing any handle that may write it has to be answered for again.
    pub fn note_change(&self, inode: &Arc<Inode>) {
        for part in &self.parts {
            let open = part.lock();
            let writers = open.values().filter(|file| {
                file.flags.contains(OpenFlags::WRITE) && Arc::ptr_eq(&file.inode, inode)
            });
            writers.for_each(|file| file.note_write());
        }
    }

    /// Whether a handle may write anywhere in the file: one of an append-only file was opened
    /// before it became so.
    pub fn any_overwrites(&self, inode: &Arc<Inode>) -> bool {
        let overwrites = |file: &Arc<OpenFile>| {
            file.flags.contains(OpenFlags::WRITE)
                && !file.flags.contains(OpenFlags::APPEND)
                && Arc::ptr_eq(&file.inode, inode)
        };
        self.parts.iter().any(|part| part.lock().values().any(overwrites))
    }

    pub fn get(&self, fh: Fh) -> Result<Arc<OpenFile>> {
        self.part(fh.0).lock().get(&fh.0).cloned().ok_or(FsError::BadHandle.into())
    }

    /// Closes the handle. Returns the file, and whether nobody has it open any more.
    pub fn remove(&self, fh: Fh) -> Result<(Arc<OpenFile>, bool)> {
        let file = self.part(fh.0).lock().remove(&fh.0).ok_or(FsError::BadHandle)?;
        let mut state = file.inode.state();
        state.opens -= 1;
        let last = state.opens == 0;
        drop(state);
        Ok((file, last))
    }
}
