//! The calls of a test on its file, as a child makes them and the modes of one file at a time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use steadfast_runtime::{cpu, now};
use steadfast_vfs::{Attr, Fh, FileSystem, FileType, FsError, NewNode, OpenFlags, path};

use super::observer::{Action, Call, Observer};
use super::plan::OpenMode;

/// Processor time of a system call apart from what the file system does: entry, exit, finding
/// the file, checking the buffer. Declared in the simulation; real calls take their own.
const SYSCALL: Duration = Duration::from_micros(1);

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

/// Writes all of it; or at which offset the call was that failed.
pub(super) fn write(
    fs: &dyn FileSystem,
    fh: Fh,
    mut offset: u64,
    mut data: Bytes,
) -> Result<(), (u64, FsError)> {
    while !data.is_empty() {
        cpu(SYSCALL);
        let done = match fs.write(fh, offset, data.clone()).map_err(|e| (offset, e))? {
            0 => {
                let what = "nothing was written, and no error given".into();
                return Err((offset, FsError::Io { what }));
            }
            done => done.min(data.len()),
        };
        (offset, data) = (offset + done as u64, data.slice(done..));
    }
    Ok(())
}

/// Reads so many bytes, in parts as they come; or at which offset the call was that failed, and
/// how: `None`, the file ends there.
pub(super) fn read(
    fs: &dyn FileSystem,
    fh: Fh,
    offset: u64,
    len: u64,
) -> Result<Vec<Bytes>, (u64, Option<FsError>)> {
    let mut parts: Vec<Bytes> = Vec::with_capacity(1);
    let (mut at, end) = (offset, offset + len);
    while at < end {
        cpu(SYSCALL);
        let part = fs.read(fh, at, (end - at) as usize).map_err(|e| (at, Some(e)))?;
        if part.is_empty() {
            return Err((at, None));
        }
        at += part.len() as u64;
        parts.push(part);
    }
    Ok(parts)
}

/// The parts in one.
pub(super) fn joined(parts: Vec<Bytes>) -> Bytes {
    match &parts[..] {
        [whole] => whole.clone(),
        parts => Bytes::from(parts.concat()),
    }
}

/// The path of a file that a command line names: from the root, or else in the folder.
pub(super) fn path_in(folder: &str, name: String) -> String {
    if name.starts_with('/') || folder.is_empty() {
        return name;
    }
    format!("{}/{name}", folder.trim_end_matches('/'))
}
