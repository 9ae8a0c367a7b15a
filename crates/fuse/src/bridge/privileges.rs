//! Set-id bits and file capabilities end when a file is written, truncated or given away
//! (FUSE_HANDLE_KILLPRIV_V2: the kernel leaves that to us, and need not ask before every write).

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use steadfast_vfs::{Attr, FileType, FsError, Ino, Result, SetAttr};

use super::Bridge;
use super::caller::Caller;
use super::inode_flags::IMMUTABLE;

const SET_UID: u16 = 0o4000;
const SET_GID: u16 = 0o2000;
const GROUP_EXECUTES: u16 = 0o010;
/// An attribute that is an access list.
pub(super) const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// Where a file's capabilities are.
pub(super) const CAPABILITY: &[u8] = b"security.capability";

/// Files open for writing that have capabilities: seldom any.
#[derive(Default)]
pub(super) struct Capable {
    count: AtomicUsize,
    files: Mutex<HashSet<u64>>,
}

impl Capable {
    pub fn note(&self, ino: Ino) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(ino.0);
        self.count.store(files.len(), Ordering::Release);
    }

    fn take(&self, ino: Ino) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let was = files.remove(&ino.0);
        self.count.store(files.len(), Ordering::Release);
        was
    }
}

/// The mode without what a write by an ordinary user takes away. Set-group-id without the right to
/// execute once meant something else (mandatory locks): who `belongs` to the group does not take
/// it away (the kernel's setattr_should_drop_sgid).
pub(super) fn without_set_id(mode: u16, belongs: impl FnOnce() -> bool) -> u16 {
    let kept = mode & !SET_UID;
    let stays = kept & SET_GID == 0 || (kept & GROUP_EXECUTES == 0 && belongs());
    if stays { kept } else { kept & !SET_GID }
}

impl Bridge {
    /// Remembers whether a file that is opened for writing has capabilities to lose.
    pub(super) fn note_capabilities(&self, ino: Ino) {
        if self.fs.getxattr(ino, CAPABILITY).is_ok() {
            self.capable.note(ino);
        }
    }

    /// Before a write: takes away what it ends. `by`: a writer who may not keep set-id bits.
    pub(super) fn before_write(&self, ino: Ino, by: Option<Caller>) -> Result<()> {
        if self.capable.take(ino) {
            self.drop_capabilities(ino)?;
        }
        if let Some(caller) = by {
            let attr = self.fs.getattr(ino)?;
            let mode = without_set_id(attr.mode, || caller.belongs_to(attr.gid));
            if mode != attr.mode {
                self.fs.setattr(ino, SetAttr { mode: Some(mode), ..SetAttr::default() })?;
                // It takes a write to change size and times, not the mode.
                self.attributes_changed(ino);
            }
        }
        Ok(())
    }

    /// As [`before_write`](Self::before_write), of whom the kernel does not say whether he may keep
    /// set-id bits: asks only if there are any.
    pub(super) fn before_change(&self, ino: Ino, caller: Caller) -> Result<()> {
        let has_set_id = self.fs.getattr(ino)?.mode & (SET_UID | SET_GID) != 0;
        let loses = has_set_id && !caller.keeps_set_id();
        self.before_write(ino, loses.then_some(caller))
    }

    /// Changes attributes, and with them what that ends.
    pub(super) fn change_attributes(
        &self,
        ino: Ino,
        mut set: SetAttr,
        caller: Caller,
    ) -> Result<Attr> {
        if set == SetAttr::default() {
            return self.change_nothing(ino, caller);
        }
        let given_away = set.uid.is_some() || set.gid.is_some();
        if !given_away && set.size.is_none() {
            return self.fs.setattr(ino, set);
        }
        let Attr { kind, mode, gid, .. } = self.fs.getattr(ino)?;
        if kind == FileType::Directory {
            return self.fs.setattr(ino, set);
        }
        if kind == FileType::Regular {
            self.drop_capabilities(ino)?;
        }
        let before = set.mode.unwrap_or(mode);
        let has_set_id = before & (SET_UID | SET_GID) != 0;
        if has_set_id && (given_away || !caller.keeps_set_id()) {
            let after = without_set_id(before, || caller.belongs_to(gid));
            if after != before {
                set.mode = Some(after);
            }
        }
        self.fs.setattr(ino, set)
    }

    /// The kernel asks for no change: a chown that leaves user and group as they are, or (of a file
    /// with capabilities, or by whom set-id bits are lost anyhow) what goes before a write.
    fn change_nothing(&self, ino: Ino, caller: Caller) -> Result<Attr> {
        let Attr { kind, mode, gid, .. } = self.fs.getattr(ino)?;
        let mut after = mode;
        if kind != FileType::Directory {
            let is_capable = self.fs.getxattr(ino, CAPABILITY).is_ok();
            if is_capable {
                self.drop_capabilities(ino)?;
            }
            let has_set_id = mode & (SET_UID | SET_GID) != 0;
            // Of a program with capabilities it may be a write by who keeps set-id bits.
            if has_set_id && !(is_capable && caller.keeps_set_id()) {
                after = without_set_id(mode, || caller.belongs_to(gid));
            }
        }
        // Also to the same mode: the time of change moves.
        match self.fs.setattr(ino, SetAttr { mode: Some(after), ..SetAttr::default() }) {
            // Append-only: no change is no error. Immutable: it is one (`ext4_setattr`).
            Err(FsError::NotPermitted { .. }) if self.fs.inode_flags(ino)? & IMMUTABLE == 0 => {
                self.fs.getattr(ino)
            }
            other => other,
        }
    }

    /// After an access list was set: set-group-id goes unless the caller belongs to the group
    /// (the kernel's posix_acl_update_mode).
    pub(super) fn after_access_list(&self, ino: Ino, caller: Caller) -> Result<()> {
        let Attr { kind, mode, gid, .. } = self.fs.getattr(ino)?;
        if mode & SET_GID == 0 || kind == FileType::Symlink || caller.belongs_to(gid) {
            return Ok(());
        }
        self.fs.setattr(ino, SetAttr { mode: Some(mode & !SET_GID), ..SetAttr::default() })?;
        Ok(())
    }

    fn drop_capabilities(&self, ino: Ino) -> Result<()> {
        // An ordinary user's file system below may refuse to remove even what is not there.
        if let Err(FsError::NoData | FsError::Unsupported { .. }) =
            self.fs.getxattr(ino, CAPABILITY)
        {
            return Ok(());
        }
        match self.fs.removexattr(ino, CAPABILITY) {
            Err(FsError::NoData | FsError::Unsupported { .. }) => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_set_id;

    #[test]
    fn set_gid_stays_for_members_where_the_group_may_not_execute() {
        let asked_for_nothing = || unreachable!("the group does not matter");
        assert_eq!(without_set_id(0o6755, asked_for_nothing), 0o755);
        assert_eq!(without_set_id(0o4745, asked_for_nothing), 0o745);
        assert_eq!(without_set_id(0o6745, || true), 0o2745);
        assert_eq!(without_set_id(0o6745, || false), 0o745);
    }
}
