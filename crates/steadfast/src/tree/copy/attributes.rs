//! What an object has beside its contents: owner, attributes, access control lists, capabilities,
//! flags, mode, times; in this order, because a change of owner takes capabilities and set-id bits
//! away, an access control list changes the mode, and everything changes times.

use steadfast_tar::ACCESS_ACL;
use steadfast_vfs::path::shown;
use steadfast_vfs::{Attr, FileType, FsError, Ino, SetAttr, SetTime, SetXattr};

use super::{Copy, CopyError, nothing_fits};
use crate::tree::Side;
use crate::tree::names::joined;

/// Attributes that hold for a file of one host only: not put into an image, and not taken from it.
/// All others are copied; those that only root may set (`trusted.*`, `security.*`) by root.
const OF_THE_HOST: [&[u8]; 3] = [b"security.selinux", b"security.ima", b"security.evm"];

/// Set-user-ID and set-group-ID.
const SET_ID: u16 = 0o6000;

/// Inode flags (`chattr`) that are kept: S, d, A, D.
const FLAGS_KEPT: u32 = 0x8 | 0x40 | 0x80 | 0x1_0000;
/// Those that are not, because what has them cannot be removed any more: i, a.
const FLAGS_REPORTED: u32 = 0x10 | 0x20;

impl Copy<'_, '_, '_> {
    /// Gives the copy `made` all that the object `attr` has. What cannot be kept is noted; what
    /// cannot be read is in `unread` afterwards.
    pub(super) fn attributes(&mut self, attr: &Attr, made: Ino) -> Result<(), CopyError> {
        let attr = &self.changes.of(attr);
        let owned = self.owner(attr, made)?;
        let acl_lost = self.xattrs(attr, made)?;
        self.flags(attr, made)?;
        let mut mode = attr.mode;
        if let Some(group) = acl_lost {
            // The group's bits were the list's mask: without it they would be the group's own.
            mode = mode & !0o070 | (mode & group << 3);
        }
        if mode & SET_ID != 0 && !owned {
            self.note("set-user-ID and set-group-ID are left out: the owner cannot be set");
            mode &= !SET_ID;
        }
        let set = SetAttr {
            mode: (attr.kind != FileType::Symlink).then_some(mode),
            atime: Some(SetTime::At(attr.atime)),
            mtime: Some(SetTime::At(attr.mtime)),
            ..SetAttr::default()
        };
        match self.to.fs.setattr(made, set) {
            Ok(now) => {
                if (now.atime, now.mtime) != (attr.atime, attr.mtime) {
                    self.note("times are not kept exactly: beyond what the target can hold");
                }
                Ok(())
            }
            Err(e) => self.noted(e, "mode and times are not kept"),
        }
    }

    /// Notes what cannot be done; an error where nothing more can be.
    fn noted(&mut self, e: FsError, what: &str) -> Result<(), CopyError> {
        if nothing_fits(&e) {
            return Err(CopyError::To(e));
        }
        self.note(&format!("{what} ({e})"));
        Ok(())
    }

    fn note(&mut self, what: &str) {
        let path = joined(&self.to.path, &self.below);
        self.failures.note(what, &path);
    }

    /// Sets the owner and group. Whether both are what they were.
    fn owner(&mut self, attr: &Attr, made: Ino) -> Result<bool, CopyError> {
        let is = |now: &Attr| (now.uid, now.gid) == (attr.uid, attr.gid);
        let now = self.to.fs.getattr(made).map_err(CopyError::To)?;
        if is(&now) {
            return Ok(true);
        }
        let both = SetAttr { uid: Some(attr.uid), gid: Some(attr.gid), ..SetAttr::default() };
        let mut set = self.to.fs.setattr(made, both);
        if let Err(e) = &set {
            if nothing_fits(e) {
                return Err(CopyError::To(e.clone()));
            }
            let why = e.to_string();
            let group = SetAttr { uid: None, ..both };
            set = self.to.fs.setattr(made, group);
            self.note(&format!("owners are not kept ({why})"));
        }
        // What is there counts, not what was asked for.
        Ok(set.is_ok_and(|now| is(&now)))
    }

    /// Copies extended attributes and takes away those that the target gave by itself. If an
    /// access control list could not be kept: what it gave the group.
    fn xattrs(&mut self, attr: &Attr, made: Ino) -> Result<Option<u16>, CopyError> {
        let names = match self.from.fs.listxattr(attr.ino) {
            Ok(names) => names,
            Err(e) if has_none(&e) => Vec::new(),
            Err(e) => {
                self.unread = Some(CopyError::From(e));
                return Ok(None);
            }
        };
        self.clear_others(&names, made)?;
        let mut acl_lost = None;
        for name in names {
            if OF_THE_HOST.contains(&name.as_slice()) {
                let name = shown(&name);
                self.note(&format!("attribute {name} is not kept: each host gives its own"));
                continue;
            }
            let value = match self.from.fs.getxattr(attr.ino, &name) {
                Ok(mut value) => {
                    self.changes.value(&name, &mut value);
                    value
                }
                Err(FsError::NoData) => continue,
                Err(e) if has_none(&e) || self.from.side == Side::Host => {
                    self.not_kept(&name, &e);
                    continue;
                }
                Err(e) => {
                    self.unread = Some(CopyError::From(e));
                    continue;
                }
            };
            match self.to.fs.setxattr(made, &name, &value, SetXattr::Any) {
                Ok(()) => {}
                Err(e @ FsError::ReadOnly { .. }) => return Err(CopyError::To(e)),
                Err(e) => {
                    if name == ACCESS_ACL {
                        acl_lost = group_of_acl(&value);
                    }
                    self.not_kept(&name, &e);
                }
            }
        }
        Ok(acl_lost)
    }

    /// A default access control list of the folder above, an older file: the copy has what the
    /// source has, no more.
    fn clear_others(&mut self, wanted: &[Vec<u8>], made: Ino) -> Result<(), CopyError> {
        let there = match self.to.fs.listxattr(made) {
            Ok(names) => names,
            // It has none, or they are not to be seen, and then not to be removed.
            Err(_) => return Ok(()),
        };
        for name in there {
            if wanted.contains(&name) || OF_THE_HOST.contains(&name.as_slice()) {
                continue;
            }
            match self.to.fs.removexattr(made, &name) {
                Ok(()) | Err(FsError::NoData) => {}
                Err(e) => self.noted(e, &format!("attribute {} is not removed", shown(&name)))?,
            }
        }
        Ok(())
    }

    fn not_kept(&mut self, name: &[u8], e: &FsError) {
        self.note(&format!("attribute {} is not kept ({e})", shown(name)));
    }

    fn flags(&mut self, attr: &Attr, made: Ino) -> Result<(), CopyError> {
        if !matches!(attr.kind, FileType::Regular | FileType::Directory) {
            return Ok(());
        }
        // Many file systems of the host have none.
        let Ok(flags) = self.from.fs.inode_flags(attr.ino) else { return Ok(()) };
        if flags & FLAGS_REPORTED != 0 {
            self.note("immutable (chattr +i) and append-only (+a) are not kept");
        }
        if flags & FLAGS_KEPT == 0 {
            return Ok(());
        }
        let wanted = flags & FLAGS_KEPT;
        let set = self.to.fs.inode_flags(made).and_then(|now| {
            let flags = now & !FLAGS_KEPT | wanted;
            if flags == now { Ok(()) } else { self.to.fs.set_inode_flags(made, flags) }
        });
        set.or_else(|e| self.noted(e, "flags (chattr) are not kept"))
    }
}

