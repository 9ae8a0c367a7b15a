//! Mounts a [`FileSystem`](steadfast_vfs::FileSystem) by FUSE.
//!
//! [`FuseMount::new`] puts a file system at a mount point, [`FuseMount::serve`] answers the kernel
//! until it is unmounted. The file system runs in the runtime's real world: each request is one
//! call on one of [`Options::threads`] threads.
//!
//! # Invariants
//!
//! 1. The kernel is the only one who changes the file system while it is mounted, so names and
//!    attributes are cached there for ever. Any other change must be notified to the kernel
//!    ([`Invalidator`]).
//! 2. Permissions are checked by the kernel (`default_permissions`), POSIX ACLs too; the umask is
//!    not applied there but passed on ([`NewNode::umask`](steadfast_vfs::NewNode)), because a
//!    default ACL takes its place. Locks stay in the kernel.
//! 3. A panic below becomes EIO for its caller; the file system goes down with it
//!    ([`Shutdown::Now`](steadfast_vfs::Shutdown)) and answers EIO from then on.
//! 4. What the protocol looks like, and what carries it, is the affair of
//!    `steadfast-fuse-lowlevel`.
//!
//! # What FUSE does not carry
//!
//! * sync(2) and syncfs(2) never reach us: the kernel sends them to mounts of block devices only
//!   (`fuseblk`). What they would write is written by the commit timer.
//! * FIEMAP, FALLOC_FL_COLLAPSE_RANGE and INSERT_RANGE are refused by the kernel: EOPNOTSUPP.
//! * A signal does not interrupt an operation: the kernel waits for it, as it does for a disk's.
//! * umount(8) returns before we have finished: wait for [`FuseMount::serve`]. That waits for
//!   copies of the mount in other mount namespaces too: [`Serving`] cuts them off, as
//!   [`Unmounter::cut_off`] does.

mod bridge;
mod connection;
mod error;
mod error_log;
mod fusermount;
mod invalidator;
mod mounted;
mod option_table;
mod options;
mod read_ahead;
mod serving;
#[cfg(test)]
mod tests;

pub use error::{MountError, Result};
pub use error_log::ErrorLog;
pub use invalidator::Invalidator;
pub use mounted::{FuseMount, Unmounter, is_dead, unmount, unmount_lazily};
pub use option_table::OPTIONS;
pub use options::{KernelTimes, Options};
pub use serving::{Serving, SessionEnd};
pub use steadfast_fuse_lowlevel::{Transport, TransportChoice};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
