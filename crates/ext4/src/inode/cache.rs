//! The inodes in memory, one for each number.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use super::Inode;
use crate::ondisk::InodeNo;

/// Inodes kept although nobody uses them.
const IDLE_MAX: usize = 16384;

/// Inodes by number. An inode that somebody holds, that is open or has delayed data stays;
/// others leave, the one asked for longest ago first.
#[derive(Default)]
pub(crate) struct InodeCache {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    inodes: HashMap<InodeNo, (Arc<Inode>, u64)>,
    by_use: BTreeMap<u64, InodeNo>,
    clock: u64,
}

impl InodeCache {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, no: InodeNo) -> Option<Arc<Inode>> {
        let mut state = self.lock();
        state.clock += 1;
        let clock = state.clock;
        let (inode, used) = state.inodes.get_mut(&no)?;
        let (inode, before) = (Arc::clone(inode), std::mem::replace(used, clock));
        state.by_use.remove(&before);
        state.by_use.insert(clock, no);
        Some(inode)
    }

    /// Adds an inode; one that is there with its number is forgotten. The caller holds the
    /// metadata lock, under which inodes are read, so nobody adds the same one.
    pub fn insert(&self, inode: Arc<Inode>) {
        let mut state = self.lock();
        state.clock += 1;
        let (clock, no) = (state.clock, inode.no);
        if let Some((_, before)) = state.inodes.insert(no, (inode, clock)) {
            state.by_use.remove(&before);
        }
        state.by_use.insert(clock, no);
        if state.inodes.len() > IDLE_MAX {
            state.evict();
        }
    }

    /// Makes every inode one that nobody may open any more; false, and nothing done, if one is
    /// open and `open_too` does not say that this does not matter.
    pub fn retire(&self, open_too: bool) -> bool {
        let state = self.lock();
        let all = || state.inodes.values().map(|(inode, _)| inode);
        // Nobody locks the state of two inodes but here.
        let mut states: Vec<_> = all().map(|inode| inode.state()).collect();
        if !open_too && states.iter().any(|s| s.opens > 0) {
            return false;
        }
        states.iter_mut().for_each(|s| s.doomed = true);
        true
    }

    /// Forgets all inodes.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.inodes.clear();
        state.by_use.clear();
    }

    pub fn remove(&self, no: InodeNo) {
        let mut state = self.lock();
        if let Some((_, used)) = state.inodes.remove(&no) {
            state.by_use.remove(&used);
        }
    }
}

impl State {
    /// Drops an eighth of the inodes, as far as nobody needs them.
    fn evict(&mut self) {
        let oldest: Vec<(u64, InodeNo)> =
            self.by_use.iter().take(IDLE_MAX / 8).map(|(u, n)| (*u, *n)).collect();
        for (used, no) in oldest {
            let Some((inode, _)) = self.inodes.get(&no) else { continue };
            let idle = Arc::strong_count(inode) == 1 && {
                let state = inode.state();
                let clean = state.delayed.is_empty() && state.moving.is_empty();
                state.opens == 0 && clean && state.size == state.raw.size()
            };
            if idle {
                self.inodes.remove(&no);
                self.by_use.remove(&used);
            }
        }
    }
}
