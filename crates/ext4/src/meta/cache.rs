//! Clean metadata blocks in memory, dropped when there are too many.
//!
//! A block stays here while the journal or the device holds the same contents, so dropping it is
//! always safe. Which one goes is decided by *second chance* (the clock algorithm): the oldest
//! that was not asked for since it was last passed over. A hit costs one look into a hash table.

use std::collections::VecDeque;

use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

struct Entry {
    contents: Bytes,
    verified: bool,
    used: bool,
}

/// Cache of whole blocks.
pub(crate) struct BlockCache {
    entries: FxHashMap<u64, Entry>,
    /// Every block of `entries`, in the order in which they may go. A block that was removed may
    /// still be here, and one that came again may be here twice.
    queue: VecDeque<u64>,
    capacity: usize,
}

/// A cached block.
pub(crate) struct CacheBlock {
    pub contents: Bytes,
    /// The reader's check has passed, or we made the contents ourselves.
    pub verified: bool,
}

impl BlockCache {
    /// A cache for `capacity` blocks.
    pub fn new(capacity: usize) -> Self {
        BlockCache {
            entries: FxHashMap::default(),
            queue: VecDeque::new(),
            capacity: capacity.max(1),
        }
    }

    /// Blocks in memory.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn contains(&self, block: u64) -> bool {
        self.entries.contains_key(&block)
    }

    pub fn get(&mut self, block: u64) -> Option<CacheBlock> {
        let entry = self.entries.get_mut(&block)?;
        entry.used = true;
        Some(CacheBlock { contents: entry.contents.clone(), verified: entry.verified })
    }

    pub fn insert(&mut self, block: u64, contents: Bytes, verified: bool) {
        let entry = Entry { contents, verified, used: false };
        if self.entries.insert(block, entry).is_some() {
            return;
        }
        self.queue.push_back(block);
        while self.entries.len() > self.capacity {
            let Some(oldest) = self.queue.pop_front() else { break };
            let Some(entry) = self.entries.get_mut(&oldest) else { continue };
            if std::mem::take(&mut entry.used) {
                self.queue.push_back(oldest);
            } else {
                self.entries.remove(&oldest);
            }
        }
        if self.queue.len() > 2 * self.capacity {
            let mut seen = FxHashSet::default();
            self.queue.retain(|b| self.entries.contains_key(b) && seen.insert(*b));
        }
    }

    pub fn mark_verified(&mut self, block: u64) {
        if let Some(entry) = self.entries.get_mut(&block) {
            entry.verified = true;
        }
    }

    pub fn remove(&mut self, block: u64) {
        self.entries.remove(&block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_stays_bounded() {
        let mut cache = BlockCache::new(16);
        for round in 0..1000 {
            cache.insert(round % 3, Bytes::new(), false);
            cache.remove(round % 3);
        }
        assert!(cache.queue.len() <= 2 * 16 + 1 && cache.entries.is_empty());
    }

    #[test]
    fn what_is_used_stays() {
        let mut cache = BlockCache::new(16);
        for block in 0..100 {
            cache.insert(block, Bytes::new(), false);
            assert!(cache.get(0).is_some());
        }
        assert!(cache.get(1).is_none());
        assert!(cache.entries.len() == 16);
        assert!(cache.get(0).is_some_and(|c| !c.verified));
        cache.mark_verified(0);
        assert!(cache.get(0).is_some_and(|c| c.verified));
        cache.remove(0);
        assert!(cache.get(0).is_none());
    }
}
