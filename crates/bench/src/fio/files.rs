//! The files of jobs: made as long as they must be before the jobs run, opened, closed, removed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use steadfast_block::pattern;
use steadfast_runtime::cpu;
use steadfast_vfs::{
    Advice, Attr, Fallocate, Fh, FileSystem, FileType, FsError, Ino, NewNode, OpenFlags, path,
};

use super::options::WriteSync;
use super::plan::{FioJob, FioPlan};
use crate::calls;

/// Bytes that are written at once where a file is laid out.
const LAYOUT_BYTES: usize = 1 << 20;

/// A file that is made and removed by others meanwhile is made so many times.
const CREATES_MAX: usize = 100;
/// Mode of the files, as fio makes them.
const MODE: u16 = 0o644;
/// Mode of folders.
const FOLDER_MODE: u16 = 0o755;

/// A call on a file of a job that has failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("job '{job}': {file}: {doing}: {source}")]
pub struct FileCallError {
    /// The job's name.
    pub job: String,
    /// The file's path.
    pub file: String,
    /// What was being done to it.
    pub doing: String,
    /// Why it failed.
    pub source: FsError,
}

impl FioJob {
    pub(super) fn failed(
        &self,
        file: usize,
        doing: impl Into<String>,
    ) -> impl FnOnce(FsError) -> FileCallError {
        let (job, file) = (self.options.name.clone(), self.files[file].path.clone());
        let doing = doing.into();
        move |source| FileCallError { job, file, doing, source }
    }

    /// How its files are opened.
    fn flags(&self) -> OpenFlags {
        let o = &self.options;
        let mut flags = match o.mix.writes {
            // What was written is read back.
            true => OpenFlags::READ | OpenFlags::WRITE,
            false => OpenFlags::READ,
        };
        flags.set(OpenFlags::DIRECT, o.direct);
        flags.set(OpenFlags::SYNC, o.sync == WriteSync::All && o.mix.writes);
        flags.set(OpenFlags::DSYNC, o.sync == WriteSync::Data && o.mix.writes);
        flags
    }
}

/// What a regular file is at a path; `None`: there is nothing.
fn existing(fs: &dyn FileSystem, file: &str) -> Result<Option<Attr>, FsError> {
    match path::place(fs, file.as_bytes(), true) {
        Ok(place) => match place.attr {
            Some(attr) if attr.kind != FileType::Regular => {
                Err(FsError::Invalid { what: "it is no regular file" })
            }
            attr => Ok(attr),
        },
        Err(FsError::NotFound) => Ok(None),
        Err(e) => Err(e),
    }
}

/// How long a regular file is.
pub fn length_of(fs: &dyn FileSystem, file: &str) -> Option<u64> {
    existing(fs, file).ok().flatten().map(|attr| attr.size)
}

/// The folder that a file is in; folders that are missing are made.
fn folder_of<'p>(fs: &dyn FileSystem, file: &'p str) -> Result<(Ino, &'p [u8]), FsError> {
    let folders = file.rsplit_once('/').map_or("", |(folders, _)| folders);
    let mut at = String::new();
    for name in folders.split('/').filter(|name| !name.is_empty()) {
        at = format!("{at}/{name}");
        let place = path::place(fs, at.as_bytes(), true)?;
        if place.attr.is_none() {
            let node = NewNode { mode: FOLDER_MODE, ..NewNode::default() };
            match fs.mkdir(place.dir, name.as_bytes(), node) {
                Ok(_) | Err(FsError::Exists) => {}
                Err(e) => return Err(e),
            }
        }
    }
    path::parent_and_name(fs, file.as_bytes())
}

/// Makes the files of all jobs as long as their requests need.
///
/// # Errors
/// There is no room for them, or a call fails.
pub(super) fn lay_out(
    fs: &dyn FileSystem,
    plan: &FioPlan,
    mut told: impl FnMut(&FioJob),
) -> Result<(), FileCallError> {
    room(fs, plan)?;
    for job in plan.jobs.iter().filter(|job| !job.is_null()) {
        let mut is_told = false;
        for at in 0..job.files.len() {
            let file = &job.files[at];
            let needed = file.start + file.len;
            let attr = existing(fs, &file.path).map_err(job.failed(at, "looking for it"))?;
            // fio lays out nothing for a log: what is there is not replaced.
            let is_of_log = job.log.is_some() && (attr.is_some() || needed == 0);
            if is_of_log || attr.is_some_and(|attr| attr.size >= needed) {
                continue;
            }
            if !std::mem::replace(&mut is_told, true) {
                told(job);
            }
            let made = one(fs, job, &file.path, needed, attr);
            made.map_err(job.failed(at, format!("making it {needed} bytes long")))?;
        }
    }
    Ok(())
}

