//! Unmapping a range of file blocks.

use std::sync::Arc;

use super::{Entries, FILE_END, IndexChild, Node, NodeStore, ROOT_BYTES, Tree};
use crate::error::Result;
use crate::ondisk::Extent;

/// What a removal found.
#[derive(Default)]
struct Removal {
    removed: Vec<Extent>,
    /// The right part of an extent that was cut in the middle, when its leaf was full.
    homeless: Option<Extent>,
}

impl<S: NodeStore> Tree<S> {
    /// Unmaps `[from, to)` and returns what was mapped there. Blocks of nodes that become empty
    /// are freed; the data blocks are the caller's.
    pub fn remove(&mut self, from: u64, to: u64) -> Result<Vec<Extent>> {
        let mut removal = Removal::default();
        let mut root = self.take_root();
        let outcome = self.remove_below(&mut root, from, to, FILE_END, &mut removal);
        self.root = root;
        outcome?;
        self.shrink()?;
        if let Some(extent) = removal.homeless {
            self.insert(extent)?;
        }
        Ok(removal.removed)
    }

    /// Whether the node has changed.
    fn remove_below(
        &mut self,
        node: &mut Node,
        from: u64,
        to: u64,
        end: u64,
        removal: &mut Removal,
    ) -> Result<bool> {
        let max = node.max;
        let children = match &mut node.entries {
            Entries::Leaf(extents) => return Ok(cut(extents, from, to, max, removal)),
            Entries::Index(children) => children.clone(),
        };
        let mut kept = Vec::with_capacity(children.len());
        let mut changed = false;
        for (i, c) in children.iter().enumerate() {
            let child_end = children.get(i + 1).map_or(end, |next| next.logical.into());
            if u64::from(c.logical) >= to || child_end <= from {
                kept.push(*c);
                continue;
            }
            let (child, child_end) = self.child(node, &children, i, end)?;
            let mut child = Arc::unwrap_or_clone(child);
            if !self.remove_below(&mut child, from, to, child_end, removal)? {
                kept.push(*c);
                continue;
            }
            changed = true;
            match child.first_logical() {
                None => self.store.free(c.block)?,
                Some(logical) => {
                    self.store.write(c.block, &child)?;
                    kept.push(IndexChild { logical, block: c.block });
                }
            }
        }
        node.entries = Entries::Index(kept);
        Ok(changed)
    }

    /// Takes levels away from the top that are no longer needed.
    fn shrink(&mut self) -> Result<()> {
        loop {
            let Entries::Index(children) = &self.root.entries else { return Ok(()) };
            match children.as_slice() {
                [] => self.root = Node::empty(ROOT_BYTES),
                [only] => {
                    let block = only.block;
                    let (child, _) = self.child(&self.root, children, 0, FILE_END)?;
                    if child.count() > self.root.max {
                        return Ok(());
                    }
                    self.store.free(block)?;
                    self.root = Node { max: self.root.max, ..Arc::unwrap_or_clone(child) };
                }
                _ => return Ok(()),
            }
        }
    }
}

/// Cuts `[from, to)` out of a leaf. Whether anything was there.
fn cut(extents: &mut Vec<Extent>, from: u64, to: u64, max: usize, removal: &mut Removal) -> bool {
    let mut kept = Vec::with_capacity(extents.len() + 1);
    let mut changed = false;
    for e in extents.iter() {
        let (start, end) = (u64::from(e.logical), e.end());
        if end <= from || start >= to {
            kept.push(*e);
            continue;
        }
        changed = true;
        if start < from {
            kept.push(e.clipped(start, from));
        }
        removal.removed.push(e.clipped(from, to));
        if to < end {
            kept.push(e.clipped(to, end));
        }
    }
    if kept.len() > max {
        // Only a cut in the middle of one extent adds an entry: its right part moves.
        let i = kept.partition_point(|e| u64::from(e.logical) < to);
        removal.homeless = Some(kept.remove(i));
    }
    *extents = kept;
    changed
}
