//! Space for data that is written to the page cache and allocated later.

use steadfast_vfs::FsError;

use super::pieces::Place;
use crate::alloc::RangeSet;
use crate::error::{Ext4Error, Result};
use crate::fs::Ext4;
use crate::inode::Inode;
use crate::meta::Txn;

impl Ext4 {
    /// Reserves the blocks of `[from, to)` bytes that have neither a place nor a reservation.
    /// Returns where the range ends that can be written, and what was newly reserved.
    ///
    /// # Errors
    /// No space for even the first block.
    pub(super) fn reserve(&self, inode: &Inode, from: u64, to: u64) -> Result<(u64, RangeSet)> {
        if self.volume.transacts() {
            return self.reserve_elsewhere(inode, from, to);
        }
        let size = self.volume.block_size();
        let holes = self.holes(inode, from / size, to.div_ceil(size))?;
        let mut new = RangeSet::new();
        let mut allowed = self.quota_left(inode)?.map_or(u64::MAX, |bytes| bytes / size);
        let mut state = inode.state();
        let mut space = self.volume.space();
        for (start, end) in holes {
            let wanted: Vec<u64> = (start..end).filter(|b| !state.delayed.contains(*b)).collect();
            let most = usize::try_from(space.available().min(allowed)).unwrap_or(usize::MAX);
            let taken = wanted.len().min(most);
            for block in &wanted[..taken] {
                state.delayed.insert(*block, block + 1);
                new.insert(*block, block + 1);
            }
            space.delayed_blocks += taken as u64;
            allowed -= (taken as u64).min(allowed);
            self.volume.quotas.add_delayed(&state.raw, taken as u64 * size);
            if let Some(full) = wanted.get(taken) {
                let end = full * size;
                if end <= from && allowed == 0 && space.available() > 0 {
                    return Err(FsError::QuotaExceeded.into());
                }
                if end <= from {
                    return Err(Ext4Error::Fs(FsError::NoSpace { what: "blocks" }));
                }
                return Ok((end, new));
            }
        }
        Ok((to, new))
    }

    /// Ranges of file blocks within `[from, to)` that have no place.
    fn holes(&self, inode: &Inode, from: u64, to: u64) -> Result<Vec<(u64, u64)>> {
        let size = self.volume.block_size();
        let pieces = self.volume.pieces(inode, from * size, to * size, None)?;
        let holes = pieces.into_iter().filter(|p| p.place == Place::Hole);
        Ok(holes.map(|p| (p.offset / size, (p.offset + p.len) / size)).collect())
    }

    /// Gives reservations back.
    pub(super) fn unreserve(&self, inode: &Inode, from: u64, to: u64) {
        self.end_reservations(inode, from, to, 0);
    }

    /// Finishes a transaction that gave the reserved blocks among these ranges of file blocks
    /// their places, and ends the reservations. At no moment do they count twice, as reserved and
    /// as taken: somebody else would be told that there is no space.
    pub(super) fn finish_placed(
        &self,
        inode: &Inode,
        mut txn: Txn<'_>,
        placed: &[(u64, u64)],
    ) -> Result<()> {
        let counts: Vec<u64> = {
            let state = inode.state();
            let count = |set: &RangeSet, (from, to)| -> u64 {
                set.within(from, to).map(|(start, end)| end - start).sum()
            };
            placed.iter().map(|r| count(&state.delayed, *r) + count(&state.moving, *r)).collect()
        };
        txn.settles = counts.iter().sum();
        txn.finish()?;
        for ((from, to), settled) in placed.iter().zip(counts) {
            self.end_reservations(inode, *from, *to, settled);
        }
        Ok(())
    }

    /// `settled` blocks of the reservations are counted as taken already.
    fn end_reservations(&self, inode: &Inode, from: u64, to: u64, settled: u64) {
        let mut state = inode.state();
        let delayed = state.delayed.remove(from, to);
        self.volume.quotas.remove_delayed(&state.raw, delayed * self.volume.block_size());
        let count = delayed + state.moving.remove(from, to);
        let mut space = self.volume.space();
        space.delayed_blocks = space.delayed_blocks.saturating_sub(count);
        space.settled_blocks = space.settled_blocks.saturating_sub(settled);
    }
}
