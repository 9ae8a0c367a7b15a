//! What there is to know of a file.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use steadfast_ext4_format::ondisk::mode_of;
use steadfast_vfs::{Attr, FileType};

use crate::methods::getters;

/// What stat(2) says of a file, with the names of [`std::fs::Metadata`].
///
/// ```
/// use steadfast::{FileType, Image};
///
/// let fs = Image::in_memory(16 << 20).mount()?;
/// let root = fs.metadata("/")?;
/// assert!(root.is_dir() && !root.is_file() && !root.is_symlink());
/// assert_eq!(root.file_type(), FileType::Directory);
/// assert_eq!((root.ino(), root.mode()), (2, 0o40755));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata(Attr);

getters! {
    Metadata, "fs.write(\"/file\", \"12345\")?;\nlet file = fs.metadata(\"/file\")?;";
    /// What it is.
    file_type -> FileType = |m| m.0.kind,
        "assert_eq!(file.file_type(), steadfast::FileType::Regular);";
    /// Whether it is a folder.
    is_dir -> bool = |m| m.0.kind == FileType::Directory, "assert!(!file.is_dir());";
    /// Whether it is a regular file.
    is_file -> bool = |m| m.0.kind == FileType::Regular, "assert!(file.is_file());";
    /// Whether it is a symbolic link.
    is_symlink -> bool = |m| m.0.kind == FileType::Symlink, "assert!(!file.is_symlink());";
    /// Bytes.
    len -> u64 = |m| m.0.size, "assert_eq!(file.len(), 5);";
    /// Whether it holds nothing.
    is_empty -> bool = |m| m.0.size == 0, "assert!(!file.is_empty());";
    /// Type and permissions as st_mode has them.
    mode -> u32 = |m| u32::from(mode_of(m.0.kind) | m.0.mode), "assert_eq!(file.mode(), 0o100644);";
    /// Permissions.
    permissions -> Permissions = |m| Permissions::from_mode(m.0.mode.into()),
        "assert!(!file.permissions().readonly());";
    /// Inode number.
    ino -> u64 = |m| m.0.ino.0, "assert!(file.ino() > 10);";
    /// Names.
    nlink -> u32 = |m| m.0.nlink, "assert_eq!(file.nlink(), 1);";
    /// User.
    uid -> u32 = |m| m.0.uid, "let user: u32 = file.uid();";
    /// Group.
    gid -> u32 = |m| m.0.gid, "let group: u32 = file.gid();";
    /// Storage in units of 512 bytes.
    blocks -> u64 = |m| m.0.blocks_512, "assert!(file.blocks() <= 8);";
    /// Last change of the contents.
    modified -> SystemTime = |m| m.0.mtime.into(), "assert!(file.modified().elapsed().is_ok());";
    /// When the contents last changed, in seconds since 1970: what a disk can hold and
    /// [`SystemTime`] cannot, too.
    mtime -> i64 = |m| m.0.mtime.secs, "assert!(file.mtime() > 0);";
    /// Last time of reading, as far as it is kept.
    accessed -> SystemTime = |m| m.0.atime.into(), "assert!(file.accessed() <= file.modified());";
    /// Last change of anything.
    changed -> SystemTime = |m| m.0.ctime.into(), "assert!(file.changed() >= file.created());";
    /// When it was made; the beginning of 1970 where that is not kept.
    created -> SystemTime = |m| m.0.crtime.into(),
        "assert!(file.created() <= file.modified());";
}

impl Metadata {
    pub(crate) fn new(attr: Attr) -> Metadata {
        Metadata(attr)
    }
}
