//! Changing modes, owners and times, and what else changes then (notify_change and
//! ext4_setattr in the kernel).

use std::sync::Arc;

use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo};
use steadfast_ext4_format::xattr::body;
use steadfast_ext4_format::xattr::name::SECURITY;
use steadfast_vfs::{FileType, FsError, Ino, Result, SetAttr, SetTime, TransactMask};

use crate::file::{delete_values, make_durable, truncate};
use crate::meta::Txn;
use crate::mounted::Ext4;
use crate::state::Inode;
use crate::xattr::{UnusedInodes, acl_follows_mode, read_xattr, set_xattr};

const SET_UID: u16 = 0o4000;
const SET_GID: u16 = 0o2000;
const GROUP_EXECUTE: u16 = 0o010;

/// The attribute that gives a program rights of its own; who changes the program takes them.
const CAPABILITY: (u8, &[u8]) = (SECURITY, b"capability");

/// Its hashes lie beyond its end and hold for good. They are not checked when it is read.
pub(super) const VERITY_IS_READ_ONLY: &str = "a verity file is never written";

pub(super) fn set_pinned(fs: &Ext4, inode: &Arc<Inode>, set: &SetAttr) -> Result<()> {
    if let Some(size) = set.size {
        match inode.kind() {
            FileType::Regular => fs.run_pinned(inode, || truncate(fs, inode, size))?,
            FileType::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid { what: "only regular files have a size" }),
        }
    }
    if (SetAttr { size: None, ..*set }) != SetAttr::default() {
        fs.run_pinned(inode, || fs.set_fields(inode, set))?;
    }
    Ok(())
}

impl Ext4 {
    /// Refuses what an immutable or append-only inode does not allow.
    pub(super) fn check_settable(&self, inode: &Inode, set: &SetAttr) -> Result<()> {
        if set.written_back {
            return Ok(());
        }
        let flags = inode.state().raw.flags();
        // Both times to now is what a write does anyway. One of them alone is not (`vfs_utimes`).
        let touch = matches!(
            (set.atime, set.mtime),
            (None, None) | (Some(SetTime::Now), Some(SetTime::Now))
        );
        let more_than_now = set.size.is_some()
            || set.mode.is_some()
            || set.uid.is_some()
            || set.gid.is_some()
            || !touch;
        if flags.contains(InodeFlags::IMMUTABLE)
            || (flags.contains(InodeFlags::APPEND) && more_than_now)
        {
            return Err(FsError::NotPermitted { what: "the inode is immutable or append-only" });
        }
        if set.size.is_some() && flags.contains(InodeFlags::ENCRYPTED) {
            return Err(FsError::NoKey);
        }
        if set.size.is_some() && flags.contains(InodeFlags::VERITY) {
            return Err(FsError::NotPermitted { what: VERITY_IS_READ_ONLY });
        }
        Ok(())
    }

    /// After a change of names in `dirs`: a directory marked for that has it durable at once, and
    /// so has every one with `dirsync`; with data=transact the mask decides.
    pub(super) fn names_changed(&self, dirs: &[Ino], what: TransactMask) -> Result<()> {
        if self.parts.transacts() {
            return self.point_after(what);
        }
        for dir in dirs {
            let inode = self.inode(*dir)?;
            let (flags, tid) = {
                let state = inode.state();
                (state.raw.flags(), state.sync_tid)
            };
            let marked = flags.intersects(InodeFlags::SYNC | InodeFlags::DIR_SYNC);
            if marked || self.options.sync_names {
                self.run(|| make_durable(self, tid, 0))?;
            }
        }
        Ok(())
    }

    /// Sets everything but the size.
    fn set_fields(&self, inode: &Inode, set: &SetAttr) -> steadfast_ext4_format::Result<()> {
        let mut txn = self.parts.begin()?;
        let now = txn.time_of_change(inode.no)?;
        let time = |t: SetTime| match t {
            SetTime::Now => now,
            SetTime::At(t) => t,
        };
        let mut unused = UnusedInodes::default();
        let owned = set.uid.is_some() || set.gid.is_some();
        if owned && inode.state().raw.file_type() != Some(FileType::Directory) {
            unused.0.extend(strip(&mut txn, inode.no)?.0);
        }
        txn.modify_inode(inode.no, |raw| {
            if let (Some(mode), Some(kind)) = (set.mode, raw.file_type()) {
                raw.set_mode(kind, mode);
            }
            if let Some(uid) = set.uid {
                raw.set_uid(uid);
            }
            if let Some(gid) = set.gid {
                raw.set_gid(gid);
            }
            if let Some(t) = set.atime {
                raw.set_atime(time(t));
            }
            if let Some(t) = set.mtime {
                raw.set_mtime(time(t));
            }
            raw.set_ctime(now);
        })?;
        if set.mode.is_some() {
            unused.0.extend(acl_follows_mode(&mut txn, inode.no)?.0);
        }
        if body::is_empty(&inode.state().raw) {
            txn.record();
        }
        txn.finish()?;
        delete_values(self, unused)
    }

    /// Before contents change, by any caller: removes the capabilities.
    pub(crate) fn drop_capability(&self, inode: &Inode) -> steadfast_ext4_format::Result<()> {
        {
            let mut state = inode.state();
            if state.no_capability {
                return Ok(());
            }
            if state.raw.file_acl() == 0 && body::is_empty(&state.raw) {
                state.no_capability = true;
                return Ok(());
            }
        }
        let mut txn = self.parts.begin()?;
        if read_xattr(&txn, inode.no, CAPABILITY)?.is_none() {
            // Nobody adds it as long as the transaction is open.
            inode.state().no_capability = true;
            return Ok(());
        }
        let unused = strip_capability(&mut txn, inode.no)?;
        txn.touch(inode.no, false)?;
        txn.finish()?;
        delete_values(self, unused)
    }
}

/// Takes set-id bits and capabilities away; set-group-id means something else without the group's
/// execute bit, and stays then.
fn strip(txn: &mut Txn<'_>, no: InodeNo) -> steadfast_ext4_format::Result<UnusedInodes> {
    txn.modify_inode(no, |raw| {
        let mut mode = raw.permissions() & !SET_UID;
        if mode & GROUP_EXECUTE != 0 {
            mode &= !SET_GID;
        }
        if let Some(kind) = raw.file_type() {
            raw.set_mode(kind, mode);
        }
    })?;
    strip_capability(txn, no)
}

fn strip_capability(txn: &mut Txn<'_>, no: InodeNo) -> steadfast_ext4_format::Result<UnusedInodes> {
    if read_xattr(txn, no, CAPABILITY)?.is_none() {
        return Ok(UnusedInodes::default());
    }
    let how = steadfast_vfs::SetXattr::Any;
    Ok(set_xattr(txn, no, CAPABILITY, None, how)?.1)
}
