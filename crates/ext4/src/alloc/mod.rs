//! Which blocks and inodes are free, and who gets them.
//!
//! The truth is in the bitmaps, which are metadata blocks like others. Beside them there is in
//! memory, and lost at a crash without harm:
//!
//! * *busy* blocks (XFS: busy extents): freed by a transaction that has not committed yet. Using
//!   them earlier could overwrite what the file system still needs if that transaction never
//!   commits.
//! * *windows*: runs that follow what a growing file got last. Others avoid them, so that files
//!   that grow side by side stay in long runs each (the kernel's preallocation).

mod blocks;
mod groups;
mod inodes;
mod search;

pub(crate) use blocks::{BlockRequest, Purpose, free_blocks};
pub(crate) use groups::{inode_bitmap, modify_block_bitmap};
pub(crate) use inodes::{free_inode_number, take_inode};
