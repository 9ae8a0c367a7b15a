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
//! use steadfast_ext4_mkfs::{Options, self as mkfs};
//! use steadfast_ext4_check as check;
//! use steadfast_ext4::{Ext4, MountOptions};
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

mod alloc;
mod dir;
mod extents;
mod fastcommit;
mod file;
mod fs;
mod indirect;
mod inode;
pub mod journal_plan;
pub mod meta;
pub mod mount;
mod mounted;
mod namespace;
pub mod options;
mod planted;
pub mod quota;
mod stage;
mod state;
mod transact;
mod xattr;

pub use file::Map;
pub use mounted::Ext4;
pub use options::{AccessTimes, DataMode, Dax, MountOptions};
#[cfg(feature = "planted-bugs")]
pub use planted::Bug;
pub use state::{Clock, LastPoint, MountRecovery, RolledBack, SincePoint};
pub use steadfast_ext4_format::{Ext4Error, Result};
