//! The name cache: names that were looked up or changed lately, and what they name. A lookup of one
//! takes neither the metadata lock nor a look into the directory.
//!
//! # Invariants
//!
//! 1. What stands here is what the directories say after the last finished transaction. It is
//!    changed under the metadata lock only: by a lookup that has just looked, and by a transaction
//!    that is being finished. So a lookup cannot bring back a name that a rename has taken away.
//! 2. Names of casefolded and encrypted directories do not stand here: there one entry has several
//!    spellings.
//! 3. `changes` is odd while a transaction's names are being entered. Who reads without the
//!    metadata lock believes only what stood here while it was even and did not change: so nobody
//!    sees the half of a rename.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use steadfast_ext4_format::ondisk::InodeNo;

/// Parts with a lock each.
const SHARDS: usize = 16;
/// Most directories that are remembered to be hash-ordered: every name is in the leaf that its hash
/// leads to.
const HASH_ORDERED_MAX: usize = 4096;

/// A name that comes or goes: directory, name, what it names from now on.
pub(crate) type Change = (InodeNo, Box<[u8]>, Option<InodeNo>);

struct Entry {
    dir: InodeNo,
    name: Box<[u8]>,
    names: Option<InodeNo>,
    used: bool,
}

/// Names by their hash; of two with the same hash the later one stands. Which ones leave is
/// decided by second chance, as for inodes.
#[derive(Default)]
struct NameShard {
    entries: FxHashMap<u64, Entry>,
    /// The keys of `entries`, in the order in which they may go.
    queue: VecDeque<u64>,
}

/// Names by directory; `None`: the directory has no such name.
pub(crate) struct NameCache {
    shards: [Mutex<NameShard>; SHARDS],
    shard_max: usize,
    changes: AtomicU64,
    /// Directories that ignore case in which every name stands where its hash leads.
    hash_ordered: Mutex<FxHashSet<InodeNo>>,
}

