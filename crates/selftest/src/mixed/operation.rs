//! The operations.

use steadfast_crash::JOURNAL_MAGIC;
use steadfast_vfs::{Fallocate, TransactMask};

/// How a write is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteKind {
    /// Through the page cache.
    Buffered,
    /// With O_SYNC.
    Sync,
    /// With O_DSYNC.
    DataSync,
    /// With O_DIRECT: offset and length are multiples of 4096.
    Direct,
    /// As the kernel writes back what was changed through a mapping: pages, cut off where the file
    /// ends.
    Mapped,
}

/// One operation of a task. Names are paths inside the task's folder; "" is the folder itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(
    test,
    derive(strum::EnumDiscriminants),
    strum_discriminants(name(Sort), vis(pub(crate)), derive(strum::VariantArray, Hash))
)]
pub enum Operation {
    /// Makes an empty file.
    Create { name: String },
    /// Makes a folder.
    Mkdir { name: String },
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
    /// Writes `len` bytes that name the task and the operation.
    Write { name: String, offset: u64, len: u64, how: WriteKind },
    /// Makes a file longer or shorter.
    Truncate { name: String, size: u64 },
    /// Gives a range of a file space, or zeros, or takes it out, or puts a hole in. What is
    /// allocated does not change the size.
    Fallocate { name: String, what: Fallocate, offset: u64, len: u64 },
    /// Sets an attribute of so many bytes, the same ones for every file.
    SetAttribute { name: String, len: usize },
    /// Lets two names change places.
    Exchange { one: String, other: String },
    /// Changes permissions.
    Chmod { name: String, mode: u16 },
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
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
        match self {
            Change::Write { offset, len } => before.max(offset + len),
            Change::Truncate { size } => size,
            Change::Fallocate { what: Fallocate::CollapseRange, len, .. } => before - len,
            Change::Fallocate { what: Fallocate::InsertRange, len, .. } => before + len,
            Change::Fallocate { .. } => before,
        }
    }
}

impl Operation {
    /// The file whose data the operation changes, and how.
    pub(crate) fn changed_file(&self) -> Option<(&str, Change)> {
        match *self {
            Operation::Write { ref name, offset, len, .. } => {
                Some((name, Change::Write { offset, len }))
            }
            Operation::Truncate { ref name, size } => Some((name, Change::Truncate { size })),
            Operation::Fallocate { ref name, what, offset, len } => {
                Some((name, Change::Fallocate { what, offset, len }))
            }
            Operation::Create { .. }
            | Operation::Mkdir { .. }
            | Operation::Symlink { .. }
            | Operation::Link { .. }
            | Operation::Unlink { .. }
            | Operation::UnlinkOpen { .. }
            | Operation::Rmdir { .. }
            | Operation::Rename { .. }
            | Operation::SetAttribute { .. }
            | Operation::Exchange { .. }
            | Operation::Chmod { .. }
            | Operation::Fsync { .. }
            | Operation::FsyncDir { .. }
            | Operation::Sync
            | Operation::Transact => None,
        }
    }

    /// Whether the operation makes a transaction point by itself under `mask`. Files are opened
    /// for each write, truncation excepted, and closed after it.
    pub(super) fn makes_point(&self, mask: TransactMask) -> bool {
        let bits = match self {
            Operation::Create { .. } => TransactMask::CREATE | TransactMask::CLOSE,
            Operation::Symlink { .. } => TransactMask::CREATE,
            Operation::Mkdir { .. } => TransactMask::MKDIR,
            Operation::Link { .. } => TransactMask::LINK,
            Operation::Unlink { .. } | Operation::Rmdir { .. } => TransactMask::UNLINK,
            Operation::Rename { .. } | Operation::Exchange { .. } => TransactMask::RENAME,
            Operation::UnlinkOpen { .. } => TransactMask::UNLINK | TransactMask::CLOSE,
            Operation::Write {
                how: WriteKind::Buffered | WriteKind::Direct | WriteKind::Mapped,
                ..
            }
            | Operation::Fallocate { .. } => TransactMask::WRITE | TransactMask::CLOSE,
            Operation::Write { .. } => {
                TransactMask::WRITE | TransactMask::CLOSE | TransactMask::FSYNC
            }
            Operation::Truncate { .. } => TransactMask::TRUNCATE,
            Operation::Chmod { .. } | Operation::SetAttribute { .. } => return false,
            Operation::Fsync { .. } => TransactMask::FSYNC | TransactMask::CLOSE,
            Operation::FsyncDir { .. } => TransactMask::FSYNC,
            Operation::Sync => TransactMask::SYNC,
            Operation::Transact => return true,
        };
        mask.intersects(bits)
    }
}

/// The value that an attribute of so many bytes has.
pub(crate) fn attribute(len: usize) -> Vec<u8> {
    (0..len).map(|at| byte(0, len, at as u64)).collect()
}

/// Names an operation of a task: its place in the order, from 0.
pub(crate) type OperationIndex = usize;

/// Blocks begin at multiples of this.
const BLOCK_MIN: u64 = 1024;

/// Bytes of one value, one after the other: no power of two, so that no block is like another.
const RUN: u64 = 5;

/// The byte that operation `index` of `task` writes at `at`. Never zero: that is what nobody
/// wrote. Blocks of every other operation begin with the number that a log's own begin with.
pub(crate) fn byte(task: usize, index: OperationIndex, at: u64) -> u8 {
    if index % 2 == 1
        && let Some(magic) = JOURNAL_MAGIC.get((at % BLOCK_MIN) as usize)
    {
        return *magic;
    }
    run_byte(task, index, at / RUN)
}

fn run_byte(task: usize, index: OperationIndex, run: u64) -> u8 {
    let seed = (task as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (index as u64) << 20;
    let mixed = (seed ^ run).wrapping_mul(0xa076_1d64_78bd_642f);
    (mixed >> 40) as u8 | 1
}

/// Fills `out` with what the operation writes from `offset` on: [`byte`] of each, but a run at
/// once, because every state that is judged needs it.
pub(crate) fn fill(task: usize, index: OperationIndex, offset: u64, out: &mut [u8]) {
    let mut at = 0;
    while at < out.len() {
        let place = offset + at as u64;
        let to = out.len().min(at + (RUN - place % RUN) as usize);
        out[at..to].fill(run_byte(task, index, place / RUN));
        at = to;
    }
    if index % 2 == 1 {
        let end = offset + out.len() as u64;
        for block in offset / BLOCK_MIN..end.div_ceil(BLOCK_MIN) {
            for (place, magic) in (block * BLOCK_MIN..end).zip(JOURNAL_MAGIC) {
                if let Some(at) = place.checked_sub(offset) {
                    out[at as usize] = magic;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_is_each_byte() {
        for index in [6, 7] {
            for offset in [0, 1, 4, 5, 1019, 1021, 1023, 1024, 1026, 4095] {
                for len in [0, 1, 3, 5, 6, 1024, 2100] {
                    let mut filled = vec![0; len];
                    fill(3, index, offset, &mut filled);
                    let each: Vec<u8> =
                        (offset..offset + len as u64).map(|at| byte(3, index, at)).collect();
                    assert_eq!(filled, each, "operation {index}, {len} bytes at {offset}");
                }
            }
        }
    }
}
