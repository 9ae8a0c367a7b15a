//! Files that are made immutable while they are open for writing.
//!
//! The kernel does not know the flag of our inodes: it lets go on who has a file open, and tells us
//! of changed pages later. These are pages of mappings, with writeback_cache those of every
//! write(2). As the kernel's ext4 does, we
//!
//! * have it write out what has changed before the flag is set (`once_written_out`). It holds the
//!   lock of the inode meanwhile, which a write(2) takes;
//! * refuse pages that come after that (the file system does). fsync(2) and msync(2) report it,
//!   also for a write(2) that waited for the lock while the flag was set. The kernel forgets these
//!   pages (`page_refused`);
//! * refuse write(2) itself. With writeback_cache the kernel wants to know the mode before it keeps
//!   a write: if it has no valid one, it asks for the attributes with the handle, and fails with
//!   the error of the answer (`fuse_cache_write_iter`). Nothing else asks so: stat(2) has no
//!   handle, reading and lseek(2) want the size, which is the kernel's own in this mode. So these
//!   handles are refused attributes (`before_kept_write`), and the attributes of these nodes are
//!   made invalid right before each answer that carries them: the kernel does not keep what it
//!   asked for before that (`before_attributes`). The time for which the first ones were valid goes
//!   on, and must not end: then it would ask for the size too.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use steadfast_fuse_lowlevel::LateReply;
use steadfast_vfs::{Fh, FsError, Ino, OpenFlags, Result};

use super::{Answer, Bridge, NodeId};

/// Since this version (Linux 5.16) the kernel asks for what it needs only, as above.
pub(super) const ASKS_FOR_THE_MODE: u32 = 35;

/// Handles that may write.
#[derive(Default)]
pub(super) struct Writers(Mutex<State>);

#[derive(Default)]
struct State {
    open: HashMap<Fh, Ino>,
    /// Those of these inodes that have been made immutable since.
    immutable: HashSet<Ino>,
}

impl Writers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file has been opened.
    pub fn note(&self, fh: Fh, ino: Ino, flags: OpenFlags) {
        if flags.contains(OpenFlags::WRITE) {
            self.lock().open.insert(fh, ino);
        }
    }

    /// It was closed.
    pub fn forget(&self, fh: Fh) {
        let mut state = self.lock();
        let Some(ino) = state.open.remove(&fh) else { return };
        if state.immutable.contains(&ino) && !state.open.values().any(|i| *i == ino) {
            state.immutable.remove(&ino);
        }
    }

    /// Whether a file is open for writing.
    pub fn any_of(&self, ino: Ino) -> bool {
        self.lock().open.values().any(|i| *i == ino)
    }

    /// An inode has the flag now, or has not.
    pub fn set_immutable(&self, ino: Ino, is_immutable: bool) {
        let mut state = self.lock();
        if is_immutable && state.open.values().any(|i| *i == ino) {
            state.immutable.insert(ino);
        } else {
            state.immutable.remove(&ino);
        }
    }

    /// Whether a file was made immutable while it was open for writing, and still is both.
    pub fn is_immutable(&self, ino: Ino) -> bool {
        self.lock().immutable.contains(&ino)
    }

    /// Whether a handle may write no more.
    fn is_ended(&self, fh: Fh) -> bool {
        let state = self.lock();
        state.open.get(&fh).is_some_and(|ino| state.immutable.contains(ino))
    }
}

impl Bridge {
    /// Answers a request once the kernel has written out what has changed in a file. That it does
    /// by requests, for which this thread may be the only one.
    pub(super) fn once_written_out(
        &self,
        node: NodeId,
        data: &[u8],
        answer: impl FnOnce(&Bridge, &[u8]) -> Answer<Vec<u8>> + Send + 'static,
        reply: LateReply,
    ) {
        let (bridge, data) = (self.clone(), data.to_vec());
        let work = move || {
            if let Some(kernel) = bridge.kernel.get() {
                kernel.write_out(node.0);
            }
            match answer(&bridge, &data) {
                Ok(data) => reply.ioctl(&data),
                Err(e) => reply.error(e),
            }
        };
        if let Err(e) = std::thread::Builder::new().name("write out".into()).spawn(work) {
            // The caller has EIO: that is the answer of a reply that is dropped.
            tracing::warn!("{}: a file was not made immutable: {e}", self.options.source);
        }
    }

    /// The kernel asks for attributes with a handle: it may be about to keep a write.
    pub(super) fn before_kept_write(&self, fh: Fh) -> Result<()> {
        match self.is_asked_before_writes && self.writers.is_ended(fh) {
            true => Err(FsError::NotPermitted { what: "the file is immutable" }),
            false => Ok(()),
        }
    }

    /// The kernel is given attributes next, which it is not to keep if it must ask before a write.
    pub(super) fn before_attributes(&self, ino: Ino) {
        if self.is_asked_before_writes && self.writers.is_immutable(ino) {
            self.attributes_changed(ino);
        }
    }

    /// A page was not written. Of one that is not allowed the kernel would show what never
    /// reaches the disk.
    pub(super) fn page_refused(&self, node: NodeId, e: Errno) {
        if e == Errno::PERM
            && let Some(kernel) = self.kernel.get()
        {
            kernel.contents(node.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_ended_until_the_flag_is_taken_back() {
        let writers = Writers::default();
        let (old, other, reader, ino) = (Fh(1), Fh(2), Fh(3), Ino(12));
        writers.set_immutable(ino, true);
        assert!(!writers.is_immutable(ino), "nobody writes to it");
        for (fh, flags) in [(old, OpenFlags::WRITE), (other, OpenFlags::WRITE)] {
            writers.note(fh, ino, flags);
        }
        writers.note(reader, ino, OpenFlags::READ);
        writers.set_immutable(ino, true);
        assert_eq!([old, other, reader].map(|fh| writers.is_ended(fh)), [true, true, false]);
        writers.forget(old);
        assert!(writers.is_immutable(ino) && !writers.is_ended(old));
        writers.set_immutable(ino, false);
        assert!(!writers.is_ended(other));
        writers.set_immutable(ino, true);
        writers.forget(other);
        assert!(!writers.is_immutable(ino) && !writers.any_of(ino));
    }
}
