//! Clean metadata blocks in memory, the least recently used dropped first.
//!
//! A block stays here while the journal or the device holds the same contents, so dropping it is
//! always safe.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

struct Entry {
    contents: Bytes,
    verified: bool,
    used: u64,
}

/// Least-recently-used cache of whole blocks.
pub(crate) struct BlockCache {
    entries: HashMap<u64, Entry>,
    by_use: BTreeMap<u64, u64>,
    clock: u64,
    capacity: usize,
}

/// A cached block.
pub(crate) struct Cached {
    pub contents: Bytes,
    /// The reader's check has passed, or we made the contents ourselves.
    pub verified: bool,
}

impl BlockCache {
    /// A cache for `capacity` blocks.
    pub fn new(capacity: usize) -> Self {
        BlockCache {
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
            capacity: capacity.max(16),
        }
    }

    pub fn get(&mut self, block: u64) -> Option<Cached> {
        self.clock += 1;
        let entry = self.entries.get_mut(&block)?;
        self.by_use.remove(&entry.used);
        entry.used = self.clock;
        self.by_use.insert(self.clock, block);
        Some(Cached { contents: entry.contents.clone(), verified: entry.verified })
    }

    pub fn insert(&mut self, block: u64, contents: Bytes, verified: bool) {
        self.clock += 1;
        let entry = Entry { contents, verified, used: self.clock };
        if let Some(old) = self.entries.insert(block, entry) {
            self.by_use.remove(&old.used);
        }
        self.by_use.insert(self.clock, block);
        while self.entries.len() > self.capacity {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.entries.remove(&oldest);
        }
    }

    pub fn mark_verified(&mut self, block: u64) {
        if let Some(entry) = self.entries.get_mut(&block) {
            entry.verified = true;
        }
    }

    pub fn remove(&mut self, block: u64) {
        if let Some(old) = self.entries.remove(&block) {
            self.by_use.remove(&old.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_the_least_recently_used() {
        let mut cache = BlockCache::new(16);
        for block in 0..16 {
            cache.insert(block, Bytes::new(), false);
        }
        assert!(cache.get(0).is_some());
        cache.insert(16, Bytes::new(), false);
        assert!(cache.get(1).is_none());
        assert!(cache.get(0).is_some_and(|c| !c.verified));
        cache.mark_verified(0);
        assert!(cache.get(0).is_some_and(|c| c.verified));
        cache.remove(0);
        assert!(cache.get(0).is_none());
    }
}
