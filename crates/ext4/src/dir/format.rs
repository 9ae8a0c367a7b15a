//! What has to be known of a directory besides its blocks.

use crate::error::{Ext4Error, Result};
use crate::ondisk::csum::InodeSeed;
use crate::ondisk::{Checksums, Compat, HashVersion, Incompat, InodeNo, SuperFlags, Superblock};

use super::HashSeed;

/// How a file system keeps its directories: the same for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirFormat {
    /// Inodes in the file system: entries that point beyond are corrupt.
    pub inodes_count: u32,
    /// Whether blocks have checksums, and how they are made.
    pub checksums: Checksums,
    /// Entries hold a file type (`filetype`).
    pub file_types: bool,
    /// Directories of more than one block are indexed (`dir_index`).
    pub dir_index: bool,
    /// The hash of directories that become indexed (`s_def_hash_version`).
    pub hash_version: HashVersion,
    /// How names are hashed.
    pub hash_seed: HashSeed,
}

impl DirFormat {
    /// As the superblock says. Refuses a default hash that is not known.
    pub fn of(sb: &Superblock) -> Result<Self> {
        let features = sb.features();
        let version = sb.default_hash_version;
        let hash_version = HashVersion::from_code(version).ok_or_else(|| {
            Ext4Error::Unsupported { what: format!("directory hash version {version}") }
        })?;
        // Neither flag: written by x86 before there were flags, where bytes are signed.
        let unsigned =
            SuperFlags::from_bits_retain(sb.flags.get()).contains(SuperFlags::UNSIGNED_HASH);
        Ok(DirFormat {
            inodes_count: sb.inodes_count.get(),
            checksums: Checksums::of(sb),
            file_types: features.incompat.contains(Incompat::FILETYPE),
            dir_index: features.compat.contains(Compat::DIR_INDEX),
            hash_version,
            hash_seed: HashSeed { words: sb.hash_seed.map(|word| word.get()), unsigned },
        })
    }
}

/// One directory of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirContext {
    /// The directory's inode.
    pub ino: InodeNo,
    /// Where its checksums start.
    pub seed: InodeSeed,
    /// What holds for all directories.
    pub format: DirFormat,
}

impl DirContext {
    /// The directory with this inode number and generation (`i_generation`).
    pub fn new(format: DirFormat, ino: InodeNo, generation: u32) -> Self {
        DirContext { ino, seed: format.checksums.inode_seed(ino, generation), format }
    }

    pub(super) fn corrupt(&self, block: u32, what: impl Into<String>) -> Ext4Error {
        Ext4Error::corrupt(what, format!("directory inode {}, block {block}", self.ino))
    }
}
