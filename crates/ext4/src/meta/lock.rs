//! The metadata lock, and what it guards.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use steadfast_ext4_format::ondisk::{GroupDesc, Superblock};
use steadfast_runtime::{Mutex, MutexGuard};

use super::cache::BlockCache;
use crate::state::{AllocState, Fetches, NodeCache, OrphanSet, XattrBlockCache};

/// What the metadata lock guards.
pub(crate) struct MetaState {
    pub cache: RefCell<BlockCache>,
    pub superblock: Superblock,
    pub groups: Vec<GroupDesc>,
    pub alloc: AllocState,
    pub orphans: OrphanSet,
    pub fetches: Fetches,
    pub xattr_blocks: XattrBlockCache,
    pub extent_nodes: RefCell<NodeCache>,
}

/// The one lock under which metadata is changed, one operation at a time.
pub(crate) struct MetaLock {
    state: Mutex<MetaState>,
    /// Operations that have retried too often and fall back to reading under the lock.
    fallbacks: AtomicU32,
}

impl MetaLock {
    pub fn new(state: MetaState) -> Self {
        MetaLock { state: Mutex::new(state), fallbacks: AtomicU32::new(0) }
    }

    pub fn lock(&self) -> MutexGuard<'_, MetaState> {
        self.state.lock()
    }

    /// Whether an operation that misses a block may read it without the lock and retry.
    pub fn allows_retries(&self) -> bool {
        self.fallbacks.load(Ordering::Acquire) == 0
    }

    /// Runs an operation that reads under the lock; so does everybody meanwhile.
    pub fn fall_back<T>(&self, operation: impl FnOnce() -> T) -> T {
        self.fallbacks.fetch_add(1, Ordering::AcqRel);
        let outcome = operation();
        self.fallbacks.fetch_sub(1, Ordering::AcqRel);
        outcome
    }
}