/// Whether the file system has no attributes at all, or shows none of them.
fn has_none(e: &FsError) -> bool {
    use rustix::io::Errno;
    let e = Errno::from_raw_os_error(e.errno());
    matches!(e, Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS | Errno::NODATA | Errno::NOKEY)
}

/// What an access control list in the kernel's form (a version, then entries of tag, permissions
/// and id) gives the owning group (`ACL_GROUP_OBJ`).
pub(in crate::tree) fn group_of_acl(value: &[u8]) -> Option<u16> {
    const GROUP_OBJ: u16 = 4;
    let entries = value.get(4..)?.chunks_exact(8);
    let word = |e: &[u8], at: usize| u16::from_le_bytes([e[at], e[at + 1]]);
    entries.filter(|e| word(e, 0) == GROUP_OBJ).map(|e| word(e, 2) & 7).next()
}

#[cfg(test)]
mod tests {
    use super::group_of_acl;

    #[test]
    fn the_groups_own_bits_are_found() {
        let mut acl = vec![2, 0, 0, 0];
        for (tag, perm) in [(1_u16, 6_u16), (2, 6), (4, 0), (0x10, 6), (0x20, 4)] {
            acl.extend(tag.to_le_bytes());
            acl.extend(perm.to_le_bytes());
            acl.extend(u32::MAX.to_le_bytes());
        }
        assert_eq!(group_of_acl(&acl), Some(0));
        acl[4 + 16 + 2] = 5;
        assert_eq!(group_of_acl(&acl), Some(5));
        assert_eq!(group_of_acl(&acl[..7]), None);
        assert_eq!(group_of_acl(&[]), None);
    }
}
