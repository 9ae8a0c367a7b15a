//! What is known of each inode, kept for the part of each group's table that was read.

use steadfast_ext4_format::ondisk::{GroupNo, InodeNo, Layout};
use steadfast_vfs::FileType;

/// What is known of an inode.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InodeRecord {
    /// It is in use.
    pub(super) used: bool,
    /// Its fields make no sense: a name that leads to it is damage.
    pub(super) bad: bool,
    /// Its type, if the mode holds one.
    pub(super) kind: Option<FileType>,
    /// Links as the inode says.
    pub(super) links: u16,
    /// Names found.
    pub(super) found: u32,
}

/// All inodes that were read.
pub(super) struct InodeTable {
    groups: Vec<Vec<InodeRecord>>,
    per_group: u32,
    count: u32,
}

impl InodeTable {
    pub(super) fn new(layout: &Layout) -> Self {
        InodeTable {
            groups: vec![Vec::new(); layout.groups as usize],
            per_group: layout.inodes_per_group,
            count: layout.inodes_count,
        }
    }

    /// Makes room for the first `n` inodes of a group; `n` is at most the inodes of a group.
    pub(super) fn open(&mut self, group: GroupNo, n: u32) {
        self.groups[group.0 as usize].resize(n as usize, InodeRecord::default());
    }

    fn place(&self, ino: InodeNo) -> Option<(usize, usize)> {
        if ino == InodeNo::NONE || ino.0 > self.count {
            return None;
        }
        let n = ino.0 - 1;
        Some(((n / self.per_group) as usize, (n % self.per_group) as usize))
    }

    /// What is known of an inode; `None` if there is no such inode or it was not read.
    pub(super) fn get(&self, ino: InodeNo) -> Option<&InodeRecord> {
        let (group, index) = self.place(ino)?;
        self.groups[group].get(index)
    }

    /// As [`get`](Self::get), to be changed.
    pub(super) fn get_mut(&mut self, ino: InodeNo) -> Option<&mut InodeRecord> {
        let (group, index) = self.place(ino)?;
        self.groups[group].get_mut(index)
    }

    /// The inodes of a group that were read, from its first on.
    pub(super) fn group(&self, group: GroupNo) -> &[InodeRecord] {
        &self.groups[group.0 as usize]
    }
}
