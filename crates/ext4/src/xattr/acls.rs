//! Access control lists of inodes: what the kernel does in fs/ext4/acl.c and fs/posix_acl.c.

use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_ext4_format::xattr::acl::Acl;
use steadfast_ext4_format::xattr::name::{ACL_ACCESS, ACL_DEFAULT};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::{FileType, FsError, SetXattr};

use super::{UnusedInodes, read_xattr, set_xattr};
use crate::meta::Txn;

/// Which of the two lists of an inode, by the code of its attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AclType {
    /// Who may do what.
    Access = ACL_ACCESS,
    /// Of a directory: what new inodes in it get.
    Default = ACL_DEFAULT,
}

impl AclType {
    /// The list that an attribute's code stands for.
    pub fn of(index: u8) -> Option<AclType> {
        [AclType::Access, AclType::Default].into_iter().find(|which| *which as u8 == index)
    }
}

/// A list of an inode, if it has it.
///
/// # Errors
/// EOPNOTSUPP: symbolic links have none. Corrupt attributes or lists.
pub(crate) fn read_acl(txn: &Txn<'_>, no: InodeNo, which: AclType) -> Result<Option<Acl>> {
    if txn.raw_inode(no)?.file_type() == Some(FileType::Symlink) {
        return Err(no_lists());
    }
    let Some(bytes) = read_xattr(txn, no, (which as u8, b""))? else { return Ok(None) };
    let corrupt = |what| Ext4Error::corrupt(what, format!("inode {no}"));
    Acl::from_disk(&bytes).map_err(corrupt)
}

/// Sets or (`None`) removes a list. An access list changes the mode; one that says no more
/// than the mode is not kept.
///
/// # Errors
/// EOPNOTSUPP: a symbolic link. EACCES: a default list of what is no directory. No space.
pub(crate) fn set_acl(
    txn: &mut Txn<'_>,
    no: InodeNo,
    which: AclType,
    mut acl: Option<&Acl>,
) -> Result<UnusedInodes> {
    let raw = txn.raw_inode(no)?;
    let Some(kind) = raw.file_type().filter(|k| *k != FileType::Symlink) else {
        return Err(no_lists());
    };
    if which == AclType::Default && kind != FileType::Directory {
        return match acl {
            Some(_) => Err(FsError::AccessDenied.into()),
            None => Ok(UnusedInodes::default()),
        };
    }
    if let (AclType::Access, Some(list)) = (which, acl) {
        let (mode, all) = list.mode();
        txn.modify_inode(no, |raw| {
            raw.set_mode(kind, raw.permissions() & !0o777 | mode);
        })?;
        acl = acl.filter(|_| !all);
    }
    let value = acl.map(Acl::to_disk);
    let name = (which as u8, &b""[..]);
    match set_xattr(txn, no, name, value.as_deref(), SetXattr::Any) {
        Ok((_, unused)) => Ok(unused),
        // To remove what is not there is fine.
        Err(Ext4Error::Fs(FsError::NoData)) => Ok(UnusedInodes::default()),
        Err(e) => Err(e),
    }
}

/// After a chmod: the access list says the same as the new mode.
pub(crate) fn acl_follows_mode(txn: &mut Txn<'_>, no: InodeNo) -> Result<UnusedInodes> {
    let raw = txn.raw_inode(no)?;
    if raw.file_type() == Some(FileType::Symlink) {
        return Ok(UnusedInodes::default());
    }
    let Some(mut acl) = read_acl(txn, no, AclType::Access)? else {
        return Ok(UnusedInodes::default());
    };
    acl.set_mode(raw.permissions());
    set_acl(txn, no, AclType::Access, Some(&acl))
}

/// Gives a new inode the lists that its directory's default list makes of it, and the mode:
/// without such a list, the caller's umask decides.
pub(crate) fn inherit_acls(txn: &mut Txn<'_>, dir: InodeNo, no: InodeNo, umask: u16) -> Result<()> {
    let raw = txn.raw_inode(no)?;
    let Some(kind) = raw.file_type().filter(|k| *k != FileType::Symlink) else {
        return Ok(());
    };
    let Some(default) = read_acl(txn, dir, AclType::Default)? else {
        let mode = raw.permissions() & !(umask & 0o777);
        return txn.modify_inode(no, |raw| raw.set_mode(kind, mode));
    };
    let mut access = default.clone();
    let (mode, all) = access.inherit(raw.permissions());
    txn.modify_inode(no, |raw| raw.set_mode(kind, mode))?;
    // What a new inode has replaces nothing, so nothing is left over.
    let mut left_over = Vec::new();
    if kind == FileType::Directory {
        left_over.extend(set_acl(txn, no, AclType::Default, Some(&default))?.0);
    }
    if !all {
        left_over.extend(set_acl(txn, no, AclType::Access, Some(&access))?.0);
    }
    debug_assert!(left_over.is_empty());
    Ok(())
}

fn no_lists() -> Ext4Error {
    FsError::Unsupported { what: "access control lists of symbolic links".into() }.into()
}
