//! Free space: how much there is, and what the allocator keeps of it beside the bitmaps.

use steadfast_ext4_format::RangeSet;

use super::windows::Windows;

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