impl NameCache {
    /// A cache for about so many names.
    pub fn new(names_max: usize) -> Self {
        NameCache {
            shards: Default::default(),
            shard_max: (names_max / SHARDS).max(4),
            changes: AtomicU64::new(0),
            hash_ordered: Mutex::default(),
        }
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, NameShard> {
        // The upper bits: the table inside goes by the others.
        let shard = &self.shards[(key >> 32) as usize % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A moment from which on [`unchanged_since`](Self::unchanged_since) can be asked; `None`
    /// while names change.
    pub fn moment(&self) -> Option<u64> {
        let now = self.changes.load(Ordering::SeqCst);
        now.is_multiple_of(2).then_some(now)
    }

    /// Whether no transaction has changed names since then.
    pub fn unchanged_since(&self, moment: u64) -> bool {
        self.changes.load(Ordering::SeqCst) == moment
    }

    /// What is cached of a name: nothing, that it is absent, or its inode.
    pub fn get(&self, dir: InodeNo, name: &[u8]) -> Option<Option<InodeNo>> {
        let key = key(dir, name);
        let mut shard = self.shard(key);
        let entry = shard.entries.get_mut(&key)?;
        if entry.dir != dir || *entry.name != *name {
            return None;
        }
        entry.used = true;
        Some(entry.names)
    }

    /// Learns what a name names. The caller holds the metadata lock and has just looked.
    pub fn learn(&self, dir: InodeNo, name: Box<[u8]>, names: Option<InodeNo>) {
        let key = key(dir, &name);
        let mut shard = self.shard(key);
        let entry = Entry { dir, name, names, used: false };
        if shard.entries.insert(key, entry).is_none() {
            shard.queue.push_back(key);
        }
        shard.shrink(self.shard_max);
    }

    /// Enters what a transaction has changed. The caller holds the metadata lock.
    pub fn change(&self, changes: Vec<Change>) {
        if changes.is_empty() {
            return;
        }
        self.changes.fetch_add(1, Ordering::SeqCst);
        for (dir, name, names) in changes {
            self.learn(dir, name, names);
        }
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    fn hash_ordered(&self) -> MutexGuard<'_, FxHashSet<InodeNo>> {
        self.hash_ordered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all names of a directory stand where their hashes lead.
    pub fn is_hash_ordered(&self, dir: InodeNo) -> bool {
        self.hash_ordered().contains(&dir)
    }

    /// Learns that they do. It holds for the directory that has this number next, too. The caller
    /// holds the metadata lock and has just looked.
    pub fn set_hash_ordered(&self, dir: InodeNo) {
        let mut dirs = self.hash_ordered();
        if dirs.len() >= HASH_ORDERED_MAX {
            dirs.clear();
        }
        dirs.insert(dir);
    }

    /// A path from the root to an inode, by the names that are in memory; `None` if they do not
    /// lead there. Looks at all of them.
    pub fn path_of(&self, inode: InodeNo) -> Option<Vec<u8>> {
        let mut above: FxHashMap<InodeNo, (InodeNo, Box<[u8]>)> = FxHashMap::default();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let found = shard.entries.values().filter_map(|e| Some((e.names?, e)));
            above.extend(found.map(|(names, e)| (names, (e.dir, e.name.clone()))));
        }
        let (mut at, mut names) = (inode, Vec::new());
        while at != InodeNo::ROOT {
            // Each is taken once, so that this ends even if they lead in a circle.
            let (dir, name) = above.remove(&at)?;
            names.push(name);
            at = dir;
        }
        names.reverse();
        Some(names.iter().flat_map(|name| [&b"/"[..], name].concat()).collect())
    }

    /// Names in memory.
    pub fn len(&self) -> usize {
        let len =
            |s: &Mutex<NameShard>| s.lock().unwrap_or_else(PoisonError::into_inner).entries.len();
        self.shards.iter().map(len).sum()
    }

    /// Forgets everything: the directories are others now. The caller holds the metadata lock.
    pub fn clear(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        for shard in &self.shards {
            *shard.lock().unwrap_or_else(PoisonError::into_inner) = NameShard::default();
        }
        self.hash_ordered().clear();
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

impl NameShard {
    fn shrink(&mut self, most: usize) {
        while self.entries.len() > most {
            let Some(oldest) = self.queue.pop_front() else { return };
            let Some(entry) = self.entries.get_mut(&oldest) else { continue };
            if std::mem::take(&mut entry.used) {
                self.queue.push_back(oldest);
            } else {
                self.entries.remove(&oldest);
            }
        }
    }
}

fn key(dir: InodeNo, name: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    (dir.0, name).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIR: InodeNo = InodeNo(12);

    #[test]
    fn what_is_asked_for_stays_and_the_number_is_bounded() {
        let cache = NameCache::new(64);
        cache.learn(DIR, (*b"kept").into(), Some(InodeNo(13)));
        for i in 0..10_000u32 {
            cache.learn(DIR, format!("name{i}").into_bytes().into(), None);
            assert_eq!(cache.get(DIR, b"kept"), Some(Some(InodeNo(13))));
        }
        assert!(cache.len() <= 64);
        assert_eq!(cache.get(InodeNo(14), b"kept"), None);
    }

    #[test]
    fn names_lead_to_a_path_where_they_are_known() {
        let cache = NameCache::new(64);
        cache.learn(InodeNo::ROOT, (*b"d").into(), Some(DIR));
        cache.learn(DIR, (*b"f").into(), Some(InodeNo(13)));
        cache.learn(InodeNo(14), (*b"g").into(), Some(InodeNo(15)));
        cache.learn(InodeNo(15), (*b"circle").into(), Some(InodeNo(14)));
        assert_eq!(cache.path_of(InodeNo(13)), Some(b"/d/f".to_vec()));
        assert_eq!(cache.path_of(InodeNo(15)), None);
        assert_eq!(cache.path_of(InodeNo(16)), None);
    }

    #[test]
    fn a_change_ends_every_moment_before_it() {
        let cache = NameCache::new(64);
        let before = cache.moment().unwrap();
        cache.learn(DIR, (*b"a").into(), None);
        assert!(cache.unchanged_since(before));
        cache.change(vec![(DIR, (*b"a").into(), Some(InodeNo(13)))]);
        assert!(!cache.unchanged_since(before));
        let then = cache.moment().unwrap();
        cache.clear();
        assert!(!cache.unchanged_since(then) && cache.len() == 0);
    }
}
