//! Block maps: how ext2 and ext3 say which file block lies where. The inode holds twelve pointers
//! to blocks and one each to a tree of pointer blocks of one, two and three levels. A pointer of
//! zero is a hole; there are no unwritten blocks, and pointer blocks have no checksum.
//!
//! [`BlockMap`] works over a [`PointerStore`], the blocks that hold the pointers, so that it knows
//! nothing of transactions and is tested over plain memory. It gives and takes runs of blocks as
//! [`Extent`]s, as the extent trees do. Kernel: fs/ext4/indirect.c.
//!
//! # Invariants
//!
//! * No pointer block is left that holds no pointer.
//! * A walk reads a bounded number of pointer blocks, however they point to each other.

mod change;
mod limit;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::ops::Range;

use bytes::Bytes;
use rustc_hash::FxHashSet;

use crate::error::{Ext4Error, Result};
use crate::extents::{FILE_END, Lookup, NodeRead};
use crate::ondisk::{Extent, InodeFlags, RawInode};

pub use limit::blocks_max;

/// Whether the inode has an extent tree; else a block map.
#[inline]
pub fn has_extents(raw: &RawInode) -> bool {
    raw.flags().contains(InodeFlags::EXTENTS)
}

/// Pointers in the inode.
pub const ROOT_POINTERS: usize = 15;
/// Those of them that point to the file's own blocks.
const DIRECT: u64 = 12;
/// Every operation on a sound map reads each pointer block a few times at most.
const READS_PER_BLOCK: u64 = 8;

/// The blocks that hold a map's pointers, to be changed.
pub trait PointerStore: NodeRead {
    /// A new pointer block of zeros for this file, near `goal`.
    fn create(&mut self, goal: u64) -> Result<u32>;
    /// Replaces pointers from `index` on.
    fn set(&mut self, block: u64, index: usize, pointers: &[u32]) -> Result<()>;
    /// A pointer block is no longer needed.
    fn free(&mut self, block: u64) -> Result<()>;
}

/// The map of a file.
pub struct BlockMap<S> {
    root: [u32; ROOT_POINTERS],
    /// Pointers in a block.
    per_block: u64,
    /// Pointer blocks that may still be read.
    reads_left: Cell<u64>,
    store: S,
}

/// One of the inode's pointers and what lies below it.
#[derive(Debug, Clone, Copy)]
struct Branch {
    slot: usize,
    /// Levels of pointer blocks: 0 to 3.
    levels: u32,
    /// The first file block.
    first: u64,
    /// How many file blocks.
    covers: u64,
}

/// The pointers to the file's own blocks that stand together with that of one block.
struct Leaf {
    /// The file block of the first.
    first: u64,
    pointers: Bytes,
    /// Where they stand; `None` is the inode.
    block: Option<u64>,
}

impl Leaf {
    fn len(&self) -> usize {
        self.pointers.len() / 4
    }

    fn get(&self, index: usize) -> u32 {
        pointer(&self.pointers, index)
    }

    /// How many blocks from `index` on lie one behind the other; 0 in a hole.
    fn run(&self, index: usize) -> u32 {
        let start = u64::from(self.get(index));
        if start == 0 {
            return 0;
        }
        let next = |i: &usize| u64::from(self.get(*i)) == start + (i - index) as u64;
        // OK to cast: a block of pointers has at most 16384.
        (index..self.len()).take_while(next).count() as u32
    }
}

/// What a pointer leads to: so many levels of pointer blocks, for file blocks from `first` on.
struct PointerSubtree {
    pointer: u32,
    levels: u32,
    first: u64,
}

impl PointerSubtree {
    /// What the pointer at an index leads to, which stands for so many file blocks.
    fn child(&self, pointers: &[u8], index: u64, covers: u64) -> PointerSubtree {
        PointerSubtree {
            pointer: pointer(pointers, index as usize),
            levels: self.levels - 1,
            first: self.first + index * covers,
        }
    }
}

/// Pointer blocks, by their place and level, below which one search has found nothing. A damaged
/// map may name one again and again; a sound one has none.
#[derive(Default)]
struct ChildlessBlocks(FxHashSet<(u32, u32)>);

impl ChildlessBlocks {
    /// Most that are remembered.
    const MOST: usize = 1 << 16;

    fn holds(&self, b: &PointerSubtree) -> bool {
        self.0.contains(&(b.pointer, b.levels))
    }

