//! What has to be known of a directory besides its blocks.

use crate::error::{Ext4Error, Result};
use crate::ondisk::csum::InodeSeed;
use crate::ondisk::{
    Compat, HashVersion, Incompat, InodeNo, MetadataChecksums, SuperFlags, Superblock,
};

use super::HashSeed;

/// Bytes of a directory without `large_dir`.
const SMALL_DIR_MAX: u32 = 1 << 31;
/// An index entry's block number has 28 bits.
const INDEX_BLOCKS_MAX: u32 = 1 << 28;

/// `EXT4_ENC_STRICT_MODE_FL`
pub const STRICT_NAMES: u16 = 1;
/// `SB_ENC_NO_COMPAT_FALLBACK_FL`
const NO_MISFILED_NAMES: u16 = 2;

/// How a file system keeps its directories: the same for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirFormat {
    /// Inodes in the file system: entries that point beyond are corrupt.
    pub inodes_count: u32,
    /// Whether blocks have checksums, and how they are made.
    pub checksums: MetadataChecksums,
    /// Entries hold a file type (`filetype`).
    pub file_types: bool,
    /// Directories of more than one block are indexed (`dir_index`).
    pub dir_index: bool,
    /// Node levels below an index root: 1, or 2 with `large_dir`.
    pub index_levels_max: u8,
    /// Most blocks of a directory: 2 GiB, or with `large_dir` what an index can point to.
    pub blocks_max: u32,
    /// The hash of directories that become indexed (`s_def_hash_version`).
    pub hash_version: HashVersion,
    /// How names are hashed.
    pub hash_seed: HashSeed,
    /// In a directory that ignores case, names must be text (`s_encoding_flags`).
    pub strict_names: bool,
    /// In a directory that ignores case, names may stand where kernel 6.12 put them, which
    /// folded some otherwise (`s_encoding_flags` do not exclude it).
    pub misfiled_names: bool,
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
        let encoding_flags = sb.encoding_flags.get();
        let large = features.incompat.contains(Incompat::LARGE_DIR);
        let small_max = SMALL_DIR_MAX >> (10 + sb.log_block_size.get().min(6));
        Ok(DirFormat {
            inodes_count: sb.inodes_count.get(),
            checksums: MetadataChecksums::of(sb),
            file_types: features.incompat.contains(Incompat::FILETYPE),
            dir_index: features.compat.contains(Compat::DIR_INDEX),
            index_levels_max: if large { 2 } else { 1 },
            blocks_max: if large { INDEX_BLOCKS_MAX } else { small_max },
            hash_version,
            hash_seed: HashSeed { words: sb.hash_seed.map(|word| word.get()), unsigned },
            strict_names: encoding_flags & STRICT_NAMES != 0,
            misfiled_names: encoding_flags & NO_MISFILED_NAMES == 0,
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
    /// Names are encrypted, and the key is not known.
    pub encrypted: bool,
    /// Names are found in any spelling: case and composition do not count.
    pub casefold: bool,
    /// What holds for all directories.
    pub format: DirFormat,
}

impl DirContext {
    /// The directory with this inode number and generation (`i_generation`).
    pub fn new(format: DirFormat, ino: InodeNo, generation: u32) -> Self {
        let seed = format.checksums.inode_seed(ino, generation);
        DirContext { ino, seed, encrypted: false, casefold: false, format }
    }

    pub(super) fn corrupt(&self, block: u32, what: impl Into<String>) -> Ext4Error {
        Ext4Error::corrupt(what, format!("directory inode {}, block {block}", self.ino))
    }
}
