//! ext4 on disk: read, write, make and check.
//!
//! [`Ext4::mount`] gives a [`FileSystem`](steadfast_vfs::FileSystem). From the bottom up:
//!
//! * [`ondisk`]: structures, checksums, layout; [`mkfs`] makes and [`check`] judges what they form;
//! * [`meta`]: reading metadata, and transactions that change it; [`alloc`], [`extents`],
//!   [`inode`] work inside a transaction;
//! * [`dir`] and [`namespace`]: names; [`xattr`]: extended attributes and ACLs;
//! * [`mod@file`]: the data of files, through the page cache and past it;
//! * `fastcommit`: what the journal holds in words of the file system's own;
//! * [`fs`]: the mounted whole; [`mount`]: how it comes and goes; [`tune`]: another journal.

pub mod alloc;
pub mod check;
pub mod dir;
pub mod error;
pub mod extents;
mod fastcommit;
pub mod file;
pub mod fs;
mod indirect;
pub mod inode;
pub mod meta;
pub mod mkfs;
pub mod mount;
pub mod namespace;
pub mod ondisk;
mod planted;
pub mod quota;
mod transact;
pub mod tune;
pub mod xattr;

pub use error::{Ext4Error, Result};
pub use fs::Ext4;
pub use mount::{AccessTimes, DataMode, Dax, MountOptions};
#[cfg(feature = "planted-bugs")]
pub use planted::Bug;
pub use transact::SincePoint;
