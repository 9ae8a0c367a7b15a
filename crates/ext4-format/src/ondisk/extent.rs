//! Extent trees: a header, then leaves or indices, and a checksum behind them in a block of its
//! own (`fs/ext4/ext4_extents.h`).

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use crate::error::{Ext4Error, Result};

/// `EXT4_EXT_MAGIC`.
pub const EXTENT_MAGIC: u16 = 0xf30a;
/// Deepest tree that can be needed (`EXT4_MAX_EXTENT_DEPTH`).
pub(crate) const MAX_EXTENT_DEPTH: u16 = 5;
/// Longest written extent in blocks (`EXT_INIT_MAX_LEN`).
pub const MAX_WRITTEN_LEN: u32 = 32768;
/// Longest unwritten extent in blocks (`EXT_UNWRITTEN_MAX_LEN`).
pub const MAX_UNWRITTEN_LEN: u32 = 32767;

/// Header of a node of the tree (`struct ext4_extent_header`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct ExtentHeader {
    /// `EXTENT_MAGIC` (`eh_magic`).
    pub magic: U16,
    /// Entries in use (`eh_entries`).
    pub entries: U16,
    /// Room for entries (`eh_max`).
    pub max: U16,
    /// 0 in a leaf (`eh_depth`).
    pub depth: U16,
    /// Used by Lustre only (`eh_generation`).
    pub generation: U32,
}

/// A mapped range, as stored (`struct ext4_extent`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct ExtentLeaf {
    /// First block of the file (`ee_block`).
    pub logical: U32,
    /// Blocks; above 32768 the extent is unwritten and 32768 too many (`ee_len`).
    pub len: U16,
    /// First physical block, high 16 bits (`ee_start_hi`).
    pub start_hi: U16,
    /// First physical block, low half (`ee_start_lo`).
    pub start_lo: U32,
}

/// A pointer to a lower node (`struct ext4_extent_idx`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct ExtentIndex {
    /// First block of the file that the lower node covers (`ei_block`).
    pub logical: U32,
    /// The lower node's block, low half (`ei_leaf_lo`).
    pub leaf_lo: U32,
    /// The lower node's block, high 16 bits (`ei_leaf_hi`).
    pub leaf_hi: U16,
    /// `ei_unused`.
    pub unused: U16,
}

/// Checksum behind the room for entries, at `12 + 12 * eh_max` (`struct ext4_extent_tail`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct ExtentTail {
    /// `et_checksum`.
    pub checksum: U32,
}

const _: () = {
    assert!(size_of::<ExtentHeader>() == 12);
    assert!(size_of::<ExtentLeaf>() == 12);
    assert!(size_of::<ExtentIndex>() == 12);
    assert!(size_of::<ExtentTail>() == 4);
    assert!(std::mem::offset_of!(ExtentLeaf, start_lo) == 8);
    assert!(std::mem::offset_of!(ExtentIndex, leaf_hi) == 8);
};

/// A mapped range, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First block of the file.
    pub logical: u32,
    /// Blocks: 1 to `MAX_WRITTEN_LEN` or `MAX_UNWRITTEN_LEN`.
    pub len: u32,
    /// First physical block.
    pub start: u64,
    /// Allocated but never written: reads as zeros.
    pub unwritten: bool,
}

impl Extent {
    /// The block of the file behind the last; may be 2^32.
    pub fn end(&self) -> u64 {
        u64::from(self.logical) + u64::from(self.len)
    }
}

impl From<ExtentLeaf> for Extent {
    /// A stored length of 0 stays 0: whoever reads a tree refuses it.
    fn from(leaf: ExtentLeaf) -> Self {
        let stored = u32::from(leaf.len.get());
        let unwritten = stored > MAX_WRITTEN_LEN;
        Extent {
            logical: leaf.logical.get(),
            len: if unwritten { stored - MAX_WRITTEN_LEN } else { stored },
            start: u64::from(leaf.start_lo.get()) | u64::from(leaf.start_hi.get()) << 32,
            unwritten,
        }
    }
}

