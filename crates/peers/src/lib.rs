//! The host kernel's own file systems as peers of ours: on our devices, recorded, cut, recovered.
//!
//! [`LoopExport`] gives a [`BlockDevice`](steadfast_block::BlockDevice) to the kernel: it is a file
//! of a FUSE mount, and a loop device past the page cache is over that file. So every write, flush
//! and FUA of the kernel's file system passes through our record filter and a modelled device, and
//! a power cut of it is what a power cut of ours is. [`Peer`] makes and mounts the file system,
//! records it, and recovers it from the state that a cut has left, by the kernel's own mount and
//! the file system's own check.
//!
//! Needs root, FUSE and loop devices; [`KernelFs::available`] says what is missing.
//!
//! # Invariants
//!
//! 1. What is mounted and attached is released when its value is dropped, also after a failure.
//! 2. A file system is mounted once at a time: the recording has ended before a state of it is
//!    recovered (XFS and btrfs refuse a second mount of one identity).
//! 3. Only states that a power cut can leave are mounted.

mod device_file;
mod error;
mod exported;
mod kind;
mod on_path;
mod peer;
mod served;
mod system;
mod tool;

pub use error::PeerError;
pub(crate) use error::Result;
pub use exported::LoopExport;
pub use kind::KernelFs;
pub use on_path::PathMount;
pub use peer::{Begin, Build, Peer, PeerMount, PeerRecording};
pub use served::{FolderMount, fuse_options};
pub use steadfast_host::clear_leftovers;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
