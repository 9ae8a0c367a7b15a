//! One node of an extent tree, in memory: its entries, checked when they are read.
//!
//! The root sits in the inode's `i_block` (60 bytes, four entries); other nodes fill a block and
//! end with a checksum after the last possible entry.

use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Ext4Error, Result};
use crate::ondisk::{
    Extent, ExtentHeader, ExtentIndex, ExtentLeaf, MAX_UNWRITTEN_LEN, MAX_WRITTEN_LEN,
};

const HEADER: usize = size_of::<ExtentHeader>();
const ENTRY: usize = size_of::<ExtentLeaf>();

impl Extent {
    /// Longest extent of this kind.
    pub(crate) fn len_max(&self) -> u32 {
        if self.unwritten { MAX_UNWRITTEN_LEN } else { MAX_WRITTEN_LEN }
    }

    /// The part of the extent within `[from, to)`; the caller knows that they overlap.
    pub fn clipped(&self, from: u64, to: u64) -> Extent {
        let start = from.max(self.logical.into());
        let end = to.min(self.end());
        debug_assert!(start < end);
        let skip = start - u64::from(self.logical);
        Extent {
            logical: start as u32,
            len: (end - start) as u32,
            start: self.start + skip,
            unwritten: self.unwritten,
        }
    }

    /// Whether `next` continues this extent in the file and on the device.
    pub(crate) fn joins(&self, next: &Extent) -> bool {
        self.end() == u64::from(next.logical)
            && self.start + u64::from(self.len) == next.start
            && self.unwritten == next.unwritten
            && self.len + next.len <= self.len_max()
    }
}

/// A child of an index node: all blocks from `logical` up to the next child's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexChild {
    pub logical: u32,
    pub block: u64,
}

/// The entries of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entries {
    Leaf(Vec<Extent>),
    Index(Vec<IndexChild>),
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Levels below this node; 0 is a leaf.
    pub depth: u16,
    /// How many entries fit.
    pub max: usize,
    /// `eh_generation`: kept as it is.
    pub generation: u32,
    /// What it holds.
    pub entries: Entries,
}

/// What is wrong with the entries of a node.
#[derive(Debug, thiserror::Error)]
enum NodeDamage {
    #[error("extents overlap or are empty at block {0}")]
    Overlap(u32),
    #[error(
        "extent at block {} points at {}+{}, which no file may own", .0.logical, .0.start, .0.len
    )]
    Target(Extent),
    #[error("index entries out of order at block {0}")]
    Order(u32),
    #[error("index entry points at block {0}")]
    Child(u64),
    #[error("index node without children")]
    NoChildren,
}

impl Node {
    /// An empty leaf that fits into `bytes`.
    pub fn empty(bytes: usize) -> Node {
        let max = usize::from(ExtentHeader::capacity(bytes));
        Node { depth: 0, max, generation: 0, entries: Entries::Leaf(Vec::new()) }
    }

    /// Reads a node. `depth` is what its parent says; `None` for the root. `valid` says whether a
    /// run of device blocks may belong to a file.
    pub fn decode(
        bytes: &[u8],
        depth: Option<u16>,
        valid: &dyn Fn(u64, u64) -> bool,
        place: &dyn Fn() -> String,
    ) -> Result<Node> {
        let header = ExtentHeader::parse(bytes, depth, place)?;
        let depth = header.depth.get();
        let raw = bytes[HEADER..].chunks_exact(ENTRY).take(header.entries.get().into());
        // OK to unwrap: the chunks have the size of an entry, and entries need no alignment.
        let entries = if depth == 0 {
            Entries::Leaf(raw.map(|b| ExtentLeaf::read_from_bytes(b).unwrap().into()).collect())
        } else {
            let child = |b| ExtentIndex::read_from_bytes(b).unwrap();
            let child = |b| IndexChild { logical: child(b).logical.get(), block: child(b).block() };
            Entries::Index(raw.map(child).collect())
        };
        let generation = header.generation.get();
        let node = Node { depth, max: header.max.get().into(), generation, entries };
        node.check(valid).map_err(|what| Ext4Error::corrupt(what.to_string(), place()))?;
        Ok(node)
    }