    fn add(&mut self, b: &PointerSubtree) {
        if self.0.len() < ChildlessBlocks::MOST {
            self.0.insert((b.pointer, b.levels));
        }
    }
}

/// The pointer at an index of a block of them.
fn pointer(block: &[u8], index: usize) -> u32 {
    let at = index * 4;
    // OK to unwrap: four bytes.
    u32::from_le_bytes(block[at..at + 4].try_into().unwrap())
}

impl<S: NodeRead> BlockMap<S> {
    /// The map whose pointers are the 60 bytes of `root`, of an inode that says it uses
    /// `storage_blocks`.
    pub fn open(root: &[u8; 60], block_size: u32, storage_blocks: u64, store: S) -> Self {
        let mut pointers = [0; ROOT_POINTERS];
        for (i, p) in pointers.iter_mut().enumerate() {
            *p = pointer(root, i);
        }
        let reads = (storage_blocks + 4).saturating_mul(READS_PER_BLOCK);
        BlockMap {
            root: pointers,
            per_block: u64::from(block_size / 4),
            reads_left: Cell::new(reads),
            store,
        }
    }

    /// The blocks that it works over.
    pub fn into_store(self) -> S {
        self.store
    }

    /// The pointers for the inode.
    pub fn root(&self) -> [u8; 60] {
        let mut bytes = [0; 60];
        for (place, pointer) in bytes.chunks_exact_mut(4).zip(self.root) {
            place.copy_from_slice(&pointer.to_le_bytes());
        }
        bytes
    }

    /// The inode's pointers and the file blocks below each.
    fn branches(&self) -> impl DoubleEndedIterator<Item = Branch> + use<S> {
        let per = self.per_block;
        let firsts = [DIRECT, DIRECT + per, DIRECT + per + per * per];
        (0..ROOT_POINTERS).map(move |slot| match slot.checked_sub(DIRECT as usize) {
            None => Branch { slot, levels: 0, first: slot as u64, covers: 1 },
            Some(i) => {
                let levels = i as u32 + 1;
                Branch { slot, levels, first: firsts[i], covers: per.pow(levels) }
            }
        })
    }

    /// The branch that holds a file block; `None` beyond what can be mapped.
    fn branch(&self, at: u64) -> Option<Branch> {
        if at >= FILE_END {
            return None;
        }
        self.branches().find(|b| at < b.first + b.covers)
    }

    /// Reads a pointer block.
    fn pointers(&self, block: u32) -> Result<Bytes> {
        let block = u64::from(block);
        if !self.store.valid(block, 1) {
            let what = format!("a pointer block at block {block}, where no file can have one");
            return Err(Ext4Error::corrupt(what, self.store.place()));
        }
        let left = self.reads_left.get().checked_sub(1).ok_or_else(|| {
            Ext4Error::corrupt("more pointer blocks than it has storage", self.store.place())
        })?;
        self.reads_left.set(left);
        self.store.read(block)
    }

    /// The pointers that the one of `at` stands among; `None` if there is no block for them.
    fn leaf(&self, at: u64) -> Result<Option<Leaf>> {
        let Some(branch) = self.branch(at) else { return Ok(None) };
        if branch.levels == 0 {
            let pointers = Bytes::copy_from_slice(&self.root()[..4 * DIRECT as usize]);
            return Ok(Some(Leaf { first: 0, pointers, block: None }));
        }
        let (mut block, mut first, mut covers) =
            (self.root[branch.slot], branch.first, branch.covers);
        loop {
            if block == 0 {
                return Ok(None);
            }
            let pointers = self.pointers(block)?;
            covers /= self.per_block;
            if covers == 1 {
                return Ok(Some(Leaf { first, pointers, block: Some(block.into()) }));
            }
            let i = (at - first) / covers;
            block = pointer(&pointers, i as usize);
            first += i * covers;
        }
    }

    fn run_at(&self, at: u64) -> Result<Option<Extent>> {
        let Some(leaf) = self.leaf(at)? else { return Ok(None) };
        self.run_of(&leaf, at)
    }

    fn run_of(&self, leaf: &Leaf, at: u64) -> Result<Option<Extent>> {
        let i = (at - leaf.first) as usize;
        let (len, start) = (leaf.run(i), u64::from(leaf.get(i)));
        if len == 0 {
            return Ok(None);
        }
        if !self.store.valid(start, len.into()) {
            let what = format!("file block {at} at block {start}, where no file can have it");
            return Err(Ext4Error::corrupt(what, self.store.place()));
        }
        // OK to cast: file blocks end below 2^32.
        Ok(Some(Extent { logical: at as u32, len, start, unwritten: false }))
    }

