//! Extended attributes of the host. Linux takes a path for an inode that is not open, so the way
//! is through `/proc/self/fd`, from the folder that the walk has opened.

use std::os::fd::{AsRawFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::{HostFs, HostName};
use crate::{FsError, Ino, Result, SetXattr};

/// Longest value, and longest list of names, in bytes (`XATTR_SIZE_MAX`, `XATTR_LIST_MAX`).
const MAX: usize = 65_536;

/// What to call it by: a name in an open folder, or an open file that may have no name.
enum XattrTarget {
    Path(HostName, Vec<u8>),
    Open(std::sync::Arc<super::handles::Handle>),
}

impl HostFs {
    fn way(&self, ino: Ino) -> Result<XattrTarget> {
        match self.locate(ino) {
            Ok((place, _)) => {
                let mut path = format!("/proc/self/fd/{}/", place.dir.as_raw_fd()).into_bytes();
                path.extend_from_slice(&place.name);
                Ok(XattrTarget::Path(place, path))
            }
            Err(e) => self.handles.any_of(ino).map(XattrTarget::Open).ok_or(e),
        }
    }

    pub(super) fn get_attribute(&self, ino: Ino, name: &[u8]) -> Result<Vec<u8>> {
        let mut value = Vec::with_capacity(MAX);
        match self.way(ino)? {
            XattrTarget::Path(_place, path) => {
                rustix::fs::lgetxattr(path.as_slice(), name, spare_capacity(&mut value))?
            }
            XattrTarget::Open(file) => {
                rustix::fs::fgetxattr(&file.fd, name, spare_capacity(&mut value))?
            }
        };
        Ok(value)
    }

    pub(super) fn set_attribute(
        &self,
        ino: Ino,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<()> {
        let flags = match how {
            SetXattr::Any => XattrFlags::empty(),
            SetXattr::Create => XattrFlags::CREATE,
            SetXattr::Replace => XattrFlags::REPLACE,
        };
        match self.way(ino)? {
            XattrTarget::Path(_place, path) => {
                rustix::fs::lsetxattr(path.as_slice(), name, value, flags)
            }
            XattrTarget::Open(file) => rustix::fs::fsetxattr(&file.fd, name, value, flags),
        }
        .map_err(xattr_error)
    }

    pub(super) fn list_attributes(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        let mut names = Vec::with_capacity(MAX);
        match self.way(ino)? {
            XattrTarget::Path(_place, path) => {
                rustix::fs::llistxattr(path.as_slice(), spare_capacity(&mut names))?
            }
            XattrTarget::Open(file) => {
                rustix::fs::flistxattr(&file.fd, spare_capacity(&mut names))?
            }
        };
        let each = names.split(|b| *b == 0).filter(|name| !name.is_empty());
        Ok(each.map(<[u8]>::to_vec).collect())
    }

    /// Whether what is made in the folder gets an ACL from it.
    pub(super) fn has_default_acl(&self, folder: &OwnedFd) -> bool {
        let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
        rustix::fs::getxattr_query(path, c"system.posix_acl_default").is_ok()
    }

    pub(super) fn remove_attribute(&self, ino: Ino, name: &[u8]) -> Result<()> {
        match self.way(ino)? {
            XattrTarget::Path(_place, path) => rustix::fs::lremovexattr(path.as_slice(), name),
            XattrTarget::Open(file) => rustix::fs::fremovexattr(&file.fd, name),
        }
        .map_err(xattr_error)
    }
}

fn xattr_error(e: Errno) -> FsError {
    match e {
        Errno::PERM => FsError::NotPermitted { what: "changing this attribute" },
        Errno::RANGE => FsError::Range { what: "the attribute's name" },
        Errno::TOOBIG => FsError::TooBig { what: "the attribute's value" },
        Errno::NOTSUP => FsError::Unsupported { what: "this attribute on the host".into() },
        e => e.into(),
    }
}
