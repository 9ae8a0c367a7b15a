//! Blocks of the orphan file: inode numbers, then a magic number and a checksum
//! (`struct ext4_orphan_block_tail`).

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// `EXT4_ORPHAN_BLOCK_MAGIC`.
pub const ORPHAN_BLOCK_MAGIC: u32 = 0x0b10_ca04;

/// The last 8 bytes of a block of the orphan file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct OrphanBlockTail {
    /// `ORPHAN_BLOCK_MAGIC` (`ob_magic`).
    pub magic: U32,
    /// `ob_checksum`.
    pub checksum: U32,
}

const _: () = assert!(size_of::<OrphanBlockTail>() == 8);

impl OrphanBlockTail {
    /// The tail of a block; `None` if the block is too short.
    pub fn of(block: &[u8]) -> Option<OrphanBlockTail> {
        OrphanBlockTail::read_from_suffix(block).ok().map(|(_, t)| t)
    }
}

/// Inode numbers in a block of the orphan file.
pub fn orphan_slots(block_size: usize) -> usize {
    block_size.saturating_sub(size_of::<OrphanBlockTail>()) / 4
}
