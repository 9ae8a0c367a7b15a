//! Extent trees: which file block lies where on the device.
//!
//! `Tree` works over a `NodeStore`, the blocks that hold its nodes, so that it knows nothing
//! of transactions and is tested over plain memory. The caller keeps the root (60 bytes in the
//! inode) and stores it back after a change.
//!
//! # Invariants
//!
//! * A node's entries are in order and lie within the range its parent gives it, and so do those
//!   of its children: no walk visits a block twice, however hostile the tree.
//! * A parent's key equals the first file block of the child after every change.
//! * No index node and, below the root, no leaf is empty.

mod node;
mod remove;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;

pub use node::Node;
use node::{Entries, IndexChild, child_for};

use crate::error::{Ext4Error, Result};
use crate::ondisk::{Extent, ExtentHeader, MAX_EXTENT_DEPTH};

/// Bytes of the root: the inode's `i_block`.
pub const ROOT_BYTES: usize = 60;

/// The blocks that hold a tree's nodes, to be read.
pub trait NodeRead {
    /// A node's block, its checksum verified.
    fn read(&self, block: u64) -> Result<Bytes>;
    /// Whether a run of device blocks may belong to a file.
    fn valid(&self, start: u64, len: u64) -> bool;
    /// Names the tree in messages.
    fn place(&self) -> String;
    /// A node that was decoded from this very buffer, or none.
    fn cached(&self, _block: u64, _contents: &Bytes) -> Option<Arc<Node>> {
        None
    }
    /// A node has been decoded.
    fn decoded(&self, _block: u64, _contents: &Bytes, _node: &Arc<Node>) {}
}

/// The blocks that hold a tree's nodes, to be changed.
pub trait NodeStore: NodeRead {
    /// Bytes a block.
    fn block_size(&self) -> usize;
    /// Stores a node.
    fn write(&mut self, block: u64, node: &Node) -> Result<()>;
    /// A new block for a node of this file.
    fn allocate(&mut self) -> Result<u64>;
    /// A node's block is no longer needed.
    fn free(&mut self, block: u64) -> Result<()>;
}

/// What is at a file block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// An extent that holds the block; whole, not cut.
    Mapped(Extent),
    /// Nothing, and nothing up to `until` either (2^32: to the end).
    Hole {
        /// The next file block that may be mapped.
        until: u64,
    },
}

/// An extent tree.
pub struct Tree<S> {
    root: Node,
    store: S,
}

/// Block numbers in a file end below this.
pub const FILE_END: u64 = 1 << 32;

impl<S: NodeRead> Tree<S> {
    /// The tree whose root is `root`.
    pub fn open(root: &[u8], store: S) -> Result<Self> {
        let valid = |start, len| store.valid(start, len);
        let root = Node::decode(root, None, &valid, &|| store.place())?;
        Ok(Tree { root, store })
    }

    /// The root, for the inode.
    pub fn root(&self) -> [u8; ROOT_BYTES] {
        let mut bytes = [0; ROOT_BYTES];
        self.root.encode(&mut bytes);
        bytes
    }

    fn child(
        &self,
        parent: &Node,
        children: &[IndexChild],
        i: usize,
        end: u64,
    ) -> Result<(Arc<Node>, u64)> {
        let IndexChild { logical, block } = children[i];
        let end = children.get(i + 1).map_or(end, |next| u64::from(next.logical));
        let place = || format!("{}, extent block {block}", self.store.place());
        let bytes = self.store.read(block)?;
        let depth = parent.depth - 1;
        let node = match self.store.cached(block, &bytes).filter(|node| node.depth == depth) {
            Some(node) => node,
            None => {
                let valid = |start, len| self.store.valid(start, len);
                let node = Arc::new(Node::decode(&bytes, Some(depth), &valid, &place)?);
                self.store.decoded(block, &bytes, &node);
                node
            }
        };
        let last = match &node.entries {
            Entries::Leaf(extents) => extents.last().map(Extent::end),
            Entries::Index(children) => children.last().map(|c| u64::from(c.logical) + 1),
        };
        if node.first_logical().is_none_or(|f| f < logical) || last.is_none_or(|l| l > end) {
            return Err(Ext4Error::corrupt("extent node outside its parent's range", place()));
        }
        Ok((node, end))
    }

    /// What is at file block `logical`.
    pub fn lookup(&self, logical: u32) -> Result<Lookup> {
        let at = u64::from(logical);
        let (mut node, mut end) = (None::<Arc<Node>>, FILE_END);
        loop {
            let this = node.as_deref().unwrap_or(&self.root);
            match &this.entries {
                Entries::Index(children) => {
                    let i = child_for(children, at);
                    if u64::from(children[i].logical) > at {
                        return Ok(Lookup::Hole { until: children[i].logical.into() });
                    }
                    let (next, next_end) = self.child(this, children, i, end)?;
                    (node, end) = (Some(next), next_end);
                }
                Entries::Leaf(extents) => {
                    let i = extents.partition_point(|e| e.end() <= at);
                    return Ok(match extents.get(i) {
                        Some(e) if u64::from(e.logical) <= at => Lookup::Mapped(*e),
                        Some(e) => Lookup::Hole { until: e.logical.into() },
                        None => Lookup::Hole { until: end },
                    });
                }
            }
        }
    }

    /// The extent that holds `from`, or else the next one.
    pub fn next_extent(&self, mut from: u64) -> Result<Option<Extent>> {
        while from < FILE_END {
            match self.lookup(from as u32)? {
                Lookup::Mapped(e) => return Ok(Some(e)),
                Lookup::Hole { until } => from = until,
            }
        }
        Ok(None)
    }

