//! The inodes in memory, one for each number.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_journal::Tid;
use steadfast_vfs::FileType;

use super::Inode;

/// Inodes by number. An inode that somebody holds, that is open or has delayed data stays;
/// others leave by *second chance*: the oldest that was not asked for since it was last passed
/// over.
pub(crate) struct InodeCache {
    state: Mutex<State>,
    /// Inodes kept although nobody uses them.
    idle_max: usize,
}

struct Slot {
    inode: Arc<Inode>,
    used: bool,
}

#[derive(Default)]
struct State {
    inodes: FxHashMap<InodeNo, Slot>,
    /// Every inode of the table, in the order in which they may go. One that was removed may
    /// still be here, and one that came again may be here twice.
    queue: VecDeque<InodeNo>,
}

impl InodeCache {
    /// A cache for `idle_max` inodes beside those in use.
    pub fn new(idle_max: usize) -> Self {
        InodeCache { state: Mutex::default(), idle_max: idle_max.max(1) }
    }

    /// Inodes in memory.
    pub fn len(&self) -> usize {
        self.lock().inodes.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, no: InodeNo) -> Option<Arc<Inode>> {
        let mut state = self.lock();
        let slot = state.inodes.get_mut(&no)?;
        slot.used = true;
        Some(Arc::clone(&slot.inode))
    }

    /// Adds an inode; one that is there with its number is forgotten. The caller holds the
    /// metadata lock, under which inodes are read, so nobody adds the same one.
    pub fn insert(&self, inode: Arc<Inode>) {
        let mut state = self.lock();
        let no = inode.no;
        if state.inodes.insert(no, Slot { inode, used: true }).is_none() {
            state.queue.push_back(no);
        }
        if state.inodes.len() > self.idle_max || state.queue.len() > 4 * self.idle_max {
            state.evict(self.idle_max);
        }
    }

    /// Makes every inode one that nobody may open any more; false, and nothing done, if one is
    /// open and `open_too` does not say that this does not matter. A call that works on one without
    /// a handle sees it when it goes on.
    pub fn retire(&self, open_too: bool) -> bool {
        let state = self.lock();
        let all = || state.inodes.values().map(|slot| &slot.inode);
        // Nobody locks the state of two inodes but here.
        let mut states: Vec<_> = all().map(|inode| inode.state()).collect();
        if !open_too && states.iter().any(|s| s.opens > 0) {
            return false;
        }
        states.iter_mut().for_each(|s| s.doomed = true);
        true
    }

    /// Files with a name that have data in a transaction of which `is_lost` is true, ascending.
    pub fn with_data_in(&self, is_lost: impl Fn(Tid) -> bool) -> Vec<InodeNo> {
        let state = self.lock();
        let has = |inode: &Inode| {
            let state = inode.state();
            let is_file = state.raw.file_type() != Some(FileType::Directory);
            is_file && state.raw.links() > 0 && state.data_in.is_some_and(&is_lost)
        };
        let inodes = state.inodes.values().filter(|slot| has(&slot.inode));
        let mut numbers: Vec<InodeNo> = inodes.map(|slot| slot.inode.no).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Forgets all inodes.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.inodes.clear();
        state.queue.clear();
    }

    pub fn remove(&self, no: InodeNo) {
        self.lock().inodes.remove(&no);
    }
}

impl State {
    /// Drops inodes until an eighth of the room is free, as far as nobody needs them. Looks at
    /// each once at most.
    fn evict(&mut self, idle_max: usize) {
        let State { inodes, queue } = self;
        let mut seen = FxHashSet::default();
        queue.retain(|no| inodes.contains_key(no) && seen.insert(*no));
        for _ in 0..queue.len() {
            if inodes.len() <= idle_max / 8 * 7 {
                return;
            }
            let Some(no) = queue.pop_front() else { return };
            let Some(slot) = inodes.get_mut(&no) else { continue };
            if std::mem::take(&mut slot.used) || !is_idle(&slot.inode) {
                queue.push_back(no);
            } else {
                inodes.remove(&no);
            }
        }
    }
}

/// Whether nobody but the cache needs it.
fn is_idle(inode: &Arc<Inode>) -> bool {
    // Who still has `outside` is a write of its data that has not completed.
    Arc::strong_count(inode) == 1 && Arc::strong_count(&inode.outside) == 1 && {
        let state = inode.state();
        let clean = state.delayed.is_empty() && state.moving.is_empty();
        !state.is_in_use() && clean && state.size == state.raw.size()
    }
}
