//! Free space: how much there is, and what the allocator keeps of it beside the bitmaps.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_ext4_format::RangeSet;

use super::Fresh;
use super::windows::Windows;

/// The space of a volume: what is free, and what no file may have.
pub(crate) struct FreeSpace {
    /// Never locked across a wait.
    pub counts: Mutex<Space>,
    /// Blocks freed by transactions that have committed since the allocator last looked.
    pub freed_committed: Arc<Mutex<Vec<(u64, u64)>>>,
    /// With data=transact: the blocks that may be overwritten.
    pub fresh: Option<Fresh>,
    /// Blocks of superblocks, descriptors, bitmaps and inode tables.
    pub group_metadata: RangeSet,
    /// Those and the journal's: no file may own them.
    pub system_blocks: RangeSet,
}

impl FreeSpace {
    /// How much is free.
    pub fn counts(&self) -> MutexGuard<'_, Space> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a run of blocks is none that only the file system itself may have.
    pub fn is_for_files(&self, start: u64, len: u64) -> bool {
        self.system_blocks.within(start, start + len).next().is_none()
    }
}

/// Counts of free space, as of the finished transactions. Never locked across a wait.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Space {
    /// Free in the bitmaps, with those that rest until a commit.
    pub free_blocks: u64,
    /// Freed, but not to be used before the freeing transaction has committed.
    pub resting_blocks: u64,
    /// Promised to data in the page cache that has no place yet.
    pub delayed_blocks: u64,
    /// Of those: have a place by now, so that they count as taken. Their reservations are about
    /// to end.
    pub settled_blocks: u64,
    /// Withheld from ordinary use: the super-user's share.
    pub reserved_blocks: u64,
    /// Withheld from data: extent-tree blocks of delayed data come from here.
    pub cushion_blocks: u64,
    pub free_inodes: u64,
}

impl Space {
    /// Blocks that data may take now.
    pub fn available(&self) -> u64 {
        self.free_blocks.saturating_sub(
            self.resting_blocks + self.promised() + self.reserved_blocks + self.cushion_blocks,
        )
    }

    /// Blocks of delayed data that have not been taken yet.
    pub fn promised(&self) -> u64 {
        self.delayed_blocks.saturating_sub(self.settled_blocks)
    }
}

/// What the allocator keeps in memory besides the bitmaps.
#[derive(Default)]
pub(crate) struct AllocState {
    pub windows: Windows,
    pub resting: RangeSet,
}

impl AllocState {
    /// Blocks that must not be used yet.
    pub fn rest(&mut self, start: u64, end: u64) {
        self.resting.insert(start, end);
    }
}
