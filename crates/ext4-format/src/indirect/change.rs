//! Mapping and unmapping.

use steadfast_vfs::FsError;

use super::{BlockMap, Branch, PointerStore, pointer};
use crate::error::{Ext4Error, Result};
use crate::ondisk::Extent;

/// What a removal found, in order, and how it leaves a pointer block.
#[derive(PartialEq, Eq)]
enum RemovalResult {
    Some,
    Nothing,
}

impl<S: PointerStore> BlockMap<S> {
    /// Makes the pointer blocks that are missing above file block `logical`, so that what is put
    /// there can follow them on the device. Returns how many blocks can be mapped from there on
    /// without another one.
    pub fn prepare(&mut self, logical: u32, goal: u64) -> Result<u64> {
        let branch = self.branch_for(logical.into())?;
        if branch.levels == 0 {
            return Ok(super::DIRECT - u64::from(logical));
        }
        let (_, first) = self.make_leaf(branch, logical.into(), goal)?;
        Ok(first + self.per_block - u64::from(logical))
    }

    fn branch_for(&self, at: u64) -> Result<Branch> {
        self.branch(at).ok_or(Ext4Error::Fs(FsError::FileTooLarge))
    }

    /// The pointer block for file block `at` and the file block of its first pointer.
    fn make_leaf(&mut self, branch: Branch, at: u64, goal: u64) -> Result<(u64, u64)> {
        let (mut first, mut covers) = (branch.first, branch.covers / self.per_block);
        if self.root[branch.slot] == 0 {
            self.root[branch.slot] = self.store.create(goal)?;
        }
        let mut block = self.root[branch.slot];
        while covers > 1 {
            let i = (at - first) / covers;
            let mut next = pointer(&self.pointers(block)?, i as usize);
            if next == 0 {
                next = self.store.create(goal)?;
                self.store.set(block.into(), i as usize, &[next])?;
            }
            first += i * covers;
            covers /= self.per_block;
            block = next;
        }
        Ok((block.into(), first))
    }

    /// Maps a range that is a hole.
    pub fn insert(&mut self, extent: Extent) -> Result<()> {
        let twice = |this: &Self, at: u64| {
            let what = format!("file block {at} has a place already");
            Err(Ext4Error::corrupt(what, this.store.place()))
        };
        let (mut at, end) = (u64::from(extent.logical), extent.end());
        while at < end {
            let start = extent.start + (at - u64::from(extent.logical));
            let to_pointer = |block: u64| {
                u32::try_from(block).map_err(|_| {
                    Ext4Error::corrupt("a block beyond 2^32 in a block map", self.store.place())
                })
            };
            let branch = self.branch_for(at)?;
            if branch.levels == 0 {
                let pointer = to_pointer(start)?;
                if self.root[branch.slot] != 0 {
                    return twice(self, at);
                }
                self.root[branch.slot] = pointer;
                at += 1;
                continue;
            }
            to_pointer(extent.start + u64::from(extent.len))?;
            let (block, first) = self.make_leaf(branch, at, start)?;
            let i = (at - first) as usize;
            let count = (end - at).min(self.per_block - i as u64) as usize;
            // OK to cast: a pointer block, and the range was checked above.
            let old = self.pointers(block as u32)?;
            if let Some(j) = (i..i + count).find(|j| pointer(&old, *j) != 0) {
                return twice(self, first + j as u64);
            }
            let new: Vec<u32> = (0..count as u32).map(|n| start as u32 + n).collect();
            self.store.set(block, i, &new)?;
            at += count as u64;
        }
        Ok(())
    }

    /// Unmaps `[from, to)` and returns what was mapped there. Pointer blocks that become empty are
    /// freed; the data blocks are the caller's.
    pub fn remove(&mut self, from: u64, to: u64) -> Result<Vec<Extent>> {
        let mut removed = Vec::new();
        for b in self.branches().filter(|b| b.first < to && b.first + b.covers > from) {
            let p = self.root[b.slot];
            if p == 0 {
                continue;
            }
            if b.levels == 0 {
                push(&mut removed, b.first, p);
                self.root[b.slot] = 0;
            } else if self.remove_below(p, b, from, to, &mut removed)? == RemovalResult::Nothing {
                self.store.free(p.into())?;
                self.root[b.slot] = 0;
            }
        }
        Ok(removed)
    }

    /// Removes from a pointer block, whose range is that of `branch`. One that is left empty is
    /// not written: the caller frees it.
    fn remove_below(
        &mut self,
        block: u32,
        branch: Branch,
        from: u64,
        to: u64,
        removed: &mut Vec<Extent>,
    ) -> Result<RemovalResult> {
        let old = self.pointers(block)?;
        let covers = branch.covers / self.per_block;
        let first_index = from.saturating_sub(branch.first) / covers;
        let end_index = (to - branch.first).div_ceil(covers).min(self.per_block);
        let mut new: Vec<u32> = Vec::with_capacity((end_index - first_index) as usize);
        let mut changed = false;
        for i in first_index..end_index {
            let p = pointer(&old, i as usize);
            let first = branch.first + i * covers;
            let below = Branch { levels: branch.levels - 1, first, covers, ..branch };
            let gone = match p {
                0 => false,
                _ if below.levels == 0 => {
                    push(removed, first, p);
                    true
                }
                _ if self.remove_below(p, below, from, to, removed)? == RemovalResult::Nothing => {
                    self.store.free(p.into())?;
                    true
                }
                _ => false,
            };
            changed |= gone;
            new.push(if gone { 0 } else { p });
        }
        let outside = (0..first_index).chain(end_index..self.per_block);
        let keeps = new.iter().any(|p| *p != 0)
            || outside.into_iter().any(|i| pointer(&old, i as usize) != 0);
        if !keeps {
            return Ok(RemovalResult::Nothing);
        }
        if changed {
            self.store.set(block.into(), first_index as usize, &new)?;
        }
        Ok(RemovalResult::Some)
    }
}

/// Adds a block to the runs, joined to the last if it follows it.
fn push(runs: &mut Vec<Extent>, at: u64, block: u32) {
    let start = u64::from(block);
    if let Some(last) = runs.last_mut()
        && last.end() == at
        && last.start + u64::from(last.len) == start
    {
        last.len += 1;
        return;
    }
    // OK to cast: file blocks end below 2^32.
    runs.push(Extent { logical: at as u32, len: 1, start, unwritten: false });
}
