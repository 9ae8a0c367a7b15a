//! JBD2 on disk: one structure a file. All integers are big-endian.
//!
//! Source: the kernel's `include/linux/jbd2.h` and `Documentation/filesystems/ext4/journal.rst`.

pub(crate) mod commit_block;
pub(crate) mod descriptor;
pub(crate) mod fast_commit;
pub(crate) mod features;
pub(crate) mod layout;
pub(crate) mod revoke;
pub(crate) mod superblock;
pub(crate) mod tag;

use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::Tid;

/// First word of every block that JBD2 itself writes (kernel: `JBD2_MAGIC_NUMBER`).
pub(crate) const MAGIC: u32 = 0xc03b_3998;

/// What a block with [`MAGIC`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockType {
    Descriptor,
    Commit,
    SuperblockV1,
    SuperblockV2,
    Revoke,
    Unknown,
}

impl BlockType {
    pub(crate) fn number(self) -> u32 {
        match self {
            BlockType::Unknown => 0,
            BlockType::Descriptor => 1,
            BlockType::Commit => 2,
            BlockType::SuperblockV1 => 3,
            BlockType::SuperblockV2 => 4,
            BlockType::Revoke => 5,
        }
    }

    fn of(number: u32) -> Self {
        match number {
            1 => BlockType::Descriptor,
            2 => BlockType::Commit,
            3 => BlockType::SuperblockV1,
            4 => BlockType::SuperblockV2,
            5 => BlockType::Revoke,
            _ => BlockType::Unknown,
        }
    }
}

/// Head of every block that JBD2 itself writes (kernel: `journal_header_t`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    /// `h_magic`
    pub magic: U32,
    /// `h_blocktype`
    pub block_type: U32,
    /// `h_sequence`
    pub sequence: U32,
}

const _: () = assert!(size_of::<Header>() == 12);

impl Header {
    pub(crate) const BYTES: usize = size_of::<Header>();

    pub(crate) fn new(block_type: BlockType, tid: Tid) -> Self {
        Header {
            magic: U32::new(MAGIC),
            block_type: U32::new(block_type.number()),
            sequence: U32::new(tid.0),
        }
    }

    /// The header of a block that carries [`MAGIC`]; `None` for any other block.
    pub(crate) fn of(block: &[u8]) -> Option<Self> {
        let (header, _) = Header::read_from_prefix(block).ok()?;
        (header.magic.get() == MAGIC).then_some(header)
    }

    pub(crate) fn kind(&self) -> BlockType {
        BlockType::of(self.block_type.get())
    }

    pub(crate) fn tid(&self) -> Tid {
        Tid(self.sequence.get())
    }
}
