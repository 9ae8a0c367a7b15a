//! The calls of a test on its file, as a child makes them and the modes of one file at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast_runtime::{cpu, now};
use steadfast_vfs::{Attr, Fh, FileSystem, FileType, FsError, NewNode, OpenFlags, path};

use super::observer::{Action, Call, Observer};
use super::plan::OpenMode;
use crate::calls::SYSCALL;

/// Mode of IOzone's files.
const MODE: u16 = 0o640;

/// A test's file, and who is notified of what is done to it.
pub(super) struct TestFile<'a> {
    pub(super) fs: &'a dyn FileSystem,
    pub(super) observer: &'a dyn Observer,
    /// Whose it is.
    pub(super) child: usize,
    /// From the file system's root.
    pub(super) path: &'a str,
    /// Whether this run has made or emptied it.
    pub(super) is_made: &'a AtomicBool,
}

/// Why a test's file could not be opened.
pub(super) enum OpenError {
    /// It was not found.
    Lookup(FsError),
    /// It is none.
    NotRegular(FileType),
    /// It could not be emptied.
    Empty(FsError),
    /// It could not be made.
    Create(FsError),
    /// It is there and cannot be opened.
    Open(FsError),
}

impl TestFile<'_> {
    /// Makes a call that changes the file, and reports it to the observer; `durable`: its return
    /// promises that the change is.
    pub(super) fn observed<T, E>(
        &self,
        action: Action,
        durable: bool,
        call: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let reported = Call { child: self.child, file: self.path, action, started: now() };
        self.observer.started(&reported);
        let done = call()?;
        self.observer.finished(&reported, now(), durable);
        Ok(done)
    }

    /// Opens it; and whether it is empty now, by creat(2).
    pub(super) fn open(&self, mode: OpenMode, flags: OpenFlags) -> Result<(Fh, bool), OpenError> {
        let (fh, empty) = self.opened(mode, flags)?;
        self.is_made.fetch_or(empty, Ordering::Relaxed);
        Ok((fh, empty))
    }

    fn opened(&self, mode: OpenMode, flags: OpenFlags) -> Result<(Fh, bool), OpenError> {
        let attr = match self.existing() {
            Err(OpenError::Lookup(FsError::NotFound)) if mode != OpenMode::Existing => {
                return Ok((self.create(flags).map_err(OpenError::Create)?, true));
            }
            found => found?,
        };
        let empties = mode == OpenMode::Empty;
        if empties {
            let truncates = OpenFlags::WRITE | OpenFlags::TRUNCATE;
            let empty = || self.fs.open(attr.ino, truncates).and_then(|fh| self.fs.release(fh));
            self.observed(Action::Truncate, false, empty).map_err(OpenError::Empty)?;
        }
        Ok((self.fs.open(attr.ino, flags).map_err(OpenError::Open)?, empties))
    }

    fn existing(&self) -> Result<Attr, OpenError> {
        let attr = path::resolve(self.fs, self.path.as_bytes(), true).map_err(OpenError::Lookup)?;
        match attr.kind {
            FileType::Regular => Ok(attr),
            kind => Err(OpenError::NotRegular(kind)),
        }
    }

    fn create(&self, flags: OpenFlags) -> Result<Fh, FsError> {
        let (dir, name) = path::parent_and_name(self.fs, self.path.as_bytes())?;
        let node = NewNode { mode: MODE, ..NewNode::default() };
        let create = || self.fs.create(dir, name, node, flags);
        self.observed(Action::Truncate, false, create).map(|(_, fh)| fh)
    }

    /// fsync(2), and who is notified that all that was written is durable; how long it took.
    pub(super) fn sync(&self, fh: Fh) -> Result<Duration, FsError> {
        let started = now();
        cpu(SYSCALL);
        self.fs.fsync(fh, false)?;
        let at = now();
        self.observer.synced(Some(self.path), started, at);
        Ok(at.since(started))
    }

    /// close(2); how long it took.
    pub(super) fn close(&self, fh: Fh) -> Result<Duration, FsError> {
        let started = now();
        cpu(SYSCALL);
        self.fs.release(fh)?;
        Ok(now().since(started))
    }

    /// Removes it. After a run that has failed only what the run has made: a device, or a file that
    /// it was to read, is somebody's.
    pub(super) fn remove(&self, failed: bool) -> Result<(), FsError> {
        if failed && !self.is_made.load(Ordering::Relaxed) {
            return Ok(());
        }
        let found = path::parent_and_name(self.fs, self.path.as_bytes())
            .and_then(|(dir, name)| self.fs.lookup(dir, name).map(|_| (dir, name)));
        let removed = found.and_then(|(dir, name)| {
            self.observed(Action::Remove, false, || self.fs.unlink(dir, name))
        });
        match removed {
            Err(FsError::NotFound) => Ok(()),
            removed => removed,
        }
    }
}
