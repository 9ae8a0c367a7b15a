//! Adding a name, and what may have to give way for it: a leaf, an index node, the linear form.

use steadfast_vfs::FsError;

use super::block::{self, DOT_DOT, NewEntry};
use super::index::Path;
use super::{DirBlocksMut, Directory};
use crate::error::{Ext4Error, Result};
use crate::ondisk::{DirentRef, HashVersion, rec_len_needed};

/// Steps that one insertion can need at most: a new level, a split in each of two levels of nodes,
/// a leaf split, the insertion; with one to spare.
const STEPS_MAX: u32 = 6;

impl<D: DirBlocksMut> Directory<D> {
    pub(super) fn insert_linear(&mut self, new: &NewEntry<'_>) -> Result<()> {
        let count = self.blocks.block_count();
        for number in 0..count {
            let mut contents = self.read_leaf(number)?.to_vec();
            if block::insert(&self.context, number, &mut contents, new)? {
                return self.write_leaf(number, contents);
            }
        }
        if count == 1 && self.context.format.dir_index {
            self.make_index()?;
            return self.insert_indexed(new);
        }
        let number = self.append()?;
        let mut contents = block::empty_block(&self.context, self.blocks.block_size());
        let fits = block::insert(&self.context, number, &mut contents, new)?;
        debug_assert!(fits, "an empty block takes any name");
        self.write_leaf(number, contents)
    }

    /// Turns the one block of a linear directory into an index with one leaf.
    fn make_index(&mut self) -> Result<()> {
        let parent = self.find_dot(b"..")?.ino;
        let contents = self.read_leaf(0)?;
        let mut names = self.used_entries(0, &contents)?;
        names.retain(|e| e.at > DOT_DOT);
        let leaf = block::pack(&self.context, self.blocks.block_size(), names.iter());
        let number = self.append()?;
        self.write_leaf(number, leaf)?;
        let mut root = self.new_root(parent, number);
        self.write_node(&mut root)?;
        self.blocks.set_indexed()
    }

    pub(super) fn insert_indexed(&mut self, new: &NewEntry<'_>) -> Result<()> {
        for _ in 0..STEPS_MAX {
            let root = self.read_root()?;
            let function = root.function();
            let path = self.path_to(root, self.hash(function, new.name).major)?;
            if self.insert_into_leaf(path.leaf(), new)? {
                return Ok(());
            }
            if path.last().0.is_full() {
                self.grow_index(path)?;
            } else {
                self.split_leaf(path, function)?;
            }
        }
        Err(self.context.corrupt(0, "no room for a name after splitting its leaf"))
    }

    /// Adds to a leaf, after moving its entries together if that makes the room.
    fn insert_into_leaf(&mut self, number: u32, new: &NewEntry<'_>) -> Result<bool> {
        let old = self.read_leaf(number)?;
        let mut contents = old.to_vec();
        let mut fits = block::insert(&self.context, number, &mut contents, new)?;
        if !fits {
            // Only in leaves: positions in a linear directory are byte offsets.
            let names = self.used_entries(number, &old)?;
            contents = block::pack(&self.context, old.len(), names.iter());
            fits = block::insert(&self.context, number, &mut contents, new)?;
            if fits {
                self.blocks.own_way();
            }
        }
        if fits {
            self.write_leaf(number, contents)?;
        }
        Ok(fits)
    }

    /// Moves the upper half (by bytes) of a leaf's hashes to a new leaf behind it.
    fn split_leaf(&mut self, mut path: Path, function: HashVersion) -> Result<()> {
        let number = path.leaf();
        let contents = self.read_leaf(number)?;
        let next = self.next_leaf(&mut path.clone())?;
        let range = path.lowest()..=next.map_or(u32::MAX, |next| next - 1);
        let mut names: Vec<_> = self
            .used_entries(number, &contents)?
            .into_iter()
            .map(|e| (self.hash_in_leaf(&range, function, e.name).major, e))
            .collect();
        names.sort_by_key(|(hash, _)| *hash);
        let at = split_point(&names, contents.len());
        let Some(before) = at.checked_sub(1).map(|i| names[i].0) else {
            return Err(self.context.corrupt(number, "a full leaf with fewer than two names"));
        };
        // A hash on both sides is marked, so that a search goes on into the new leaf.
        let lowest = if names[at].0 == before { before | 1 } else { names[at].0 };
        let size = contents.len();
        let lower = block::pack(&self.context, size, names[..at].iter().map(|(_, e)| e));
        let upper = block::pack(&self.context, size, names[at..].iter().map(|(_, e)| e));
        let added = self.append()?;
        self.write_leaf(number, lower)?;
        self.write_leaf(added, upper)?;
        // OK to unwrap: a path has the root.
        let (node, place) = path.steps.last_mut().unwrap();
        node.insert_after(*place, lowest, added);
        self.write_node(node)
    }

    /// Makes room above a full leaf: splits the highest full node below one with room, or puts a
    /// level under the root if all are full.
    fn grow_index(&mut self, mut path: Path) -> Result<()> {
        let roomy = path.steps.iter().rposition(|(node, _)| !node.is_full());
        let levels = path.steps[0].0.levels();
        if roomy.is_none() && levels >= self.context.format.index_levels_max {
            let what = "directory index (large_dir would be needed)";
            return Err(Ext4Error::Fs(FsError::NoSpace { what }));
        }
        let number = self.append()?;
        let mut added = self.new_node(number);
        if let Some(above) = roomy {
            let (upper, lower) = path.steps.split_at_mut(above + 1);
            // OK to unwrap: the caller found the last node full, so `above` is not the last.
            let ((parent, place), (node, _)) = (upper.last_mut().unwrap(), &mut lower[0]);
            let half = node.count() / 2;
            let lowest = node.hash(half);
            node.split_off(half, &mut added);
            parent.insert_after(*place, lowest, number);
            self.write_node(node)?;
            self.write_node(&mut added)?;
            return self.write_node(parent);
        }
        let root = &mut path.steps[0].0;
        root.split_off(0, &mut added);
        root.restart(number);
        root.set_levels(levels + 1);
        self.write_node(&mut added)?;
        self.write_node(root)
    }

    /// Adds a block, up to what the features allow a directory.
    fn append(&mut self) -> Result<u32> {
        if self.blocks.block_count() >= self.context.format.blocks_max {
            let what = "directory blocks (large_dir would be needed)";
            return Err(Ext4Error::Fs(FsError::NoSpace { what }));
        }
        self.blocks.append()
    }
}

/// The first name of the upper half: from the end backwards, until half a block is full.
fn split_point(names: &[(u32, DirentRef<'_>)], block_size: usize) -> usize {
    let mut size = 0;
    for (i, (_, entry)) in names.iter().enumerate().rev() {
        let length = rec_len_needed(entry.name.len());
        if size + length / 2 > block_size / 2 {
            return i + 1;
        }
        size += length;
    }
    names.len() / 2
}