    /// First file block of the last extents, at most `count`; `None` if nothing is mapped.
    pub fn last_extents(&self, count: usize) -> Result<Option<u32>> {
        self.in_leaf(u64::MAX, |extents| {
            let first = extents.len().saturating_sub(count);
            extents.get(first).map(|e| e.logical)
        })
    }

    /// The last extent that begins at or before `logical`, in the leaf that covers it.
    pub fn at_or_before(&self, logical: u32) -> Result<Option<Extent>> {
        self.in_leaf(logical.into(), |extents| {
            let i = extents.partition_point(|e| e.logical <= logical);
            i.checked_sub(1).map(|i| extents[i])
        })
    }

    /// Looks at the leaf that covers a file block, or else the nearest one.
    fn in_leaf<T>(&self, at: u64, look: impl FnOnce(&[Extent]) -> T) -> Result<T> {
        let (mut node, mut end) = (None::<Arc<Node>>, FILE_END);
        loop {
            let this = node.as_deref().unwrap_or(&self.root);
            match &this.entries {
                Entries::Index(children) => {
                    let (next, e) = self.child(this, children, child_for(children, at), end)?;
                    (node, end) = (Some(next), e);
                }
                Entries::Leaf(extents) => return Ok(look(extents)),
            }
        }
    }
}

impl<S: NodeStore> Tree<S> {
    /// Maps a range that is a hole. Extents that join their neighbours are merged.
    pub fn insert(&mut self, extent: Extent) -> Result<()> {
        debug_assert!(extent.len > 0 && extent.len <= extent.len_max());
        let mut root = self.take_root();
        let outcome = self.insert_below(&mut root, extent, FILE_END);
        self.root = root;
        outcome?;
        if self.root.count() > self.root.max { self.grow() } else { Ok(()) }
    }

    /// The root is out of the tree while it is changed; an error leaves the tree unusable, and
    /// the transaction that it belongs to is dropped.
    fn take_root(&mut self) -> Node {
        std::mem::replace(&mut self.root, Node::empty(ROOT_BYTES))
    }

    /// Inserts and leaves the node with at most one entry too many.
    fn insert_below(&mut self, node: &mut Node, extent: Extent, end: u64) -> Result<()> {
        let children = match &mut node.entries {
            Entries::Leaf(extents) => {
                return insert_sorted(extents, extent)
                    .ok_or_else(|| Ext4Error::corrupt("extents overlap", self.store.place()));
            }
            Entries::Index(children) => children.clone(),
        };
        let i = child_for(&children, extent.logical.into());
        let block = children[i].block;
        let (child, child_end) = self.child(node, &children, i, end)?;
        let mut child = Arc::unwrap_or_clone(child);
        self.insert_below(&mut child, extent, child_end)?;
        let full = child.count() > child.max;
        let split = if full { Some(self.split(&mut child, extent.logical)?) } else { None };
        self.store.write(block, &child)?;
        let Entries::Index(children) = &mut node.entries else { return Ok(()) };
        // OK to unwrap: something was just inserted.
        children[i].logical = child.first_logical().unwrap();
        if let Some(new) = split {
            children.insert(i + 1, new);
        }
        Ok(())
    }

    /// Moves part of an overfull node, into which `key` was inserted, to a new block: only the
    /// new entry if it is the last, so that a growing file leaves full nodes behind; else half.
    fn split(&mut self, node: &mut Node, key: u32) -> Result<IndexChild> {
        let block = self.store.allocate()?;
        let split_point = |last: u32, count: usize| if last == key { count - 1 } else { count / 2 };
        let entries = match &mut node.entries {
            Entries::Leaf(e) => {
                Entries::Leaf(e.split_off(split_point(e[e.len() - 1].logical, e.len())))
            }
            Entries::Index(c) => {
                Entries::Index(c.split_off(split_point(c[c.len() - 1].logical, c.len())))
            }
        };
        let new = Node { depth: node.depth, max: node.max, generation: 0, entries };
        self.store.write(block, &new)?;
        // OK to unwrap: the split point is before the end.
        Ok(IndexChild { logical: new.first_logical().unwrap(), block })
    }

    /// Moves the root's entries into a block of their own: one level more.
    fn grow(&mut self) -> Result<()> {
        if self.root.depth >= MAX_EXTENT_DEPTH {
            return Err(Ext4Error::corrupt("extent tree too deep", self.store.place()));
        }
        let block = self.store.allocate()?;
        let root = self.take_root();
        let node = Node { max: ExtentHeader::capacity(self.store.block_size()).into(), ..root };
        self.store.write(block, &node)?;
        // OK to unwrap: it has one entry too many.
        let only = IndexChild { logical: node.first_logical().unwrap(), block };
        self.root = Node {
            depth: node.depth + 1,
            max: ExtentHeader::capacity(ROOT_BYTES).into(),
            generation: node.generation,
            entries: Entries::Index(vec![only]),
        };
        Ok(())
    }
}

/// Inserts in order and merges with the neighbours; `None` if it overlaps one.
fn insert_sorted(extents: &mut Vec<Extent>, new: Extent) -> Option<()> {
    let i = extents.partition_point(|e| e.logical < new.logical);
    let overlaps = (i > 0 && extents[i - 1].end() > u64::from(new.logical))
        || extents.get(i).is_some_and(|next| u64::from(next.logical) < new.end());
    if overlaps {
        return None;
    }
    if i > 0 && extents[i - 1].joins(&new) {
        extents[i - 1].len += new.len;
        if extents.get(i).is_some_and(|next| extents[i - 1].joins(next)) {
            extents[i - 1].len += extents[i].len;
            extents.remove(i);
        }
    } else if extents.get(i).is_some_and(|next| new.joins(next)) {
        extents[i] = Extent { len: new.len + extents[i].len, ..new };
    } else {
        extents.insert(i, new);
    }
    Some(())
}
