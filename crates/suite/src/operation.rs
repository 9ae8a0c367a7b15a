//! Operations on a file system: what tasks of tests do, in one language.
//!
//! Names are paths inside a folder that is the task's own; "" is the folder itself. An operation is
//! [applied](Operation::apply) to any [`FileSystem`](steadfast_vfs::FileSystem), changes the model
//! of names ([`Names`](crate::names::Names)) and of data ([`Change`]), and has a text
//! (`rename a d/a; fsync d/a`), which is read again.

mod apply;
mod bytes;
mod text;

use steadfast_vfs::{Fallocate, TransactMask};

pub use apply::ATTRIBUTE;
pub use bytes::{attribute, byte, fill};
pub use text::{list, listed};

/// Names an operation of a task: its place in the order, from 0.
pub type OperationIndex = usize;

/// How a write is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteKind {
    /// Through the page cache.
    Buffered,
    /// With O_SYNC.
    Sync,
    /// With O_DSYNC.
    DataSync,
    /// With O_DIRECT: offset and length are multiples of 4096, or of what the device takes.
    Direct,
    /// With O_APPEND; the offset is the file's end.
    Append,
    /// As the kernel writes back what was changed through a mapping: pages, cut off where the file
    /// ends.
    Mapped,
}

/// One operation of a task.
#[expect(missing_docs, reason = "fields are called what they are")]
#[derive(Debug, Clone, PartialEq, Eq, Hash, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(OperationKind),
    doc = "What an operation is, without what it is given.",
    derive(strum::VariantArray, Hash)
)]
pub enum Operation {
    /// Makes an empty file.
    Create { name: String },
    /// Makes a folder.
    Mkdir { name: String },
    /// Makes a FIFO.
    Mkfifo { name: String },
    /// Makes a symbolic link.
    Symlink { name: String, target: String },
    /// Gives a file a second name.
    Link { from: String, to: String },
    /// Removes the name of a file or symbolic link.
    Unlink { name: String },
    /// Removes the name of a file that is open, and closes it a while later.
    UnlinkOpen { name: String },
    /// Removes an empty folder.
    Rmdir { name: String },
    /// Renames, replacing what is there.
    Rename { from: String, to: String },
    /// Renames where nothing is there.
    RenameNew { from: String, to: String },
    /// Lets two names change places.
    Exchange { one: String, other: String },
    /// Writes `len` bytes that name the task and the operation.
    Write { name: String, offset: u64, len: u64, how: WriteKind },
    /// Makes a file longer or shorter.
    Truncate { name: String, size: u64 },
    /// Gives a range of a file space, or zeros, or takes it out, or puts a hole in.
    Fallocate { name: String, what: Fallocate, offset: u64, len: u64 },
    /// Sets an attribute of so many bytes, the same ones for every file.
    SetAttribute { name: String, len: usize },
    /// Takes it away.
    RemoveAttribute { name: String },
    /// Changes permissions.
    Chmod { name: String, mode: u16 },
    /// Changes owner and group.
    Chown { name: String, uid: u32, gid: u32 },
    /// Sets the times of access and change to so many seconds.
    SetTimes { name: String, secs: i64 },
    /// fsync or fdatasync of a file.
    Fsync { name: String, data_only: bool },
    /// fsync of a folder.
    FsyncDir { name: String },
    /// sync.
    Sync,
    /// A transaction point.
    Transact,
}

/// What an operation does to the data of a file.
#[expect(missing_docs, reason = "fields are called what they are")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Bytes are written.
    Write { offset: u64, len: u64 },
    /// The size is set.
    Truncate { size: u64 },
    /// As fallocate says.
    Fallocate { what: Fallocate, offset: u64, len: u64 },
}

