//! A workload carried out on a file system, with what was seen after each operation.

use std::collections::BTreeMap;

use bytes::Bytes;
use steadfast_crash::program::{Tree, Unreadable};
use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_vfs::path::{parent_and_name, resolve};
use steadfast_vfs::{
    FileSystem, FileType, FsError, NewNode, OpenFlags, RenameFlags, Result, SetAttr, SetXattr,
};

use super::step::{Op, Path, Range, Workload, WriteMode};

/// Notes of operations carry this label.
const NOTE: u64 = 0x636f_7270_7573;
/// The attribute of [`Op::SetXattr`].
const XATTR: &[u8] = b"user.corpus";

/// An operation that was carried out.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationRecord {
    pub op: Op,
    pub started: Moment,
    pub returned: Moment,
    /// It was refused, and changed nothing.
    pub refused: bool,
}

/// What was done, and what was seen.
#[derive(Debug, Clone, Default)]
pub struct OperationTrace {
    pub(super) done: Vec<OperationRecord>,
    /// Before the first operation, and after each.
    pub(super) seen: Vec<Tree>,
    /// Of each look, which file has each name: a number that no other file ever has.
    pub(super) files: Vec<BTreeMap<Vec<u8>, u64>>,
}

impl OperationTrace {
    /// How many operations were refused: they count as not made.
    pub fn refused(&self) -> usize {
        self.done.iter().filter(|done| done.refused).count()
    }

    /// How many notes were made before a tick: what a judge knows.
    pub(super) fn age(&self, tick: u64) -> u64 {
        let before = |moment: Moment| u64::from(moment.tick < tick);
        self.done.iter().map(|done| before(done.started) + before(done.returned)).sum()
    }

    /// Takes a look, and distinguishes the files: a number that was free in between is another
    /// file.
    fn look(&mut self, fs: &dyn FileSystem) -> std::result::Result<(), Unreadable> {
        let seen = Tree::look_whole(fs, fs.root())?;
        let mut known: BTreeMap<u64, u64> = BTreeMap::new();
        if let (Some(names), Some(files)) = (self.seen.last(), self.files.last()) {
            known.extend(names.nodes().map(|(path, node)| (node.attr.ino.0, files[path])));
        }
        let first = self.files.len() as u64 * (1 << 32);
        let mut fresh = BTreeMap::new();
        let files = seen.nodes().map(|(path, node)| {
            let (ino, next) = (node.attr.ino.0, first + fresh.len() as u64);
            let file = known.get(&ino).copied();
            (path.to_vec(), file.unwrap_or_else(|| *fresh.entry(ino).or_insert(next)))
        });
        self.files.push(files.collect());
        self.seen.push(seen);
        Ok(())
    }
}

/// Does what must be there before, and makes it durable.
///
/// # Errors
/// What was refused.
pub(super) fn set_up(fs: &dyn FileSystem, workload: &Workload) -> steadfast_crash::Result<()> {
    for (number, op) in workload.setup.iter().enumerate() {
        carry_out(fs, op, number as u8).map_err(|e| format!("{op}: {e}"))?;
    }
    Ok(fs.sync().map_err(|e| format!("sync: {e}"))?)
}

/// Carries out what is recorded.
///
/// # Errors
/// What cannot be read of a file system that is not damaged, or not be done.
pub(super) fn play(
    fs: &dyn FileSystem,
    log: &RecordLog,
    workload: &Workload,
) -> steadfast_crash::Result<OperationTrace> {
    let mut trace = OperationTrace::default();
    trace.look(fs)?;
    for (number, op) in workload.ops.iter().enumerate() {
        let started = log.note(NOTE, [number as u64, 0, 0]);
        let refused = match carry_out(fs, op, 0x40 + number as u8) {
            Ok(()) => false,
            // As a program that does not look at errors.
            Err(
                FsError::Exists
                | FsError::NotFound
                | FsError::NotEmpty
                | FsError::NotDirectory
                | FsError::IsDirectory
                | FsError::Invalid { .. }
                | FsError::NoData
                | FsError::Unsupported { .. },
            ) => true,
            Err(e) => return Err(format!("{op}: {e}").into()),
        };
        let returned = log.note(NOTE, [number as u64, 1, 0]);
        trace.done.push(OperationRecord { op: *op, started, returned, refused });
        trace.look(fs)?;
    }
    Ok(trace)
}

