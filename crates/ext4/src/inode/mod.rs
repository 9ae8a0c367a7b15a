//! Inodes in memory: their fields, the map of their blocks, the list of orphans, the clock.
//!
//! An [`Inode`] exists once for each number in use; a cache keeps those that were used
//! lately. Its on-disk fields are those of the last finished transaction; an operation edits a
//! copy in its [`Txn`](crate::meta::Txn), which replaces them when it is finished.
//!
//! The size in memory (`i_size`) and the size on disk (`i_disksize`, the one in the raw inode)
//! differ while data is in the page cache that has no place on the device yet.

mod create;
mod edit;
mod orphans;
