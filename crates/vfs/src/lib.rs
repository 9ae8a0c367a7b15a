//! The file-system interface, and the host's own file systems behind it.
//!
//! [`FileSystem`] works on inode numbers and open-file handles and returns values. It is what the
//! benchmarks, the crash judge, the image commands and FUSE drive; ext4 implements it on
//! our devices and [`HostFs`] implements it over the running machine's file systems, so that one
//! benchmark measures both.
//!
//! ```
//! use steadfast_vfs::path::{place, resolve};
//! use steadfast_vfs::{FileSystem, HostFs, NewNode, OpenFlags};
//!
//! let folder = tempfile::tempdir().unwrap();
//! let fs = HostFs::open(folder.path())?;
//! let (file, fh) = fs.create(fs.root(), b"file", NewNode::default(), OpenFlags::WRITE)?;
//! fs.write(fh, 0, "text".into())?;
//! fs.release(fh)?;
//! assert_eq!(resolve(&fs, b"/../file", true)?.ino, file.ino);
//! assert_eq!(place(&fs, b"./new", true)?.path(), b"/new");
//! # Ok::<(), steadfast_vfs::FsError>(())
//! ```
//!
//! [`HostFs`] and what the flags of open(2) mean are Linux's alone; the rest is there on every
//! system, with Linux's error numbers.
//!
//! Names are bytes, as on disk; the interface checks nothing that the file system must check.

pub mod bounded;
mod error;
pub mod foreign;
mod fs;
mod hard_links;
#[cfg(target_os = "linux")]
mod host;
mod joined;
pub mod options;
pub mod path;
#[cfg(target_os = "linux")]
mod raw_flags;
pub mod size;
mod transact;
mod types;

pub use error::{FsError, Result};
pub use fs::FileSystem;
pub use hard_links::HardLinks;
#[cfg(target_os = "linux")]
pub use host::HostFs;
pub use joined::{JOINED_MAX, JoinedFs};
pub use transact::TransactError;
pub use types::{
    Advice, Attr, DirBlock, Dirent, Fallocate, Fh, FileExtent, FileType, Ino, NewNode, OpenFlags,
    RenameFlags, SeekTo, SetAttr, SetTime, SetXattr, Shutdown, StatFs, Timestamp, TransactMask,
    TransactPolicy,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
