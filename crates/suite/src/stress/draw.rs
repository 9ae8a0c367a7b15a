//! What a task does next, drawn by its random numbers from what there is.

use steadfast_vfs::Fallocate;

use super::random::SplitMix64;
use super::task::Task;
use crate::names::NodeKind;
use crate::operation::{Operation, WriteKind};

/// More names than this are not made.
const NAMES_MAX: usize = 60;
/// No file grows far beyond this.
pub(super) const SIZE_MAX: usize = 600_000;
/// Direct requests and moves begin and end at blocks; the file need not.
const BLOCK: usize = 4096;

/// Where in a file of this size, and how much of it.
pub(super) fn range(random: &mut SplitMix64, size: u64) -> (u64, u64) {
    let (at, len) = random.range(size as usize);
    (at as u64, len as u64)
}

impl Task {
    /// Some name of that kind, of any if `None`; not the folder itself.
    pub(super) fn pick(&mut self, kind: Option<NodeKind>) -> Option<String> {
        let names = &self.tree.names;
        let fits = |n: &&String| !n.is_empty() && (kind.is_none() || names.kind(n) == kind);
        let all: Vec<&String> = names.entries.keys().filter(fits).collect();
        if all.is_empty() { None } else { Some(all[self.random.below(all.len())].clone()) }
    }

    /// A name that is not taken, in some folder.
    fn new_name(&mut self) -> String {
        let folder = match self.random.one_in(2) {
            true => self.pick(Some(NodeKind::Folder)),
            false => None,
        };
        loop {
            let len = [1, 5, 30, 255][self.random.below(4)];
            let number = format!("{:x}", self.random.next() % 4096);
            let name = format!("{number}{}", "n".repeat(len)).chars().take(255).collect::<String>();
            let path = match &folder {
                // Paths must not become too long for a call.
                Some(folder) if folder.len() < 1000 => format!("{folder}/{name}"),
                _ => name,
            };
            if self.tree.names.kind(&path).is_none() {
                return path;
            }
        }
    }

    /// An operation on names, if there is something for it to work on.
    pub(super) fn draw_names(&mut self) -> Option<Operation> {
        let drawn = self.random.below(31);
        if drawn < 15 && self.tree.names.entries.len() > NAMES_MAX {
            return self.remove();
        }
        Some(match drawn {
            0..8 => Operation::Create { name: self.new_name() },
            8..10 => Operation::Mkdir { name: self.new_name() },
            10..12 => {
                let len = [1, 59, 60, 200, 3000][self.random.below(5)];
                // It must fit into a block.
                let target = "t".repeat(len.min(self.block_size - 1));
                Operation::Symlink { name: self.new_name(), target }
            }
            12..15 => {
                let from = self.pick(Some(NodeKind::File))?;
                Operation::Link { from, to: self.new_name() }
            }
            15..21 => return self.remove(),
            21..26 => {
                let from = self.pick(None)?;
                let over = if self.random.one_in(2) { self.pick(None) } else { None };
                Operation::Rename { from, to: over.unwrap_or_else(|| self.new_name()) }
            }
            26..28 => Operation::Exchange { one: self.pick(None)?, other: self.pick(None)? },
            _ => {
                // All attributes of a file must fit into a block.
                let max = self.block_size * 3 / 4 - 32;
                let len = [0, 10, 300, 3000][self.random.below(4)].min(max);
                Operation::SetAttribute { name: self.pick(Some(NodeKind::File))?, len }
            }
        })
    }

    fn remove(&mut self) -> Option<Operation> {
        let name = self.pick(None)?;
        Some(match self.tree.names.kind(&name) {
            Some(NodeKind::Folder) => Operation::Rmdir { name },
            _ => Operation::Unlink { name },
        })
    }

    /// An operation that changes what a file holds, or makes it durable; `None` if it could not
    /// be done.
    pub(super) fn draw_change(&mut self, name: String) -> Option<Operation> {
        let size = self.tree.names.size(&name);
        let random = &mut self.random;
        let write = |offset: usize, len: usize, how| Operation::Write {
            name: name.clone(),
            offset: offset as u64,
            len: len as u64,
            how,
        };
        Some(match random.below(40) {
            0..12 => {
                // Now and then beyond the end.
                let room = if random.one_in(4) { SIZE_MAX } else { size.max(1) as usize };
                let how = match random.below(20) {
                    0 => WriteKind::Sync,
                    1 => WriteKind::DataSync,
                    _ => WriteKind::Buffered,
                };
                write(random.below(room), 1 + random.range(70_000).1, how)
            }
            12..18 => {
                let len = 1 + random.range(20_000).1;
                match size as usize + len > SIZE_MAX {
                    true => Operation::Truncate { name, size: random.below(SIZE_MAX) as u64 },
                    false => write(size as usize, len, WriteKind::Append),
                }
            }
            18..24 => {
                let room = if random.one_in(4) { SIZE_MAX } else { (size as usize).max(BLOCK) };
                let at = random.below(room) / BLOCK * BLOCK;
                write(at, (1 + random.below(8)) * BLOCK, WriteKind::Direct)
            }
            24..29 => match random.range(size as usize) {
                (_, 0) => return None,
                (at, len) => write(at, len, WriteKind::Mapped),
            },
            29..32 => {
                let to = match random.below(4) {
                    0 => 0,
                    1 => random.below(SIZE_MAX),
                    _ => random.below(size as usize + 1),
                };
                Operation::Truncate { name, size: to as u64 }
            }
            32..38 => return self.draw_fallocate(name, size),
            _ => Operation::Fsync { name, data_only: random.one_in(2) },
        })
    }

    fn draw_fallocate(&mut self, name: String, size: u64) -> Option<Operation> {
        let random = &mut self.random;
        let (at, len) = range(random, size.max(10_000));
        let block = BLOCK as u64;
        let (first, count) = (at / block * block, (1 + random.below(4)) as u64 * block);
        let (what, offset, len) = match random.below(6) {
            0 => (Fallocate::Allocate { keep_size: false }, at, len),
            1 => (Fallocate::Allocate { keep_size: true }, at, len),
            2 => (Fallocate::PunchHole, at, len),
            3 => (Fallocate::ZeroRange { keep_size: false }, at, len),
            // What the kernel refuses as well is left out.
            4 if first + count < size => (Fallocate::CollapseRange, first, count),
            5 if first < size && size + count <= SIZE_MAX as u64 => {
                (Fallocate::InsertRange, first, count)
            }
            _ => return None,
        };
        Some(Operation::Fallocate { name, what, offset, len })
    }
}
