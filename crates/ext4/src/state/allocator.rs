//! The allocator's own state; how it searches the bitmaps is in `alloc`.
//!
//! Blocks that a transaction frees are *busy* until it has committed, and with an external journal
//! until the home mark has reached it: using them earlier could overwrite what the file system
//! still needs if that transaction never commits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_ext4_format::RangeSet;
use steadfast_journal::Tid;

use super::home::BlockRanges;
use super::space::{AllocState, Space, SpaceEdit};
use super::{Fresh, HomeMark};

/// Who gives blocks and inode numbers, and counts them. Windows and busy blocks are in
/// [`AllocState`], under the metadata lock.
pub(crate) struct Allocator {
    counts: Mutex<Space>,
    /// Blocks freed by transactions that have committed since the allocator last looked.
    freed_committed: Arc<Mutex<BlockRanges>>,
    /// Of an external journal: how far its log must go for what is on the device.
    pub home: Option<Arc<HomeMark>>,
    /// With data=transact: the blocks that may be overwritten.
    pub fresh: Option<Fresh>,
}

impl Allocator {
    /// `fresh`: with data=transact.
    pub fn new(space: Space, fresh: Option<Fresh>) -> Self {
        Allocator { counts: Mutex::new(space), freed_committed: Arc::default(), home: None, fresh }
    }

    /// How much is free.
    pub fn counts(&self) -> MutexGuard<'_, Space> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of the blocks that a transaction frees, those that are busy until it has committed: all
    /// but those that were free in the last committed state.
    pub fn busy_until_commit(&self, edit: &SpaceEdit) -> RangeSet {
        let Some(fresh) = &self.fresh else { return edit.freed.clone() };
        let mut busy = RangeSet::new();
        busy.extend(edit.freed.iter().flat_map(|(start, end)| fresh.held(start, end)));
        for (start, end) in edit.taken.iter() {
            busy.remove(start, end);
        }
        busy
    }

    /// What the commit of a transaction does for the blocks that are busy until then.
    pub fn on_commit(&self, busy: &RangeSet) -> Box<dyn FnOnce(Tid) + Send> {
        let (freed_committed, home) = (Arc::clone(&self.freed_committed), self.home.clone());
        let freed: BlockRanges = busy.iter().collect();
        Box::new(move |tid| match home {
            Some(home) => home.hold(tid, freed),
            None => freed_committed.lock().unwrap_or_else(PoisonError::into_inner).extend(freed),
        })
    }

    /// Counts what a finished transaction has taken and freed. Its commit may have come already:
    /// who looks at that needs the metadata lock first, which the transaction has.
    pub fn count(&self, state: &mut AllocState, edit: &SpaceEdit, busy: &RangeSet) {
        state.busy.extend(busy.iter());
        if let Some(fresh) = &self.fresh {
            fresh.change(&edit.taken, &edit.freed);
        }
        let mut space = self.counts();
        space.free_blocks = (space.free_blocks + edit.freed.len()).saturating_sub(edit.taken.len());
        space.settled_blocks += edit.settles;
        space.busy_blocks += busy.len();
        space.free_inodes = space.free_inodes.saturating_add_signed(edit.inodes_delta);
    }

    /// Blocks whose freeing has been committed are busy no more.
    pub fn take_freed_committed(&self, state: &mut AllocState) {
        let mut freed_committed = std::mem::take(
            &mut *self.freed_committed.lock().unwrap_or_else(PoisonError::into_inner),
        );
        if let Some(home) = &self.home {
            freed_committed.extend(home.take_released());
        }
        let count: u64 =
            freed_committed.iter().map(|(start, end)| state.busy.remove(*start, *end)).sum();
        let mut space = self.counts();
        space.busy_blocks = space.busy_blocks.saturating_sub(count);
    }

    /// Begins anew with what the descriptors count; nothing uncommitted is in the log.
    pub fn reset(&self, state: &mut AllocState, free_blocks: u64, free_inodes: u64) {
        *state = AllocState::default();
        let held = self.home.as_ref().map(|home| home.forget_released()).unwrap_or_default();
        state.busy.extend(held.iter().copied());
        let mut space = self.counts();
        (space.free_blocks, space.free_inodes) = (free_blocks, free_inodes);
        (space.delayed_blocks, space.settled_blocks) = (0, 0);
        space.busy_blocks = held.iter().map(|(start, end)| end - start).sum();
    }

    /// Nothing that was committed is left to take, and nothing is fresh.
    pub fn forget_committed(&self) {
        self.freed_committed.lock().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(fresh) = &self.fresh {
            fresh.clear();
        }
    }
}
