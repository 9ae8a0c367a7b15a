//! What files have beside their contents: permissions, owners, times, extended attributes. Each
//! call is there twice, for an open file and by path.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use steadfast_vfs::{FileSystem as Vfs, FsError, Ino, SetAttr, SetXattr};

use crate::error::{Error, Result};
use crate::file::File;
use crate::fs::FileSystem;
use crate::times::FileTimes;

/// A change of what stat(2) says.
fn change(fs: &dyn Vfs, ino: Ino, set: SetAttr) -> std::result::Result<(), FsError> {
    fs.setattr(ino, set).map(drop)
}

/// The calls: each with the system call that it is like, which has an `f` before its name for an
/// open file; what it does with an inode; and of its example the arguments, and the lines before
/// and after it.
macro_rules! attributes {
    ($($(#[doc = $text:literal])+
     $name:ident($($argument:ident: $type:ty),*) -> $out:ty, $call:literal = $work:expr;
     ($($given:literal)?), $before:literal, $after:literal;)*) => {
        impl File {
            $($(#[doc = $text])+
            ///
            /// ```
            /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
            /// let file = fs.create("/file")?;
            #[doc = $before]
            #[doc = concat!("file.", stringify!($name), "(" $(, $given)?, ")?;")]
            #[doc = $after]
            /// # Ok::<(), std::io::Error>(())
            /// ```
            ///
            /// # Errors
            #[doc = concat!("As f", $call, ".")]
            pub fn $name(&self, $($argument: $type),*) -> Result<$out> {
                self.on_inode(stringify!($name), $work)
            })*
        }

        impl FileSystem {
            $($(#[doc = $text])+
            /// Links are followed.
            ///
            /// ```
            /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
            /// fs.write("/file", "")?;
            #[doc = $before]
            #[doc = concat!("fs.", stringify!($name), "(\"/file\"" $(, ", ", $given)?, ")?;")]
            #[doc = $after]
            /// # Ok::<(), std::io::Error>(())
            /// ```
            ///
            /// # Errors
            #[doc = concat!("As ", $call, ".")]
            pub fn $name(&self, path: impl AsRef<Path>, $($argument: $type),*) -> Result<$out> {
                self.on_inode(stringify!($name), path.as_ref(), true, $work)
            })*
        }
    };
}

attributes! {
    /// Changes the permissions.
    set_permissions(permissions: Permissions) -> (), "chmod(2)" = |fs, ino| {
        // OK to cast: the bits beyond are the type's.
        let mode = Some((permissions.mode() & 0o7777) as u16);
        change(fs, ino, SetAttr { mode, ..SetAttr::default() })
    };
    ("Permissions::from_mode(0o600)"),
        "use std::{fs::Permissions, os::unix::fs::PermissionsExt};",
        "assert_eq!(fs.metadata(\"/file\")?.mode() & 0o7777, 0o600);";

    /// Changes user and group. `None` leaves one as it is.
    chown(uid: Option<u32>, gid: Option<u32>) -> (), "chown(2)" = |fs, ino| {
        change(fs, ino, SetAttr { uid, gid, ..SetAttr::default() })
    };
    ("Some(1000), None"), "", "assert_eq!(fs.metadata(\"/file\")?.uid(), 1000);";

    /// Changes the times.
    set_times(times: FileTimes) -> (), "utimes(2)" = |fs, ino| change(fs, ino, times.to_set());
    ("times"),
        "let times = steadfast::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);",
        "assert_eq!(fs.metadata(\"/file\")?.mtime(), 0);";

    /// The value of an extended attribute; `None`: there is none of this name.
    xattr(name: impl AsRef<OsStr>) -> Option<Vec<u8>>, "getxattr(2), but ENODATA" = |fs, ino| {
        match fs.getxattr(ino, name.as_ref().as_bytes()) {
            Err(FsError::NoData) => Ok(None),
            value => value.map(Some),
        }
    };
    ("\"user.origin\""), "fs.set_xattr(\"/file\", \"user.origin\", b\"here\")?;",
        "assert_eq!(fs.xattr(\"/file\", \"user.other\")?, None);";

    /// Gives it an extended attribute, or another value of one.
    set_xattr(name: impl AsRef<OsStr>, value: &[u8]) -> (), "setxattr(2)" = |fs, ino| {
        fs.setxattr(ino, name.as_ref().as_bytes(), value, SetXattr::Any)
    };
    ("\"user.origin\", b\"here\""), "",
        "assert_eq!(fs.xattr(\"/file\", \"user.origin\")?.as_deref(), Some(&b\"here\"[..]));";

    /// Takes an extended attribute away.
    remove_xattr(name: impl AsRef<OsStr>) -> (), "removexattr(2)" = |fs, ino| {
        fs.removexattr(ino, name.as_ref().as_bytes())
    };
    ("\"user.origin\""), "fs.set_xattr(\"/file\", \"user.origin\", b\"here\")?;",
        "assert_eq!(fs.xattr(\"/file\", \"user.origin\")?, None);";

    /// The names of its extended attributes.
    xattrs() -> Vec<OsString>, "listxattr(2)" = |fs, ino| {
        Ok(fs.listxattr(ino)?.into_iter().map(OsString::from_vec).collect())
    };
    (), "fs.set_xattr(\"/file\", \"user.origin\", b\"here\")?;",
        "assert_eq!(fs.xattrs(\"/file\")?, [\"user.origin\"]);";
}

impl FileSystem {
    /// Changes user and group of what has this name; a symbolic link is not followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.symlink("nowhere", "/link")?;
    /// fs.lchown("/link", Some(1000), None)?;
    /// assert_eq!(fs.symlink_metadata("/link")?.uid(), 1000);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As lchown(2).
    pub fn lchown(&self, path: impl AsRef<Path>, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        let set = SetAttr { uid, gid, ..SetAttr::default() };
        self.on_inode("lchown", path.as_ref(), false, |fs, ino| change(fs, ino, set))
    }

    /// Changes the times of what has this name; a symbolic link is not followed.
    ///
    /// ```
    /// use std::time::SystemTime;
    ///
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.symlink("nowhere", "/link")?;
    /// let times = steadfast::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    /// fs.set_symlink_times("/link", times)?;
    /// assert_eq!(fs.symlink_metadata("/link")?.mtime(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As utimensat(2) with AT_SYMLINK_NOFOLLOW.
    pub fn set_symlink_times(&self, path: impl AsRef<Path>, times: FileTimes) -> Result<()> {
        let set = times.to_set();
        self.on_inode("set_symlink_times", path.as_ref(), false, |fs, ino| change(fs, ino, set))
    }

    fn on_inode<T>(
        &self,
        operation: &'static str,
        path: &Path,
        follow_last: bool,
        work: impl FnOnce(&dyn Vfs, Ino) -> std::result::Result<T, FsError>,
    ) -> Result<T> {
        let ino = self.find(operation, path, follow_last)?.ino;
        work(&**self.vfs(), ino).map_err(Error::at(operation, path))
    }
}