    fn check(&self, valid: &dyn Fn(u64, u64) -> bool) -> std::result::Result<(), NodeDamage> {
        let mut next = 0u64;
        match &self.entries {
            Entries::Leaf(extents) => {
                for e in extents {
                    if e.len == 0 || u64::from(e.logical) < next || e.end() > 1 << 32 {
                        return Err(NodeDamage::Overlap(e.logical));
                    }
                    if !valid(e.start, e.len.into()) {
                        return Err(NodeDamage::Target(*e));
                    }
                    next = e.end();
                }
            }
            Entries::Index(children) => {
                for (i, c) in children.iter().enumerate() {
                    if i > 0 && u64::from(c.logical) < next {
                        return Err(NodeDamage::Order(c.logical));
                    }
                    if !valid(c.block, 1) {
                        return Err(NodeDamage::Child(c.block));
                    }
                    next = u64::from(c.logical) + 1;
                }
                if children.is_empty() {
                    return Err(NodeDamage::NoChildren);
                }
            }
        }
        Ok(())
    }

    /// Writes the node to `out`, which keeps its bytes beyond the last entry.
    pub fn encode(&self, out: &mut [u8]) {
        let mut header = ExtentHeader::empty(out.len(), self.depth);
        debug_assert!(self.count() <= self.max && self.max <= usize::from(header.max.get()));
        header.entries.set(self.count() as u16);
        header.max.set(self.max as u16);
        header.generation.set(self.generation);
        out[..HEADER].copy_from_slice(header.as_bytes());
        let raw = out[HEADER..].chunks_exact_mut(ENTRY);
        match &self.entries {
            Entries::Leaf(extents) => raw
                .zip(extents)
                .for_each(|(raw, e)| raw.copy_from_slice(ExtentLeaf::from(*e).as_bytes())),
            Entries::Index(children) => raw.zip(children).for_each(|(raw, c)| {
                raw.copy_from_slice(ExtentIndex::new(c.logical, c.block).as_bytes());
            }),
        }
    }

    /// Entries in use.
    pub fn count(&self) -> usize {
        match &self.entries {
            Entries::Leaf(e) => e.len(),
            Entries::Index(c) => c.len(),
        }
    }

    /// First file block of the node's first entry.
    pub fn first_logical(&self) -> Option<u32> {
        match &self.entries {
            Entries::Leaf(e) => e.first().map(|e| e.logical),
            Entries::Index(c) => c.first().map(|c| c.logical),
        }
    }
}

/// Index of the child that covers `logical`: the last one that begins at or before it, else the
/// first.
pub fn child_for(children: &[IndexChild], logical: u64) -> usize {
    children.partition_point(|c| u64::from(c.logical) <= logical).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Result<Node> {
        Node::decode(bytes, None, &|start, len| start > 0 && start + len < 1 << 40, &|| {
            "test".into()
        })
    }

    #[test]
    fn nodes_round_trip() {
        let extents = vec![
            Extent { logical: 0, len: 32768, start: 1 << 33, unwritten: false },
            Extent { logical: 40000, len: 32767, start: 77, unwritten: true },
        ];
        let leaf = Node { entries: Entries::Leaf(extents), ..Node::empty(60) };
        let mut bytes = [0; 60];
        leaf.encode(&mut bytes);
        assert_eq!(decode(&bytes), Ok(leaf.clone()));
        let index = Node {
            depth: 2,
            entries: Entries::Index(vec![IndexChild { logical: 5, block: 1 << 34 | 9 }]),
            ..leaf
        };
        index.encode(&mut bytes);
        assert_eq!(decode(&bytes), Ok(index));
    }

    #[test]
    fn hostile_nodes_are_refused() {
        let two = |a: Extent, b: Extent| {
            let mut bytes = [0; 60];
            Node { entries: Entries::Leaf(vec![a, b]), ..Node::empty(60) }.encode(&mut bytes);
            decode(&bytes).map(drop)
        };
        let e = |logical, len, start| Extent { logical, len, start, unwritten: false };
        assert!(two(e(0, 4, 10), e(4, 4, 20)).is_ok());
        for (a, b) in [
            (e(0, 5, 10), e(4, 4, 20)),
            (e(4, 4, 10), e(0, 4, 20)),
            (e(0, 4, 0), e(4, 4, 20)),
            (e(0, 4, 10), e(u32::MAX, 2, 20)),
            (e(0, 4, 10), e(4, 4, (1 << 40) - 2)),
        ] {
            assert!(matches!(two(a, b), Err(Ext4Error::Corrupt { .. })), "{a:?} {b:?}");
        }
        let mut bytes = [0; 60];
        Node::empty(60).encode(&mut bytes);
        for (at, value) in [(0, 1), (2, 5), (4, 6), (4, 0), (6, 1), (7, 1)] {
            let mut bad = bytes;
            bad[at] = value;
            assert!(decode(&bad).is_err(), "byte {at}");
        }
    }
}