    /// What is at file block `logical`. A run begins there, even if it goes on before it.
    pub fn lookup(&self, logical: u32) -> Result<Lookup> {
        if let Some(run) = self.run_at(logical.into())? {
            return Ok(Lookup::Mapped(run));
        }
        let until = self.next_mapped(logical.into())?.unwrap_or(FILE_END);
        Ok(Lookup::Hole { until })
    }

    /// The run that holds `from`, or else the next one.
    pub fn next_extent(&self, from: u64) -> Result<Option<Extent>> {
        match self.next_mapped(from)? {
            Some(at) => self.run_at(at),
            None => Ok(None),
        }
    }

    /// The first file block from `from` on that has a place.
    fn next_mapped(&self, from: u64) -> Result<Option<u64>> {
        let branches = self.branches().filter(|b| b.first + b.covers > from);
        let found = self.first_found(branches, from..u64::MAX, false)?;
        Ok(found.filter(|at| *at < FILE_END))
    }

    /// What is found below the first of these branches below which anything is.
    fn first_found(
        &self,
        branches: impl Iterator<Item = Branch>,
        within: Range<u64>,
        backwards: bool,
    ) -> Result<Option<u64>> {
        let mut childless = ChildlessBlocks::default();
        for b in branches {
            let below =
                PointerSubtree { pointer: self.root[b.slot], levels: b.levels, first: b.first };
            let found = self.mapped_below(&below, &within, backwards, &mut childless)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The first file block below `b` that has a place, or the last; only blocks that cover
    /// something within the range are looked at.
    fn mapped_below(
        &self,
        b: &PointerSubtree,
        within: &Range<u64>,
        backwards: bool,
        childless: &mut ChildlessBlocks,
    ) -> Result<Option<u64>> {
        if b.pointer == 0 || b.levels == 0 {
            return Ok((b.pointer != 0).then_some(b.first));
        }
        if childless.holds(b) {
            return Ok(None);
        }
        let pointers = self.pointers(b.pointer)?;
        let covers = self.per_block.pow(b.levels - 1);
        let first = within.start.saturating_sub(b.first) / covers;
        let end = (within.end - b.first).div_ceil(covers).min(self.per_block);
        for n in first..end {
            let i = if backwards { first + end - 1 - n } else { n };
            let found =
                self.mapped_below(&b.child(&pointers, i, covers), within, backwards, childless)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        if within.start <= b.first && b.first + self.per_block * covers <= within.end {
            childless.add(b);
        }
        Ok(None)
    }

    /// First file block of the last runs, at most `count`, that stand together; `None` if nothing
    /// is mapped.
    pub fn last_extents(&self, count: usize) -> Result<Option<u32>> {
        let Some(last) = self.last_mapped()? else { return Ok(None) };
        let Some(leaf) = self.leaf(last)? else { return Ok(None) };
        let mut at = (last - leaf.first) as usize;
        let mut runs = 1;
        while at > 0 && leaf.get(at - 1) != 0 {
            let continued = leaf.get(at - 1).checked_add(1) == Some(leaf.get(at));
            runs += usize::from(!continued);
            if runs > count {
                break;
            }
            at -= 1;
        }
        // OK to cast: not beyond `last`, which is below 2^32.
        Ok(Some((leaf.first + at as u64) as u32))
    }

    fn last_mapped(&self) -> Result<Option<u64>> {
        self.first_found(self.branches().rev(), 0..FILE_END, true)
    }

    /// Whether there are pointer blocks.
    pub fn has_pointer_blocks(&self) -> bool {
        self.root[DIRECT as usize..].iter().any(|p| *p != 0)
    }

    /// Where file block `logical` should go: behind the one before it, or else near what its
    /// pointer stands among.
    pub fn goal(&self, logical: u32) -> Result<Option<u64>> {
        let at = u64::from(logical);
        if let Some(before) = at.checked_sub(1)
            && let Some(run) = self.run_at(before)?
        {
            return Ok(Some(run.start + 1));
        }
        let Some(leaf) = self.leaf(at)? else { return Ok(None) };
        let i = (at - leaf.first) as usize;
        let before = (0..i).rev().find(|j| leaf.get(*j) != 0);
        Ok(match before {
            Some(j) => Some(u64::from(leaf.get(j)) + (i - j) as u64),
            None => leaf.block.map(|block| block + 1),
        })
    }
}
