//! Open files.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Fh, FsError, Ino, OpenFlags, Result};

/// An open file of the host.
pub(super) struct Handle {
    pub(super) fd: OwnedFd,
    pub(super) ino: Ino,
    pub(super) flags: OpenFlags,
}

/// The open files by handle.
pub(super) struct HostHandles {
    next: AtomicU64,
    /// Held for look-ups only.
    open: Mutex<BTreeMap<Fh, Arc<Handle>>>,
}

impl HostHandles {
    pub(super) fn new() -> HostHandles {
        HostHandles { next: AtomicU64::new(1), open: Mutex::new(BTreeMap::new()) }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Fh, Arc<Handle>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, handle: Handle) -> Fh {
        let fh = Fh(self.next.fetch_add(1, Ordering::Relaxed));
        self.open().insert(fh, Arc::new(handle));
        fh
    }

    pub(super) fn get(&self, fh: Fh) -> Result<Arc<Handle>> {
        self.open().get(&fh).cloned().ok_or(FsError::BadHandle)
    }

    pub(super) fn remove(&self, fh: Fh) -> Result<Arc<Handle>> {
        self.open().remove(&fh).ok_or(FsError::BadHandle)
    }

    /// Some open handle of an inode: how an unlinked file is still reached.
    pub(super) fn any_of(&self, ino: Ino) -> Option<Arc<Handle>> {
        self.open().values().find(|h| h.ino == ino).cloned()
    }
}
