//! Numbers that must not mix.

use std::fmt;

/// The first inode that is not reserved, in revision-0 file systems (`EXT2_GOOD_OLD_FIRST_INO`).
pub const FIRST_INODE_REV0: u32 = 11;

/// Number of an inode on disk; 0 means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InodeNo(pub u32);

impl InodeNo {
    /// No inode.
    pub const NONE: InodeNo = InodeNo(0);
    /// The root directory (`EXT4_ROOT_INO`).
    pub const ROOT: InodeNo = InodeNo(2);
    /// Usage by users (`EXT4_USR_QUOTA_INO`).
    pub const USER_QUOTA: InodeNo = InodeNo(3);
    /// Usage by groups (`EXT4_GRP_QUOTA_INO`).
    pub const GROUP_QUOTA: InodeNo = InodeNo(4);
    /// Holds the blocks reserved for more group descriptors (`EXT4_RESIZE_INO`).
    pub const RESIZE: InodeNo = InodeNo(7);
    /// The usual internal journal (`EXT4_JOURNAL_INO`).
    pub const JOURNAL: InodeNo = InodeNo(8);
}

impl fmt::Display for InodeNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a block group, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GroupNo(pub u32);

impl fmt::Display for GroupNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