/// Refuses files for which the file system has no room, before it is full of them.
///
/// # Errors
/// There is none, or a call fails. Nothing was changed.
pub fn room(fs: &dyn FileSystem, plan: &FioPlan) -> Result<(), FileCallError> {
    let mut needed = BTreeMap::new();
    for job in plan.jobs.iter().filter(|job| !job.is_null()) {
        for (at, file) in job.files.iter().enumerate() {
            let end: &mut (u64, &FioJob, usize) = needed.entry(&file.path).or_insert((0, job, at));
            end.0 = end.0.max(file.start + file.len);
        }
    }
    let mut all: u64 = 0;
    let mut largest: Option<(u64, &FioJob, usize)> = None;
    for (path, (end, job, at)) in needed {
        let there = existing(fs, path).map_err(job.failed(at, "looking for it"))?;
        let more = end.saturating_sub(there.map_or(0, |attr| attr.size));
        all = all.saturating_add(more);
        if more > largest.map_or(0, |(most, ..)| most) {
            largest = Some((more, job, at));
        }
    }
    let Some((_, job, at)) = largest else { return Ok(()) };
    let space = fs.statfs().map_err(job.failed(at, "asking for free space"))?;
    let free = u64::from(space.block_size).saturating_mul(space.blocks_available);
    if all > free {
        let doing = format!("the files need {all} bytes more, and {free} are free");
        return Err(job.failed(at, doing)(FsError::NoSpace { what: "blocks" }));
    }
    Ok(())
}

/// Lays a file out: with data where it will be read, or else with space.
fn one(
    fs: &dyn FileSystem,
    job: &FioJob,
    file: &str,
    needed: u64,
    attr: Option<Attr>,
) -> Result<(), FsError> {
    let o = &job.options;
    let needs_data = o.mix.reads || o.overwrite;
    let (dir, name) = folder_of(fs, file)?;
    // As fio does: from the beginning again.
    if attr.is_some() {
        fs.unlink(dir, name)?;
    }
    let node = NewNode { mode: MODE, ..NewNode::default() };
    let (_, fh) = fs.create(dir, name, node, OpenFlags::READ | OpenFlags::WRITE)?;
    let filled = fill(fs, job, fh, needed, needs_data);
    let closed = fs.release(fh);
    filled.and(closed)
}

