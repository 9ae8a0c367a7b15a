//! What an open file has beside its contents: permissions, owners, times, extended attributes.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;

use steadfast_vfs::{FsError, SetAttr, SetXattr};

use super::File;
use crate::error::Result;
use crate::times::FileTimes;

impl File {
    fn change(&self, operation: &'static str, set: SetAttr) -> Result<()> {
        self.mounted.fs().setattr(self.ino, set).map(drop).map_err(self.failed(operation))
    }

    /// Changes the permissions.
    ///
    /// ```
    /// use std::fs::Permissions;
    /// use std::os::unix::fs::PermissionsExt;
    ///
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.set_permissions(Permissions::from_mode(0o600))?;
    /// assert_eq!(file.metadata()?.mode() & 0o7777, 0o600);
    /// # drop(file);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fchmod(2).
    pub fn set_permissions(&self, permissions: Permissions) -> Result<()> {
        // OK to cast: the bits beyond are the type's.
        let mode = Some((permissions.mode() & 0o7777) as u16);
        self.change("set_permissions", SetAttr { mode, ..SetAttr::default() })
    }

    /// Changes user and group. `None` leaves one as it is.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.chown(Some(1000), Some(100))?;
    /// assert_eq!(file.metadata()?.gid(), 100);
    /// # drop(file);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fchown(2).
    pub fn chown(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.change("chown", SetAttr { uid, gid, ..SetAttr::default() })
    }

    /// Changes the times.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use steadfast::{FileTimes, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH))?;
    /// assert_eq!(file.metadata()?.mtime(), 0);
    /// # drop(file);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As futimens(2).
    pub fn set_times(&self, times: FileTimes) -> Result<()> {
        self.change("set_times", times.to_set())
    }

    /// The value of an extended attribute; `None`: there is none of this name.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.set_xattr("user.origin", b"here")?;
    /// assert_eq!(file.xattr("user.origin")?.as_deref(), Some(&b"here"[..]));
    /// assert_eq!(file.xattr("user.other")?, None);
    /// # drop(file);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fgetxattr(2), but ENODATA.
    pub fn xattr(&self, name: impl AsRef<OsStr>) -> Result<Option<Vec<u8>>> {
        match self.mounted.fs().getxattr(self.ino, name.as_ref().as_bytes()) {
            Err(FsError::NoData) => Ok(None),
            value => value.map(Some).map_err(self.failed("xattr")),
        }
    }

    /// Gives it an extended attribute, or another value of one.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.set_xattr("user.origin", b"here")?;
    /// assert_eq!(fs.xattrs("/file")?, ["user.origin"]);
    /// # drop(file);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fsetxattr(2).
    pub fn set_xattr(&self, name: impl AsRef<OsStr>, value: &[u8]) -> Result<()> {
        let name = name.as_ref().as_bytes();
        let set = self.mounted.fs().setxattr(self.ino, name, value, SetXattr::Any);
        set.map_err(self.failed("set_xattr"))
    }

    /// Takes an extended attribute away.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// file.set_xattr("user.origin", b"here")?;
    /// file.remove_xattr("user.origin")?;
    /// assert_eq!(file.xattr("user.origin")?, None);
    /// # drop(file);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As fremovexattr(2).
    pub fn remove_xattr(&self, name: impl AsRef<OsStr>) -> Result<()> {
        let removed = self.mounted.fs().removexattr(self.ino, name.as_ref().as_bytes());
        removed.map_err(self.failed("remove_xattr"))
    }

    /// The names of its extended attributes.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// assert!(file.xattrs()?.is_empty());
    /// # drop(file);
    /// # fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As flistxattr(2).
    pub fn xattrs(&self) -> Result<Vec<OsString>> {
        let names = self.mounted.fs().listxattr(self.ino).map_err(self.failed("xattrs"))?;
        Ok(names.into_iter().map(OsString::from_vec).collect())
    }
}
