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
//!
//! ```
//! use std::sync::Arc;
//! use steadfast_block::BlockDevice;
//! use steadfast_devices::source::Ram;
//! use steadfast_ext4::mkfs::{self, Options};
//! use steadfast_ext4::{Ext4, MountOptions, check};
//! use steadfast_vfs::{FileSystem, NewNode};
//!
//! let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
//! mkfs::make(&disk, &Options::random(1_700_000_000))?;
//! let fs = Ext4::mount(Arc::clone(&disk), MountOptions::default())?;
//! fs.mkdir(fs.root(), b"folder", NewNode { mode: 0o755, ..NewNode::default() })?;
//! fs.unmount()?;
//! assert!(check::check(&disk, None)?.findings.is_empty());
//! # Ok::<(), steadfast_ext4::Ext4Error>(())
//! ```

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
pub use transact::{LastPoint, RolledBack, SincePoint};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