impl Change {
    /// The size after it of a file that had this one.
    pub fn size(self, before: u64) -> u64 {
        use Fallocate::{Allocate, ZeroRange};
        let grows = [Allocate { keep_size: false }, ZeroRange { keep_size: false }];
        match self {
            Change::Write { offset, len } => before.max(offset + len),
            Change::Fallocate { what, offset, len } if grows.contains(&what) => {
                before.max(offset + len)
            }
            Change::Truncate { size } => size,
            Change::Fallocate { what: Fallocate::CollapseRange, len, .. } => before - len,
            Change::Fallocate { what: Fallocate::InsertRange, len, .. } => before + len,
            Change::Fallocate { .. } => before,
        }
    }

    /// Makes it of data in memory; `fill` gives the bytes that are written, from an offset on.
    pub fn make(self, data: &mut Vec<u8>, fill: impl FnOnce(u64, &mut [u8])) {
        let (before, size) = (data.len(), self.size(data.len() as u64) as usize);
        let range = |offset: u64, len: u64| {
            let end = (offset + len) as usize;
            offset as usize..end
        };
        match self {
            Change::Write { offset, len } => {
                data.resize(size, 0);
                fill(offset, &mut data[range(offset, len)]);
            }
            Change::Fallocate { what: Fallocate::CollapseRange, offset, len } => {
                drop(data.drain(range(offset, len)));
            }
            Change::Fallocate { what: Fallocate::InsertRange, offset, len } => {
                let at = offset as usize;
                drop(data.splice(at..at, std::iter::repeat_n(0, len as usize)));
            }
            Change::Fallocate {
                what: Fallocate::PunchHole | Fallocate::ZeroRange { .. },
                offset,
                len,
            } => {
                data.resize(size, 0);
                let range = range(offset, len);
                data[range.start.min(before)..range.end.min(before)].fill(0);
            }
            Change::Truncate { .. }
            | Change::Fallocate { what: Fallocate::Allocate { .. }, .. } => {
                data.resize(size, 0);
            }
        }
    }
}

impl Operation {
    /// The file whose data the operation changes, and how.
    pub fn changed_file(&self) -> Option<(&str, Change)> {
        match *self {
            Operation::Write { ref name, offset, len, .. } => {
                Some((name, Change::Write { offset, len }))
            }
            Operation::Truncate { ref name, size } => Some((name, Change::Truncate { size })),
            Operation::Fallocate { ref name, what, offset, len } => {
                Some((name, Change::Fallocate { what, offset, len }))
            }
            _ => None,
        }
    }

    /// Whether the operation makes a transaction point by itself under `mask`. Files are opened
    /// for each write, truncation excepted, and closed after it.
    pub fn makes_point(&self, mask: TransactMask) -> bool {
        let bits = match self {
            Operation::Create { .. } => TransactMask::CREATE | TransactMask::CLOSE,
            Operation::Symlink { .. } | Operation::Mkfifo { .. } => TransactMask::CREATE,
            Operation::Mkdir { .. } => TransactMask::MKDIR,
            Operation::Link { .. } => TransactMask::LINK,
            Operation::Unlink { .. } | Operation::Rmdir { .. } => TransactMask::UNLINK,
            Operation::Rename { .. } | Operation::RenameNew { .. } | Operation::Exchange { .. } => {
                TransactMask::RENAME
            }
            Operation::UnlinkOpen { .. } => TransactMask::UNLINK | TransactMask::CLOSE,
            Operation::Write { how: WriteKind::Sync | WriteKind::DataSync, .. } => {
                TransactMask::WRITE | TransactMask::CLOSE | TransactMask::FSYNC
            }
            Operation::Write { .. } | Operation::Fallocate { .. } => {
                TransactMask::WRITE | TransactMask::CLOSE
            }
            Operation::Truncate { .. } => TransactMask::TRUNCATE,
            Operation::Chmod { .. }
            | Operation::Chown { .. }
            | Operation::SetTimes { .. }
            | Operation::SetAttribute { .. }
            | Operation::RemoveAttribute { .. } => return false,
            Operation::Fsync { .. } => TransactMask::FSYNC | TransactMask::CLOSE,
            Operation::FsyncDir { .. } => TransactMask::FSYNC,
            Operation::Sync => TransactMask::SYNC,
            Operation::Transact => return true,
        };
        mask.intersects(bits)
    }
}
