//! What there is to know of a file.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast_vfs::{Attr, FileType, Timestamp};

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
/// # fs.unmount()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata(Attr);

/// Says of each method what it returns, with an example on a file of five bytes.
macro_rules! fields {
    ($($(#[doc = $text:literal])+ $name:ident -> $type:ty = $value:expr, $example:literal;)*) => {
        impl Metadata {
            $($(#[doc = $text])+
            ///
            /// ```
            /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
            /// fs.write("/file", "12345")?;
            /// let file = fs.metadata("/file")?;
            #[doc = $example]
            /// # fs.unmount()?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn $name(&self) -> $type {
                let value: fn(&Attr) -> $type = $value;
                value(&self.0)
            })*
        }
    };
}

fields! {
    /// What it is.
    file_type -> FileType = |a| a.kind,
        "assert_eq!(file.file_type(), steadfast::FileType::Regular);";
    /// Whether it is a folder.
    is_dir -> bool = |a| a.kind == FileType::Directory, "assert!(!file.is_dir());";
    /// Whether it is a regular file.
    is_file -> bool = |a| a.kind == FileType::Regular, "assert!(file.is_file());";
    /// Whether it is a symbolic link.
    is_symlink -> bool = |a| a.kind == FileType::Symlink, "assert!(!file.is_symlink());";
    /// Bytes.
    len -> u64 = |a| a.size, "assert_eq!(file.len(), 5);";
    /// Whether it holds nothing.
    is_empty -> bool = |a| a.size == 0, "assert!(!file.is_empty());";
    /// Type and permissions as st_mode has them.
    mode -> u32 = |a| type_bits(a.kind) | u32::from(a.mode), "assert_eq!(file.mode(), 0o100644);";
    /// Permissions.
    permissions -> Permissions = |a| Permissions::from_mode(a.mode.into()),
        "assert!(!file.permissions().readonly());";
    /// Inode number.
    ino -> u64 = |a| a.ino.0, "assert!(file.ino() > 10);";
    /// Names.
    nlink -> u32 = |a| a.nlink, "assert_eq!(file.nlink(), 1);";
    /// User.
    uid -> u32 = |a| a.uid, "let user: u32 = file.uid();";
    /// Group.
    gid -> u32 = |a| a.gid, "let group: u32 = file.gid();";
    /// Storage in units of 512 bytes.
    blocks -> u64 = |a| a.blocks_512, "assert!(file.blocks() <= 8);";
    /// Last change of the contents.
    modified -> SystemTime = |a| time(a.mtime), "assert!(file.modified().elapsed().is_ok());";
    /// When the contents last changed, in seconds since 1970: what a disk can hold and
    /// [`SystemTime`] cannot, too.
    mtime -> i64 = |a| a.mtime.secs, "assert!(file.mtime() > 0);";
    /// Last time of reading, as far as it is kept.
    accessed -> SystemTime = |a| time(a.atime), "assert!(file.accessed() <= file.modified());";
    /// Last change of anything.
    changed -> SystemTime = |a| time(a.ctime), "assert!(file.changed() >= file.created());";
    /// When it was made; the beginning of 1970 where that is not kept.
    created -> SystemTime = |a| time(a.crtime), "assert!(file.created() <= file.modified());";
}

impl Metadata {
    pub(crate) fn new(attr: Attr) -> Metadata {
        Metadata(attr)
    }
}

/// The upper bits of st_mode.
fn type_bits(kind: FileType) -> u32 {
    match kind {
        FileType::Regular => 0o100_000,
        FileType::Directory => 0o040_000,
        FileType::Symlink => 0o120_000,
        FileType::CharDevice => 0o020_000,
        FileType::BlockDevice => 0o060_000,
        FileType::Fifo => 0o010_000,
        FileType::Socket => 0o140_000,
    }
}

fn time(t: Timestamp) -> SystemTime {
    let whole = Duration::from_secs(t.secs.unsigned_abs());
    let whole = match t.secs < 0 {
        true => UNIX_EPOCH.checked_sub(whole),
        false => UNIX_EPOCH.checked_add(whole),
    };
    let at = whole.and_then(|at| at.checked_add(Duration::from_nanos(t.nanos.into())));
    // OK: what a damaged disk says is beyond all calendars is no time at all.
    at.unwrap_or(UNIX_EPOCH)
}
