//! Set-id bits and file capabilities end when a file is written, truncated or given away
//! (FUSE_HANDLE_KILLPRIV_V2: the kernel leaves that to us, and need not ask before every write).

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use fuser::INodeNo;
use steadfast_vfs::{Attr, FileType, FsError, Ino, Result, SetAttr};

use super::Bridge;

const SET_UID: u16 = 0o4000;
const SET_GID: u16 = 0o2000;
const GROUP_EXECUTES: u16 = 0o010;
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
/// execute means something else (mandatory locks) and stays.
pub(super) fn without_set_id(mode: u16) -> u16 {
    let kept = mode & !SET_UID;
    if kept & GROUP_EXECUTES != 0 { kept & !SET_GID } else { kept }
}

impl Bridge {
    /// Remembers whether a file that is opened for writing has capabilities to lose.
    pub(super) fn note_capabilities(&self, ino: Ino) {
        if self.fs.getxattr(ino, CAPABILITY).is_ok() {
            self.capable.note(ino);
        }
    }

    /// Before a write: takes away what it ends. `set_id`: the writer may not keep set-id bits.
    pub(super) fn before_write(&self, ino: Ino, set_id: bool) -> Result<()> {
        if self.capable.take(ino) {
            self.drop_capabilities(ino)?;
        }
        if set_id {
            let attr = self.fs.getattr(ino)?;
            let mode = without_set_id(attr.mode);
            if mode != attr.mode {
                self.fs.setattr(ino, SetAttr { mode: Some(mode), ..SetAttr::default() })?;
                // It takes a write to change size and times, not the mode. A negative offset means
                // attributes only: pages are locked while they are written.
                if let Some(kernel) = self.notifier.get() {
                    // OK to ignore: what the kernel does not know it need not forget.
                    let _ = kernel.inval_inode(INodeNo(self.number(ino)), -1, 0);
                }
            }
        }
        Ok(())
    }

    /// Adds to a change of attributes what it ends. `uid`: who asks.
    pub(super) fn privileges_after(&self, ino: Ino, set: &mut SetAttr, uid: u32) -> Result<()> {
        let given_away = set.uid.is_some() || set.gid.is_some();
        let cut_by_user = set.size.is_some() && uid != 0;
        if !given_away && set.size.is_none() {
            return Ok(());
        }
        let Attr { kind, mode, .. } = self.fs.getattr(ino)?;
        if kind == FileType::Directory {
            return Ok(());
        }
        if kind == FileType::Regular {
            self.drop_capabilities(ino)?;
        }
        if given_away || cut_by_user {
            let before = set.mode.unwrap_or(mode);
            let after = without_set_id(before);
            if after != before {
                set.mode = Some(after);
            }
        }
        Ok(())
    }

    fn drop_capabilities(&self, ino: Ino) -> Result<()> {
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
    fn set_gid_stays_where_the_group_may_not_execute() {
        assert_eq!(without_set_id(0o6755), 0o755);
        assert_eq!(without_set_id(0o6745), 0o2745);
        assert_eq!(without_set_id(0o644), 0o644);
    }
}
