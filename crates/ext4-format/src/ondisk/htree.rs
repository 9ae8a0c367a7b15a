//! Hashed directories: the root in block 0, inner nodes, and the pairs of hash and block
//! (`struct dx_root`, `dx_node`, `dx_entry`, `dx_countlimit`, `dx_tail` in `fs/ext4/namei.c`).
//!
//! Both kinds of node begin with entries that an old kernel takes for free space. The first pair
//! of a node has no hash: its room holds count and limit.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// Offset of count and limit in the root: behind ".", "..", and [`DxRootInfo`].
pub const DX_ROOT_ENTRIES_OFFSET: usize = 32;
/// Offset of count and limit in another node: behind a free entry of the whole block.
pub const DX_NODE_ENTRIES_OFFSET: usize = 8;
/// Offset of [`DxRootInfo`] in the root.
const DX_ROOT_INFO_OFFSET: usize = 24;

/// What the root says of the tree (`struct dx_root_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct DxRootInfo {
    /// 0 (`reserved_zero`).
    pub reserved: U32,
    /// [`HashVersion`] (`hash_version`).
    pub hash_version: u8,
    /// 8 (`info_length`).
    pub info_length: u8,
    /// Levels of nodes below the root (`indirect_levels`).
    pub indirect_levels: u8,
    /// 0 (`unused_flags`).
    pub flags: u8,
}

impl DxRootInfo {
    /// Reads it from the first block of a directory; `None` if the block is too short.
    pub fn of_root(block: &[u8]) -> Option<DxRootInfo> {
        let (info, _) = DxRootInfo::read_from_prefix(block.get(DX_ROOT_INFO_OFFSET..)?).ok()?;
        Some(info)
    }

    /// Writes it into the first block of a directory.
    pub fn write_to(&self, block: &mut [u8]) {
        block[DX_ROOT_INFO_OFFSET..DX_ROOT_ENTRIES_OFFSET].copy_from_slice(self.as_bytes());
    }
}

/// In the place of the first pair's hash (`struct dx_countlimit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct DxCountLimit {
    /// Room for pairs, the first included (`limit`).
    pub limit: U16,
    /// Pairs in use, the first included (`count`).
    pub count: U16,
}

/// Names from this hash on are under this block (`struct dx_entry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct DxEntry {
    /// Lowest hash; bit 0 says that the previous block ends with the same hash (`hash`).
    pub hash: U32,
    /// Block of the directory, in the low 28 bits (`block`).
    pub block: U32,
}

/// Checksum behind the room for pairs (`struct dx_tail`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct DxTail {
    /// `dt_reserved`.
    pub reserved: U32,
    /// `dt_checksum`.
    pub checksum: U32,
}

const _: () = {
    assert!(size_of::<DxRootInfo>() == 8);
    assert!(size_of::<DxCountLimit>() == 4);
    assert!(size_of::<DxEntry>() == 8);
    assert!(size_of::<DxTail>() == 8);
    assert!(DX_ROOT_INFO_OFFSET + size_of::<DxRootInfo>() == DX_ROOT_ENTRIES_OFFSET);
};

/// Hash of a directory (`DX_HASH_*`). Whether bytes are signed is the superblock's to say, or
/// (in memory only) the codes 3 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashVersion {
    /// `DX_HASH_LEGACY`.
    Legacy,
    /// `DX_HASH_HALF_MD4`.
    HalfMd4,
    /// `DX_HASH_TEA`.
    Tea,
}

impl HashVersion {
    /// From the stored code; codes 3 to 5 are the unsigned forms of 0 to 2.
    pub fn from_code(code: u8) -> Option<HashVersion> {
        match code {
            0 | 3 => Some(HashVersion::Legacy),
            1 | 4 => Some(HashVersion::HalfMd4),
            2 | 5 => Some(HashVersion::Tea),
            _ => None,
        }
    }

    /// The stored code.
    pub fn code(self) -> u8 {
        match self {
            HashVersion::Legacy => 0,
            HashVersion::HalfMd4 => 1,
            HashVersion::Tea => 2,
        }
    }

    /// Name as dumpe2fs prints it.
    pub fn name(self) -> &'static str {
        match self {
            HashVersion::Legacy => "legacy",
            HashVersion::HalfMd4 => "half_md4",
            HashVersion::Tea => "tea",
        }
    }
}

/// Where count and limit are in an index block, as its first entries say: a free one of the
/// whole block in a node, "." and ".." in a root. `None` if it is neither.
pub fn dx_entries_offset(block: &[u8]) -> Option<usize> {
    let rec_len = |at: usize| {
        let stored = u16::from_le_bytes(block.get(at + 4..at + 6)?.try_into().ok()?);
        Some(super::rec_len_from_disk(stored, block.len()))
    };
    if rec_len(0)? == block.len() {
        return Some(DX_NODE_ENTRIES_OFFSET);
    }
    let info = DxRootInfo::of_root(block)?;
    let root = rec_len(0)? == 12
        && rec_len(12)? == block.len() - 12
        && info.reserved.get() == 0
        && info.info_length == 8;
    root.then_some(DX_ROOT_ENTRIES_OFFSET)
}

impl DxCountLimit {
    /// Pairs that fit into an index block whose pairs begin at `offset`, with or without a
    /// checksum behind them.
    pub fn capacity(block_size: usize, offset: usize, checksum: bool) -> u16 {
        let tail = if checksum { size_of::<DxTail>() } else { 0 };
        (block_size.saturating_sub(offset + tail) / size_of::<DxEntry>()) as u16
    }

    /// Reads it at `offset` of an index block.
    pub fn read(block: &[u8], offset: usize) -> Option<DxCountLimit> {
        DxCountLimit::read_from_prefix(block.get(offset..)?).ok().map(|(c, _)| c)
    }
}
