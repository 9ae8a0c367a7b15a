//! Quota files of version 1 ("vfsv1"), as the hidden quota inodes hold them: blocks of 1 KiB, the
//! first with header and info, then a tree of block numbers over the bytes of an id (the highest
//! first), and blocks of entries (`fs/quota/quotaio_v2.h`, `quota_tree.h`).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// Bytes of a block of a quota file.
pub const QUOTA_BLOCK: usize = 1024;
/// Block of the tree's root (`QT_TREEOFF`).
pub const QUOTA_ROOT: u32 = 1;
/// Levels of the tree: bytes of an id.
pub const QUOTA_DEPTH: usize = 4;
/// Entries that a block holds.
pub const QUOTA_ENTRIES: usize =
    (QUOTA_BLOCK - size_of::<QuotaBlockHeader>()) / size_of::<QuotaEntry>();

/// Magic numbers of user, group and project quota (`V2_INITQMAGICS`).
pub const QUOTA_MAGIC: [u32; 3] = [0xd9c0_1f11, 0xd9c0_1927, 0xd9c0_3f14];
/// The version with 64-bit numbers.
pub const QUOTA_VERSION: u32 = 1;

/// The first 32 bytes of the file (`struct v2_disk_dqheader`, `v2_disk_dqinfo`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct QuotaInfo {
    /// [`QUOTA_MAGIC`] (`dqh_magic`).
    pub magic: U32,
    /// [`QUOTA_VERSION`] (`dqh_version`).
    pub version: U32,
    /// Seconds that the soft limit of space may be exceeded (`dqi_bgrace`).
    pub space_grace: U32,
    /// The same for inodes (`dqi_igrace`).
    pub inode_grace: U32,
    /// `dqi_flags`.
    pub flags: U32,
    /// Blocks of the file (`dqi_blocks`).
    pub blocks: U32,
    /// First of the list of free blocks, 0 if there is none (`dqi_free_blk`).
    pub free_block: U32,
    /// First of the list of blocks with room for an entry, or 0 (`dqi_free_entry`).
    pub free_entry: U32,
}

/// The beginning of a block of entries, or of a free one (`struct qt_disk_dqdbheader`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct QuotaBlockHeader {
    /// Next of its list (`dqdh_next_free`).
    pub next: U32,
    /// The one before (`dqdh_prev_free`).
    pub previous: U32,
    /// Entries in use (`dqdh_entries`).
    pub entries: U16,
    /// `dqdh_pad1`.
    pub pad1: U16,
    /// `dqdh_pad2`.
    pub pad2: U32,
}

/// What one id may use, and uses (`struct v2r1_disk_dqblk`). All zeros: not in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct QuotaEntry {
    /// User, group or project (`dqb_id`).
    pub id: U32,
    /// `dqb_pad`.
    pub pad: U32,
    /// Most inodes, 0 for any number (`dqb_ihardlimit`).
    pub inodes_hard: U64,
    /// Inodes that may be exceeded for a while (`dqb_isoftlimit`).
    pub inodes_soft: U64,
    /// Inodes (`dqb_curinodes`).
    pub inodes: U64,
    /// Most space, in units of 1 KiB, 0 for any (`dqb_bhardlimit`).
    pub space_hard: U64,
    /// Space that may be exceeded for a while, in units of 1 KiB (`dqb_bsoftlimit`).
    pub space_soft: U64,
    /// Space, bytes (`dqb_curspace`).
    pub space: U64,
    /// When the soft limit of space becomes a hard one, seconds (`dqb_btime`).
    pub space_time: U64,
    /// The same for inodes (`dqb_itime`).
    pub inodes_time: U64,
}

impl QuotaEntry {
    /// Entry `i` of a block of entries, if it is in use.
    pub fn of_block(block: &[u8], i: usize) -> Option<QuotaEntry> {
        let at = size_of::<QuotaBlockHeader>() + i * size_of::<QuotaEntry>();
        let (entry, _) = QuotaEntry::read_from_prefix(block.get(at..)?).ok()?;
        entry.as_bytes().iter().any(|b| *b != 0).then_some(entry)
    }

    /// Writes it as entry `i` of a block. An entry of id 0 without anything else would seem free:
    /// it gets a time, as the kernel does it.
    pub fn write_to(mut self, block: &mut [u8], i: usize) {
        if self.as_bytes().iter().all(|b| *b == 0) {
            self.inodes_time.set(1);
        }
        let at = size_of::<QuotaBlockHeader>() + i * size_of::<QuotaEntry>();
        block[at..at + size_of::<QuotaEntry>()].copy_from_slice(self.as_bytes());
    }
}

/// Byte offset, in a block of the tree at `level` (0 is the root), of the number of the block
/// below for an id.
pub fn quota_index(id: u32, level: usize) -> usize {
    usize::from(id.to_be_bytes()[level]) * 4
}

const _: () = {
    assert!(size_of::<QuotaInfo>() == 32);
    assert!(size_of::<QuotaBlockHeader>() == 16);
    assert!(size_of::<QuotaEntry>() == 72);
    assert!(QUOTA_ENTRIES == 14);
};
