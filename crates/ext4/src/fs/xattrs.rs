//! Extended attributes of a mounted file system: who may have which, and what else changes.

use steadfast_ext4_format::ondisk::InodeFlags;
use steadfast_ext4_format::xattr::acl::Acl;
use steadfast_ext4_format::xattr::name::{self, USER};
use steadfast_vfs::{FileType, FsError, Ino, Result, SetXattr};

use crate::file::delete_values;
use crate::mounted::Ext4;
use crate::state::Inode;
use crate::xattr::{AclType, set_acl, set_xattr};

/// Longest value (`XATTR_SIZE_MAX`).
const VALUE_MAX: usize = 65_536;

impl Ext4 {
    /// Sets an attribute or, without a value, removes it.
    pub(super) fn set_xattr(
        &self,
        ino: Ino,
        full: &[u8],
        value: Option<&[u8]>,
        how: SetXattr,
    ) -> Result<()> {
        let inode = self.inode(ino)?;
        self.run(|| self.parts.check_writable())?;
        let name = name::split(full)?;
        if value.is_some_and(|v| v.len() > VALUE_MAX) {
            return Err(FsError::TooBig { what: "a value has at most 65536 bytes" });
        }
        self.pinned(inode, |inode| {
            let flags = inode.state().raw.flags();
            if flags.intersects(InodeFlags::IMMUTABLE | InodeFlags::APPEND) {
                let what = "the inode is immutable or append-only";
                return Err(FsError::NotPermitted { what });
            }
            if name.0 == USER && !may_have_user(inode) {
                let what = "user attributes of what is neither a file nor a directory";
                return Err(FsError::NotPermitted { what });
            }
            match AclType::of(name.0) {
                Some(which) => {
                    let acl = Acl::from_wire(value.unwrap_or(&[]))?;
                    self.run_pinned(inode, || self.change_acl(inode, which, acl.as_ref()))
                }
                None => self.run_pinned(inode, || self.change_xattr(inode, name, value, how)),
            }
        })
    }

    fn change_acl(
        &self,
        inode: &Inode,
        which: AclType,
        acl: Option<&Acl>,
    ) -> steadfast_ext4_format::Result<()> {
        let mut txn = self.parts.begin()?;
        let unused = set_acl(&mut txn, inode.no, which, acl)?;
        txn.touch(inode.no, false)?;
        txn.finish()?;
        delete_values(self, unused)
    }

    fn change_xattr(
        &self,
        inode: &Inode,
        name: (u8, &[u8]),
        value: Option<&[u8]>,
        how: SetXattr,
    ) -> steadfast_ext4_format::Result<()> {
        let mut txn = self.parts.begin()?;
        let (changed, unused) = set_xattr(&mut txn, inode.no, name, value, how)?;
        if !changed {
            return Ok(());
        }
        txn.touch(inode.no, false)?;
        txn.finish()?;
        delete_values(self, unused)
    }
}

/// "user." is for files and directories only: anybody may write to a device or a link's place.
pub(super) fn may_have_user(inode: &Inode) -> bool {
    let kind = inode.state().raw.file_type();
    matches!(kind, Some(FileType::Regular | FileType::Directory))
}