fn fill(
    fs: &dyn FileSystem,
    job: &FioJob,
    fh: Fh,
    needed: u64,
    needs_data: bool,
) -> Result<(), FsError> {
    let o = &job.options;
    if o.fallocate {
        let allocated = fs.fallocate(fh, Fallocate::Allocate { keep_size: false }, 0, needed);
        match allocated {
            Ok(()) | Err(FsError::Unsupported { .. } | FsError::Host { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    if !needs_data {
        return Ok(());
    }
    let mut at = 0;
    while at < needed {
        let len = (needed - at).min(LAYOUT_BYTES as u64);
        // Whole sectors; what is too much at the end is cut off.
        let whole = (len as usize).next_multiple_of(pattern::SECTOR);
        let data = layout_data(at, whole, o.verify.is_some()).slice(..len as usize);
        calls::write(fs, fh, at, data).map_err(|(_, e)| e)?;
        at += len;
    }
    if o.create_fsync { fs.fsync(fh, false) } else { Ok(()) }
}

/// In a simulation the same bytes again, which cost the least, unless they are verified.
fn layout_data(at: u64, len: usize, verified: bool) -> Bytes {
    match steadfast_runtime::is_simulated() && !verified {
        true => pattern::interned(super::buffer::LAYOUT_TAG, 0, len),
        false => {
            let mut data = vec![0; len];
            pattern::fill(super::buffer::LAYOUT_TAG, at, &mut data);
            Bytes::from(data)
        }
    }
}

/// The number that no handle has, of a file that is not open.
const CLOSED: u64 = u64::MAX;

/// A job's files, and their handles.
pub(super) struct OpenFiles {
    fs: Arc<dyn FileSystem>,
    job: Arc<FioJob>,
    /// Changed under the lock of the job's state, where a log opens or closes one.
    handles: Vec<AtomicU64>,
}

impl OpenFiles {
    /// Opens all, unless a log says when.
    pub(super) fn open(
        fs: &Arc<dyn FileSystem>,
        job: &Arc<FioJob>,
    ) -> Result<OpenFiles, FileCallError> {
        let handles = job.files.iter().map(|_| AtomicU64::new(CLOSED)).collect();
        let files = OpenFiles { fs: Arc::clone(fs), job: Arc::clone(job), handles };
        if job.log.is_none() {
            files.open_all()?;
            files.advise()?;
        }
        Ok(files)
    }

    /// Opens those that are not open.
    pub(super) fn open_all(&self) -> Result<(), FileCallError> {
        for at in 0..self.handles.len() {
            if !self.job.is_null() && self.opened(at).is_none() {
                let opened = self.handle_of(&self.job.files[at].path);
                let opened = opened.map_err(self.job.failed(at, "opening"))?;
                self.handles[at].store(opened.0, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Opens one, where a log does.
    pub(super) fn open_one(&self, at: usize) -> Result<(), FileCallError> {
        if self.job.is_null() {
            return Ok(());
        }
        cpu(calls::SYSCALL);
        let opened = self.handle_of(&self.job.files[at].path);
        let opened = opened.map_err(self.job.failed(at, "opening"))?;
        self.handles[at].store(opened.0, Ordering::Relaxed);
        self.advise_one(at, opened)
    }

    /// Closes one, where a log does.
    pub(super) fn close_one(&self, at: usize) -> Result<(), FileCallError> {
        let Some(fh) = self.opened(at) else { return Ok(()) };
        let o = &self.job.options;
        cpu(calls::SYSCALL);
        let synced = match o.fsync_on_close && o.mix.writes {
            true => self.fs.fsync(fh, false).map_err(self.job.failed(at, "fsync")),
            false => Ok(()),
        };
        self.handles[at].store(CLOSED, Ordering::Relaxed);
        synced.and(self.fs.release(fh).map_err(self.job.failed(at, "closing")))
    }

    fn handle_of(&self, file: &str) -> Result<Fh, FsError> {
        for _ in 0..CREATES_MAX {
            match existing(&*self.fs, file)? {
                Some(attr) => return self.fs.open(attr.ino, self.job.flags()),
                None if self.job.log.is_some() => {
                    let (dir, name) = folder_of(&*self.fs, file)?;
                    let node = NewNode { mode: MODE, ..NewNode::default() };
                    match self.fs.create(dir, name, node, self.job.flags()) {
                        Ok((_, fh)) => return Ok(fh),
                        // Another job was sooner.
                        Err(FsError::Exists) => {}
                        Err(e) => return Err(e),
                    }
                }
                // Another job of the run has removed it.
                None => return Err(FsError::NotFound),
            }
        }
        // There is a name, and nothing behind it.
        Err(FsError::Invalid { what: "it is a symbolic link that leads nowhere" })
    }

    /// The handle of a file that is open.
    fn opened(&self, at: usize) -> Option<Fh> {
        let handle = self.handles[at].load(Ordering::Relaxed);
        (handle != CLOSED).then_some(Fh(handle))
    }

    /// All that are open, with their numbers.
    fn all_opened(&self) -> impl Iterator<Item = (usize, Fh)> {
        (0..self.handles.len()).filter_map(|at| Some((at, self.opened(at)?)))
    }

    /// What the page cache is told of files that are opened, or of which another pass begins.
    pub(super) fn advise(&self) -> Result<(), FileCallError> {
        self.all_opened().try_for_each(|(at, fh)| self.advise_one(at, fh))
    }

    fn advise_one(&self, at: usize, fh: Fh) -> Result<(), FileCallError> {
        let o = &self.job.options;
        let hint = match o.mix.random {
            true => Advice::Random,
            false => Advice::Sequential,
        };
        let part = &self.job.files[at];
        // Of a log: to the end, wherever that is.
        let len = if self.job.log.is_some() { 0 } else { part.len };
        let told = || {
            if o.invalidate {
                self.fs.advise(fh, part.start, len, Advice::DontNeed)?;
            }
            if o.fadvise_hint {
                self.fs.advise(fh, part.start, len, hint)?;
            }
            Ok(())
        };
        told().map_err(self.job.failed(at, "advising the page cache"))
    }

    /// A file begins again: what is cached of it is forgotten, as fio does without O_DIRECT.
    pub(super) fn forget(&self, file: usize) -> Result<(), FileCallError> {
        let o = &self.job.options;
        let Some(fh) = self.opened(file).filter(|_| o.invalidate && !o.direct) else {
            return Ok(());
        };
        let part = &self.job.files[file];
        let told = self.fs.advise(fh, part.start, part.len, Advice::DontNeed);
        told.map_err(self.job.failed(file, "advising the page cache"))
    }

    /// A file's handle. Not of a job whose engine makes no requests.
    pub(super) fn handle(&self, file: usize) -> Fh {
        Fh(self.handles[file].load(Ordering::Relaxed))
    }

    /// All that are open are made durable.
    pub(super) fn sync(&self) -> Result<(), FileCallError> {
        for (at, fh) in self.all_opened() {
            self.fs.fsync(fh, false).map_err(self.job.failed(at, "fsync"))?;
        }
        Ok(())
    }

    /// Closes all, and removes those that are not to stay.
    pub(super) fn close(self) -> Result<(), FileCallError> {
        let mut first = Ok(());
        for (at, handle) in self.handles.iter().enumerate() {
            let handle = handle.swap(CLOSED, Ordering::Relaxed);
            if handle != CLOSED {
                let closed = self.fs.release(Fh(handle)).map_err(self.job.failed(at, "closing"));
                first = first.and(closed);
            }
            if self.job.options.unlink && !self.job.is_null() {
                let removed = remove(&*self.fs, &self.job.files[at].path);
                first = first.and(removed.map_err(self.job.failed(at, "removing")));
            }
        }
        first
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        for (_, fh) in self.all_opened() {
            // The first error is the one that is reported.
            let _ = self.fs.release(fh);
        }
    }
}

/// Another job may have removed it.
fn remove(fs: &dyn FileSystem, file: &str) -> Result<(), FsError> {
    let (dir, name) = path::parent_and_name(fs, file.as_bytes())?;
    match fs.unlink(dir, name) {
        Err(FsError::NotFound) => Ok(()),
        removed => removed,
    }
}
