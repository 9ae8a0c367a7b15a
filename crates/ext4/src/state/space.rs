//! How much space is free, and what a transaction changes of that.

use steadfast_ext4_format::RangeSet;

use super::windows::Windows;

/// Counts of free space, as of the finished transactions. Never locked across a wait.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Space {
    /// Free in the bitmaps, with the busy ones.
    pub free_blocks: u64,
    /// Freed, but not to be used before the freeing transaction has committed.
    pub busy_blocks: u64,
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
            self.busy_blocks + self.promised() + self.reserved_blocks + self.cushion_blocks,
        )
    }

    /// Blocks of delayed data that have not been taken yet.
    pub fn promised(&self) -> u64 {
        self.delayed_blocks.saturating_sub(self.settled_blocks)
    }
}

/// What a transaction takes and gives back.
#[derive(Debug, Default)]
pub(crate) struct SpaceEdit {
    pub freed: RangeSet,
    pub taken: RangeSet,
    /// Reserved blocks whose reservations end once the transaction is finished.
    pub settles: u64,
    /// Change of the number of inodes that are free.
    pub inodes_delta: i64,
}

/// What the allocator keeps in memory beside the bitmaps. The metadata lock guards it.
#[derive(Default)]
pub(crate) struct AllocState {
    pub windows: Windows,
    /// Freed by a transaction that has not committed yet (XFS: busy extents).
    pub busy: RangeSet,
}
