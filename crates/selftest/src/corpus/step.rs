//! The operations that workloads of the corpus are made of.

use std::fmt;

use steadfast_vfs::Fallocate;

/// A path below the root, without a leading '/'; empty: the root.
pub type Path = &'static str;

/// Bytes of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    /// Where it begins.
    pub at: u64,
    /// How long it is.
    pub len: u64,
}

/// How bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteMode {
    /// Through the page cache.
    Buffered,
    /// Past it (O_DIRECT).
    Direct,
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// An empty file.
    Creat(Path),
    /// A directory.
    Mkdir(Path),
    /// A FIFO.
    Fifo(Path),
    /// A symbolic link of that target at the path.
    Symlink(Path, Path),
    /// A further name.
    Link(Path, Path),
    /// So many further names, each the path and a number.
    Links(Path, Path, u32),
    /// Takes a name away.
    Unlink(Path),
    /// remove(3): as [`Unlink`](Op::Unlink) for files.
    Remove(Path),
    /// Takes an empty directory away.
    Rmdir(Path),
    /// Moves a name.
    Rename(Path, Path),
    /// Writes.
    Write(Path, Range, WriteMode),
    /// Writes to a memory map of the file, and msync of the whole map. Done as a write and
    /// fdatasync: what reaches the file system of it is the same.
    MapWrite(Path, Range),
    /// fallocate(2).
    Falloc(Path, Fallocate, Range),
    /// Sets the size.
    Truncate(Path, u64),
    /// Sets an extended attribute.
    SetXattr(Path),
    /// Takes it away.
    RemoveXattr(Path),
    /// fsync of a file or a directory.
    Fsync(Path),
    /// fdatasync of a file.
    Fdatasync(Path),
    /// sync(2).
    Sync,
}

/// What a persistence point makes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Persists {
    /// A file or a directory, with all that stat says of it.
    All(Path),
    /// What is needed to read a file.
    Data(Path),
    /// Everything.
    Everything,
}

impl Op {
    /// What it makes durable, if it does.
    pub(crate) fn persists(&self) -> Option<Persists> {
        match *self {
            Op::Fsync(path) => Some(Persists::All(path)),
            Op::Fdatasync(path) | Op::MapWrite(path, _) => Some(Persists::Data(path)),
            Op::Sync => Some(Persists::Everything),
            _ => None,
        }
    }

    /// Whether the bytes of a file change, and which file: after it they are judged no more until
    /// they are made durable again, as a write is not atomic.
    pub(crate) fn changes_bytes(&self) -> Option<Path> {
        match *self {
            Op::Write(path, ..)
            | Op::MapWrite(path, _)
            | Op::Falloc(path, ..)
            | Op::Truncate(path, _) => Some(path),
            _ => None,
        }
    }
}

fn named(path: Path) -> Path {
    if path.is_empty() { "/" } else { path }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Op::Creat(path) => write!(f, "creat {path}"),
            Op::Mkdir(path) => write!(f, "mkdir {path}"),
            Op::Fifo(path) => write!(f, "mkfifo {path}"),
            Op::Symlink(target, path) => write!(f, "symlink {target} {path}"),
            Op::Link(old, new) => write!(f, "link {old} {new}"),
            Op::Links(old, new, count) => write!(f, "link {old} {new}0..{count}"),
            Op::Unlink(path) => write!(f, "unlink {path}"),
            Op::Remove(path) => write!(f, "remove {path}"),
            Op::Rmdir(path) => write!(f, "rmdir {path}"),
            Op::Rename(old, new) => write!(f, "rename {old} {new}"),
            Op::Write(path, Range { at, len }, WriteMode::Buffered) => {
                write!(f, "write {path} {at}+{len}")
            }
            Op::Write(path, Range { at, len }, WriteMode::Direct) => {
                write!(f, "dwrite {path} {at}+{len}")
            }
            Op::MapWrite(path, Range { at, len }) => write!(f, "mmapwrite {path} {at}+{len}"),
            Op::Falloc(path, what, Range { at, len }) => {
                let what = match what {
                    Fallocate::Allocate { keep_size: false } => "allocate",
                    Fallocate::Allocate { keep_size: true } => "keep_size",
                    Fallocate::PunchHole => "punch_hole",
                    Fallocate::ZeroRange { keep_size: false } => "zero_range",
                    Fallocate::ZeroRange { keep_size: true } => "zero_range,keep_size",
                    Fallocate::CollapseRange => "collapse",
                    Fallocate::InsertRange => "insert",
                };
                write!(f, "falloc {path} {what} {at}+{len}")
            }
            Op::Truncate(path, size) => write!(f, "truncate {path} {size}"),
            Op::SetXattr(path) => write!(f, "setxattr {path}"),
            Op::RemoveXattr(path) => write!(f, "removexattr {path}"),
            Op::Fsync(path) => write!(f, "fsync {}", named(path)),
            Op::Fdatasync(path) => write!(f, "fdatasync {path}"),
            Op::Sync => f.write_str("sync"),
        }
    }
}

/// A workload: what is there before, and what is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Done before and durable.
    pub setup: Vec<Op>,
    /// Recorded and cut.
    pub ops: Vec<Op>,
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |ops: &[Op]| ops.iter().map(Op::to_string).collect::<Vec<_>>().join("; ");
        write!(f, "{}: ", self.name)?;
        if !self.setup.is_empty() {
            write!(f, "[{}] ", list(&self.setup))?;
        }
        f.write_str(&list(&self.ops))
    }
}