impl From<Extent> for ExtentLeaf {
    /// # Panics
    /// If the length cannot be stored: a bug of the caller.
    fn from(e: Extent) -> Self {
        let (longest, bias) =
            if e.unwritten { (MAX_UNWRITTEN_LEN, MAX_WRITTEN_LEN) } else { (MAX_WRITTEN_LEN, 0) };
        assert!((1..=longest).contains(&e.len), "extent of {} blocks", e.len);
        ExtentLeaf {
            logical: e.logical.into(),
            len: ((e.len + bias) as u16).into(),
            start_hi: ((e.start >> 32) as u16).into(),
            start_lo: (e.start as u32).into(),
        }
    }
}

impl ExtentIndex {
    /// A pointer to the node in `block`, which covers the file from `logical` on.
    pub fn new(logical: u32, block: u64) -> Self {
        ExtentIndex {
            logical: logical.into(),
            leaf_lo: (block as u32).into(),
            leaf_hi: ((block >> 32) as u16).into(),
            unused: 0.into(),
        }
    }

    /// The lower node's block.
    pub fn block(&self) -> u64 {
        u64::from(self.leaf_lo.get()) | u64::from(self.leaf_hi.get()) << 32
    }
}

impl ExtentHeader {
    /// Header of an empty node in `node_len` bytes: 60 in the inode, else a block, where a
    /// tail's room is left.
    pub fn empty(node_len: usize, depth: u16) -> Self {
        ExtentHeader {
            magic: EXTENT_MAGIC.into(),
            entries: 0.into(),
            max: Self::capacity(node_len).into(),
            depth: depth.into(),
            generation: 0.into(),
        }
    }

    /// Entries that fit into a node of `node_len` bytes.
    pub fn capacity(node_len: usize) -> u16 {
        (node_len.saturating_sub(size_of::<ExtentHeader>()) / 12).min(usize::from(u16::MAX)) as u16
    }

    /// Reads and checks the header of a node of `node.len()` bytes: magic, a depth of
    /// `expected_depth` (anything up to `MAX_EXTENT_DEPTH` for a root, where it is `None`),
    /// no more entries than room, no more room than bytes.
    ///
    /// # Errors
    /// What is wrong; `place` names the node.
    pub fn parse(
        node: &[u8],
        expected_depth: Option<u16>,
        place: impl Fn() -> String,
    ) -> Result<ExtentHeader> {
        let bad = |what: String| Err(Ext4Error::corrupt(what, place()));
        let Ok((h, _)) = ExtentHeader::read_from_prefix(node) else {
            return bad("extent node is cut short".into());
        };
        if h.magic.get() != EXTENT_MAGIC {
            return bad(format!("extent header's magic number is {:#06x}", h.magic.get()));
        }
        let depth = h.depth.get();
        match expected_depth {
            Some(d) if depth != d => {
                return bad(format!("extent node has depth {depth} where {d} belongs"));
            }
            None if depth > MAX_EXTENT_DEPTH => {
                return bad(format!("extent tree of depth {depth}"));
            }
            _ => {}
        }
        let (entries, max) = (h.entries.get(), h.max.get());
        if max == 0 || max > Self::capacity(node.len()) {
            return bad(format!("extent node says it has room for {max} entries"));
        }
        if entries > max {
            return bad(format!("extent node has {entries} entries and room for {max}"));
        }
        Ok(h)
    }

    /// Offset of the tail in a block's node.
    pub(crate) fn tail_offset(&self) -> usize {
        12 + 12 * usize::from(self.max.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_extents_go_both_ways() {
        for (len, unwritten) in [(1, false), (32768, false), (1, true), (32767, true)] {
            let e = Extent { logical: 7, len, start: 0x1234_5678_9abc, unwritten };
            assert_eq!(Extent::from(ExtentLeaf::from(e)), e);
        }
    }

    #[test]
    fn headers_are_checked() {
        let place = || "test".to_string();
        let mut node = [0u8; 60];
        assert!(ExtentHeader::parse(&node, None, place).is_err());
        let h = ExtentHeader::empty(60, 0);
        node[..12].copy_from_slice(h.as_bytes());
        assert_eq!(ExtentHeader::parse(&node, None, place), Ok(h));
        assert_eq!(h.max.get(), 4);
        assert!(ExtentHeader::parse(&node, Some(1), place).is_err());
        node[2] = 5;
        assert!(ExtentHeader::parse(&node, None, place).is_err());
        node[2] = 1;
        node[4] = 5;
        assert!(ExtentHeader::parse(&node, None, place).is_err());
        assert_eq!(ExtentHeader::capacity(4096), 340);
    }
}
