//! The on-disk format of ext2, ext3 and ext4, and what follows from it alone.
//!
//! Nothing here knows a mounted file system, a transaction or a cache. Trees and directories work
//! over traits ([`extents::NodeStore`], [`indirect::PointerStore`], [`dir::DirBlocks`]), so that a
//! transaction, a device before it is mounted, and plain memory can be below them. From the bottom
//! up:
//!
//! * [`ondisk`]: structures, one a file; checksums; the layout that follows from a superblock;
//! * [`superblock`] and [`groups`]: read from a device, and written so that no power cut tears
//!   them;
//! * [`extents`] and [`indirect`]: which file block lies where; [`dir`]: names; [`bitmap`]: what
//!   is free;
//! * [`inline`] and [`xattr`]: contents and attributes in an inode; attributes in a block;
//! * [`quota`], [`mmp`] and [`journal`]: which quota files there are, who has the file system in
//!   use, where the journal is.
//!
//! ```
//! use steadfast_block::BlockDevice;
//! use steadfast_devices::source::Ram;
//! use steadfast_ext4_format::{Ext4Error, superblock};
//!
//! let disk = Ram::new("disk", 16 << 20);
//! // Nothing was made on it yet.
//! assert!(matches!(superblock::find(&disk), Err(Ext4Error::NoFileSystem { .. })));
//! ```

pub mod bitmap;
pub mod dir;
mod error;
pub mod extents;
pub mod groups;
pub mod indirect;
pub mod inline;
pub mod journal;
pub mod mmp;
pub mod ondisk;
pub mod quota;
mod ranges;
pub mod superblock;
pub mod xattr;

pub use error::{Ext4Error, Result, refused, unsupported};
pub use ranges::RangeSet;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