fn write(fs: &dyn FileSystem, path: Path, range: Range, how: WriteMode, tag: u8) -> Result<()> {
    let flags = match how {
        WriteMode::Buffered => OpenFlags::WRITE,
        WriteMode::Direct => OpenFlags::WRITE | OpenFlags::DIRECT,
    };
    let fh = fs.open(resolve(fs, path.as_bytes(), false)?.ino, flags)?;
    let mut done = 0;
    let outcome = loop {
        // Different in each operation, and in each 512 bytes.
        let byte = |n: u64| tag ^ ((range.at + done + n) >> 9) as u8;
        let bytes: Bytes = (0..range.len - done).map(byte).collect();
        match fs.write(fh, range.at + done, bytes) {
            Ok(n) => done += n as u64,
            Err(e) => break Err(e),
        }
        if done == range.len {
            break Ok(());
        }
    };
    fs.release(fh)?;
    outcome
}

fn with_open(
    fs: &dyn FileSystem,
    path: Path,
    then: impl FnOnce(steadfast_vfs::Fh) -> Result<()>,
) -> Result<()> {
    let fh =
        fs.open(resolve(fs, path.as_bytes(), false)?.ino, OpenFlags::READ | OpenFlags::WRITE)?;
    let outcome = then(fh);
    fs.release(fh)?;
    outcome
}

fn link(fs: &dyn FileSystem, old: Path, new: &[u8]) -> Result<()> {
    let ino = resolve(fs, old.as_bytes(), false)?.ino;
    let (folder, name) = parent_and_name(fs, new)?;
    fs.link(ino, folder, name).map(drop)
}

/// Carries out one operation; `tag` marks what it writes.
fn carry_out(fs: &dyn FileSystem, op: &Op, tag: u8) -> Result<()> {
    let node = NewNode::default();
    match *op {
        Op::Creat(path) => {
            let (folder, name) = parent_and_name(fs, path.as_bytes())?;
            let (_, fh) = fs.create(folder, name, node, OpenFlags::WRITE)?;
            fs.release(fh)
        }
        Op::Mkdir(path) => {
            let (folder, name) = parent_and_name(fs, path.as_bytes())?;
            fs.mkdir(folder, name, NewNode { mode: 0o755, ..node }).map(drop)
        }
        Op::Fifo(path) => {
            let (folder, name) = parent_and_name(fs, path.as_bytes())?;
            fs.mknod(folder, name, FileType::Fifo, 0, node).map(drop)
        }
        Op::Symlink(target, path) => {
            let (folder, name) = parent_and_name(fs, path.as_bytes())?;
            fs.symlink(folder, name, target.as_bytes(), node).map(drop)
        }
        Op::Link(old, new) => link(fs, old, new.as_bytes()),
        Op::Links(old, new, count) => {
            (0..count).try_for_each(|n| link(fs, old, format!("{new}{n}").as_bytes()))
        }
        Op::Unlink(path) | Op::Remove(path) => {
            let (folder, name) = parent_and_name(fs, path.as_bytes())?;
            fs.unlink(folder, name)
        }
        Op::Rmdir(path) => {
            let (folder, name) = parent_and_name(fs, path.as_bytes())?;
            fs.rmdir(folder, name)
        }
        Op::Rename(old, new) => {
            let (from, old) = parent_and_name(fs, old.as_bytes())?;
            let (to, new) = parent_and_name(fs, new.as_bytes())?;
            fs.rename(from, old, to, new, RenameFlags::empty())
        }
        Op::Write(path, range, how) => write(fs, path, range, how, tag),
        Op::MapWrite(path, range) => {
            write(fs, path, range, WriteMode::Buffered, tag)?;
            with_open(fs, path, |fh| fs.fsync(fh, true))
        }
        Op::Falloc(path, what, Range { at, len }) => {
            with_open(fs, path, |fh| fs.fallocate(fh, what, at, len))
        }
        Op::Truncate(path, size) => {
            let ino = resolve(fs, path.as_bytes(), false)?.ino;
            fs.setattr(ino, SetAttr { size: Some(size), ..SetAttr::default() }).map(drop)
        }
        Op::SetXattr(path) => {
            let ino = resolve(fs, path.as_bytes(), false)?.ino;
            fs.setxattr(ino, XATTR, b"a value", SetXattr::Any)
        }
        Op::RemoveXattr(path) => fs.removexattr(resolve(fs, path.as_bytes(), false)?.ino, XATTR),
        Op::Fsync(path) => {
            let attr = resolve(fs, path.as_bytes(), false)?;
            match attr.kind {
                FileType::Directory => fs.fsyncdir(attr.ino),
                _ => with_open(fs, path, |fh| fs.fsync(fh, false)),
            }
        }
        Op::Fdatasync(path) => with_open(fs, path, |fh| fs.fsync(fh, true)),
        Op::Sync => fs.sync(),
    }
}
