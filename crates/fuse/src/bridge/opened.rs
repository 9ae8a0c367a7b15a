//! Which inodes the kernel may have pages of: those opened since it last forgot them.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kernel's numbers of such inodes.
#[derive(Default)]
pub(crate) struct OpenInodes(Mutex<HashSet<u64>>);

impl OpenInodes {
    fn lock(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has been opened.
    pub fn add(&self, number: u64) {
        self.lock().insert(number);
    }

    /// Removes it if the kernel has forgotten it, which `is_forgotten` does and says: who opens it
    /// after a lookup that came meanwhile waits for that.
    pub fn remove_if(&self, number: u64, is_forgotten: impl FnOnce() -> bool) {
        let mut all = self.lock();
        if is_forgotten() {
            all.remove(&number);
        }
    }

    /// All of them, ascending.
    pub fn all(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.lock().iter().copied().collect();
        all.sort_unstable();
        all
    }
}
