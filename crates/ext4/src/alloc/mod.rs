//! Which blocks and inodes are free, and who gets them.
//!
//! The truth is in the bitmaps, which are metadata blocks like others. Beside them there is in
//! memory, and lost at a crash without harm:
//!
//! * *resting* blocks: freed by a transaction that has not committed yet. Using them earlier
//!   could overwrite what the file system still needs if that transaction never commits.
//! * *windows*: runs that follow what a growing file got last. Others avoid them, so that files
//!   that grow side by side stay in long runs each (the kernel's preallocation).

use steadfast_ext4_format::RangeSet;

pub(crate) mod bitmap;
mod blocks;
mod groups;
mod inodes;
mod windows;

pub(crate) use blocks::{BlockRequest, Purpose};
use windows::Windows;

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
