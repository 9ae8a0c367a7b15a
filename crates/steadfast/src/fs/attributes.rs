//! What files have beside their contents, by path: permissions, owners, times, extended attributes.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use steadfast_vfs::{FsError, SetAttr, SetXattr};

use super::FileSystem;
use crate::error::{Error, Result};
use crate::times::FileTimes;

impl FileSystem {
    /// Changes the permissions of a file; links are followed.
    ///
    /// ```
    /// use std::fs::Permissions;
    /// use std::os::unix::fs::PermissionsExt;
    ///
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// fs.set_permissions("/file", Permissions::from_mode(0o600))?;
    /// assert_eq!(fs.metadata("/file")?.mode() & 0o7777, 0o600);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As chmod(2).
    pub fn set_permissions(&self, path: impl AsRef<Path>, permissions: Permissions) -> Result<()> {
        // OK to cast: the bits beyond are the type's.
        let mode = Some((permissions.mode() & 0o7777) as u16);
        self.change("set_permissions", path.as_ref(), true, SetAttr { mode, ..SetAttr::default() })
    }

    /// Changes user and group of a file; links are followed. `None` leaves one as it is.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// fs.chown("/file", Some(1000), None)?;
    /// assert_eq!(fs.metadata("/file")?.uid(), 1000);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As chown(2).
    pub fn chown(&self, path: impl AsRef<Path>, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        let set = SetAttr { uid, gid, ..SetAttr::default() };
        self.change("chown", path.as_ref(), true, set)
    }

    fn change(
        &self,
        operation: &'static str,
        path: &Path,
        follow_last: bool,
        set: SetAttr,
    ) -> Result<()> {
        let attr = self.find(operation, path, follow_last)?;
        self.vfs().setattr(attr.ino, set).map(drop).map_err(Error::at(operation, path))
    }

    /// Changes user and group of what has this name; a symbolic link is not followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.symlink("nowhere", "/link")?;
    /// fs.lchown("/link", Some(1000), None)?;
    /// assert_eq!(fs.symlink_metadata("/link")?.uid(), 1000);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As lchown(2).
    pub fn lchown(&self, path: impl AsRef<Path>, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        let set = SetAttr { uid, gid, ..SetAttr::default() };
        self.change("lchown", path.as_ref(), false, set)
    }

    /// Changes the times of a file; links are followed.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use steadfast::{FileTimes, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// let then = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    /// fs.set_times("/file", FileTimes::new().set_modified(then))?;
    /// assert_eq!(fs.metadata("/file")?.modified(), then);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As utimensat(2).
    pub fn set_times(&self, path: impl AsRef<Path>, times: FileTimes) -> Result<()> {
        self.change("set_times", path.as_ref(), true, times.to_set())
    }

    /// Changes the times of what has this name; a symbolic link is not followed.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use steadfast::{FileTimes, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.symlink("nowhere", "/link")?;
    /// let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
    /// fs.set_symlink_times("/link", times)?;
    /// assert_eq!(fs.symlink_metadata("/link")?.mtime(), 0);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As utimensat(2) with AT_SYMLINK_NOFOLLOW.
    pub fn set_symlink_times(&self, path: impl AsRef<Path>, times: FileTimes) -> Result<()> {
        self.change("set_symlink_times", path.as_ref(), false, times.to_set())
    }

    /// The value of an extended attribute; `None`: there is none of this name. Links are followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// assert_eq!(fs.xattr("/file", "user.origin")?, None);
    /// fs.set_xattr("/file", "user.origin", b"here")?;
    /// assert_eq!(fs.xattr("/file", "user.origin")?.as_deref(), Some(&b"here"[..]));
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As getxattr(2), but ENODATA.
    pub fn xattr(
        &self,
        path: impl AsRef<Path>,
        name: impl AsRef<OsStr>,
    ) -> Result<Option<Vec<u8>>> {
        let path = path.as_ref();
        let ino = self.find("xattr", path, true)?.ino;
        match self.vfs().getxattr(ino, name.as_ref().as_bytes()) {
            Err(FsError::NoData) => Ok(None),
            value => value.map(Some).map_err(Error::at("xattr", path)),
        }
    }

    /// Gives a file an extended attribute, or another value of it. Links are followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// fs.set_xattr("/file", "user.origin", b"here")?;
    /// assert!(fs.set_xattr("/file", "unknown.origin", b"here").is_err());
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As setxattr(2).
    pub fn set_xattr(
        &self,
        path: impl AsRef<Path>,
        name: impl AsRef<OsStr>,
        value: &[u8],
    ) -> Result<()> {
        let path = path.as_ref();
        let ino = self.find("set_xattr", path, true)?.ino;
        let set = self.vfs().setxattr(ino, name.as_ref().as_bytes(), value, SetXattr::Any);
        set.map_err(Error::at("set_xattr", path))
    }

    /// Takes an extended attribute away. Links are followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// fs.set_xattr("/file", "user.origin", b"here")?;
    /// fs.remove_xattr("/file", "user.origin")?;
    /// assert_eq!(fs.remove_xattr("/file", "user.origin").unwrap_err().errno(), 61); // ENODATA
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As removexattr(2).
    pub fn remove_xattr(&self, path: impl AsRef<Path>, name: impl AsRef<OsStr>) -> Result<()> {
        let path = path.as_ref();
        let ino = self.find("remove_xattr", path, true)?.ino;
        let removed = self.vfs().removexattr(ino, name.as_ref().as_bytes());
        removed.map_err(Error::at("remove_xattr", path))
    }

    /// The names of a file's extended attributes. Links are followed.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "")?;
    /// fs.set_xattr("/file", "user.origin", b"here")?;
    /// assert_eq!(fs.xattrs("/file")?, ["user.origin"]);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As listxattr(2).
    pub fn xattrs(&self, path: impl AsRef<Path>) -> Result<Vec<OsString>> {
        let path = path.as_ref();
        let ino = self.find("xattrs", path, true)?.ino;
        let names = self.vfs().listxattr(ino).map_err(Error::at("xattrs", path))?;
        Ok(names.into_iter().map(OsString::from_vec).collect())
    }
}
