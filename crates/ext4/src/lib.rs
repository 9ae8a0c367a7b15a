//! The running ext4 file system: mounts ext2, ext3 and ext4, reads and writes.
//!
//! [`Ext4::mount`] gives a [`FileSystem`](steadfast_vfs::FileSystem). What is on the disk is
//! [`steadfast_ext4_format`]; it is made and checked by crates that do not know this one. From the
//! bottom up:
//!
//! * [`options`]: how to mount; `state`: what is in memory of each part, with its lock;
//! * [`meta`]: reading metadata, and transactions that change it; `alloc`, `extents`, `indirect`,
//!   `inode`, `dir`, `xattr`, [`quota`] each change their part within a transaction;
//! * `namespace`: names; `stage`: a volume from what is on a device;
//! * `mounted`: [`Ext4`] itself; `file`: the data of files, through the page cache and past it;
//! * `fastcommit`: what the journal holds in words of the file system's own; `transact`:
//!   transaction points; `fs`: the operations; [`mount`]: how it comes and goes;
//! * [`journal_plan`]: what a journal's blocks change when it is made or given up.
//!
//! ```
//! use std::sync::Arc;
//! use steadfast_block::BlockDevice;
//! use steadfast_devices::source::Ram;
//! use steadfast_ext4::{Ext4, MountOptions};
//! use steadfast_ext4_mkfs::Options;
//! use steadfast_vfs::{FileSystem, NewNode};
//!
//! let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
//! steadfast_ext4_mkfs::make(&disk, &Options::random(1_700_000_000))?;
//! let fs = Ext4::mount(Arc::clone(&disk), MountOptions::default())?;
//! fs.mkdir(fs.root(), b"folder", NewNode { mode: 0o755, ..NewNode::default() })?;
//! fs.unmount()?;
//! assert!(steadfast_ext4_check::check(&disk, None)?.findings.is_empty());
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

pub use extents::next_extent;
pub use file::FileMapping;
pub use mounted::Ext4;
pub use options::{AccessTimes, DataMode, Dax, MountOptions};
pub use planted::Bug;
pub use state::{Clock, LastPoint, MountRecovery, RolledBack, SincePoint};
pub use steadfast_ext4_format::{Ext4Error, Result};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
