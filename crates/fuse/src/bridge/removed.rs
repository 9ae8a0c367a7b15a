//! Inodes without a name that the kernel still knows: a process stands in a removed directory, has
//! a removed FIFO open, or holds a place (O_PATH). The file system has nothing of them any more;
//! fstat(2) is answered from here until the kernel forgets them.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_vfs::{Attr, FileType, FsError, Ino, RenameFlags, Result};

use super::Bridge;

/// Their last attributes.
#[derive(Default)]
pub(super) struct Removed(Mutex<HashMap<Ino, Attr>>);

impl Removed {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ino, Attr>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel has forgotten it, or its number has a new owner.
    pub fn forget(&self, ino: Ino) {
        self.lock().remove(&ino);
    }
}

impl Bridge {
    /// Removes a name by `how`, and keeps what the kernel may still ask for.
    pub(super) fn remove(
        &self,
        dir: Ino,
        name: &[u8],
        how: impl FnOnce(Ino, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let before = self.fs.lookup(dir, name);
        how(dir, name)?;
        if let Ok(attr) = before {
            self.keep_last(attr);
        }
        Ok(())
    }

    /// Renames, and keeps what the kernel may still ask for of what was at the new name.
    pub(super) fn replace(
        &self,
        dir: Ino,
        name: &[u8],
        to: (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<()> {
        let before = self.fs.lookup(to.0, to.1);
        let moved = self.fs.lookup(dir, name);
        self.fs.rename(dir, name, to.0, to.1, flags)?;
        // Two names of one file: nothing was replaced.
        if let (Ok(attr), Ok(moved)) = (before, moved)
            && attr.ino != moved.ino
        {
            self.keep_last(attr);
        }
        Ok(())
    }

    /// `attr`: of what has just lost a name.
    fn keep_last(&self, attr: Attr) {
        if attr.nlink <= 1 || attr.kind == FileType::Directory {
            self.removed.lock().insert(attr.ino, Attr { nlink: 0, ..attr });
        }
    }

    /// Attributes, also of what has been removed.
    pub(super) fn attributes(&self, ino: Ino) -> Result<Attr> {
        self.fs.getattr(ino).or_else(|e| match e {
            FsError::NotFound | FsError::Stale => self.removed.lock().get(&ino).copied().ok_or(e),
            e => Err(e),
        })
    }
}
