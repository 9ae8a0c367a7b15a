//! ext4 in user space, for programs: file systems in image files, on devices, in memory and on
//! models of hardware, with their journals on faster memory, and power cuts to test against.
//!
//! ```
//! use std::io::{Result, Write};
//!
//! use steadfast::{Image, Journal};
//!
//! fn main() -> Result<()> {
//!     let folder = std::env::temp_dir().join(format!("steadfast-{}", std::process::id()));
//!     std::fs::create_dir_all(&folder)?;
//!     let (disk, card) = (folder.join("disk.img"), folder.join("card.img"));
//!
//!     let image = Image::create(&disk).size(64 << 20).journal(Journal::external(&card));
//!     let fs = image.mount()?;
//!     let mut file = fs.create("/letter")?;
//!     file.write_all(b"This survives a power cut.\n")?;
//!     file.sync_all()?;
//!     drop(file);
//!     fs.unmount()?;
//!
//!     let fs = Image::open(&disk).journal(Journal::external(&card)).mount()?;
//!     assert_eq!(fs.read_to_string("/letter")?, "This survives a power cut.\n");
//!     fs.unmount()?;
//!     std::fs::remove_dir_all(&folder)
//! }
//! ```
//!
//! What is on the disk is plain ext4: the kernel and e2fsprogs take over at any time.
//!
//! * [`Image`] says what is mounted and how; [`FileSystem`] is what comes of it, with the calls of
//!   [`std::fs`]; [`File`] reads and writes.
//! * [`FileSystem::transaction_point`] and [`FileSystem::transaction`]: what a power cut leaves is
//!   what one of them left, names and contents, nothing in between ([`DataMode::Transact`]).
//! * [`tree`]: trees of files, walked through, copied in and out with all that belongs to them.
//! * [`crash`]: a program of yours under power cuts, inside `cargo test`.
//! * The layers below are there under their own names: [`devices`] with models of disks, cards and
//!   chips, [`volume`] with mirrors, [`runtime`] with a simulation in virtual time, [`vfs`] and
//!   [`ext4`] with all their operations, [`block`] with the interface of a device.
//!
//! # Features
//!
//! * `cli` (default): what the program `steadfast` needs. A library does without:
//!   `default-features = false`.
#![cfg_attr(feature = "fuse", doc = "* `fuse`: [`FileSystem::mount_at`].")]
#![cfg_attr(not(feature = "fuse"), doc = "* `fuse`: `FileSystem::mount_at`.")]

mod attributes;
pub mod crash;
mod dir;
mod error;
mod file;
mod fs;
mod image;
mod journal;
mod metadata;
mod methods;
#[cfg(feature = "fuse")]
mod mount_point;
mod open_options;
mod times;
pub mod tree;

pub use dir::{DirEntry, ReadDir};
pub use error::{Error, Result};
pub use file::File;
pub use fs::FileSystem;
pub use image::{ExtVersion, Image, Journal, Source, occupant};
pub use journal::{device_number, find_journal};
pub use metadata::Metadata;
#[cfg(feature = "fuse")]
pub use mount_point::MountPoint;
pub use open_options::OpenOptions;
pub use times::FileTimes;

pub use steadfast_block as block;
pub use steadfast_devices as devices;
pub use steadfast_ext4 as ext4;
#[doc(inline)]
pub use steadfast_ext4::{AccessTimes, DataMode, MountOptions};
#[cfg(feature = "fuse")]
pub use steadfast_fuse as fuse;
pub use steadfast_runtime as runtime;
pub use steadfast_vfs as vfs;
#[doc(inline)]
pub use steadfast_vfs::{FileType, StatFs, TransactMask, TransactPolicy};
pub use steadfast_volume as volume;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
