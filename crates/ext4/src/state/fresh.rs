//! Blocks that no transaction point holds: data=transact may write to them in place.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use steadfast_ext4_format::RangeSet;

/// What data=transact keeps of a volume beside the metadata.
///
/// A block is *fresh* from its allocation until the transaction that allocated it ends: free in
/// the state that a power cut leaves, so that nothing is lost when it is overwritten, or given
/// back and taken again.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    blocks: Mutex<RangeSet>,
    /// The open group has run out of space, or has failed: nothing more is changed before it has
    /// gone back.
    spent: AtomicBool,
}

impl Fresh {
    fn lock(&self) -> MutexGuard<'_, RangeSet> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation has taken these blocks and freed those.
    pub fn change(&self, taken: &RangeSet, freed: &RangeSet) {
        let mut blocks = self.lock();
        blocks.extend(taken.iter());
        for (start, end) in freed.iter() {
            blocks.remove(start, end);
        }
    }

    /// The parts of `[start, end)` that are not fresh: a transaction point holds them.
    pub fn held(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let blocks = self.lock();
        let (mut held, mut at) = (Vec::new(), start);
        for (s, e) in blocks.within(start, end) {
            if at < s {
                held.push((at, s));
            }
            at = e;
        }
        if at < end {
            held.push((at, end));
        }
        held
    }

    /// Fresh blocks.
    pub fn len(&self) -> u64 {
        self.lock().len()
    }

    /// The transaction has ended, or was thrown away: nothing is fresh.
    pub fn clear(&self) {
        *self.lock() = RangeSet::new();
    }

    /// Whether the open group has run out of space, or has failed.
    pub fn is_spent(&self) -> bool {
        self.spent.load(Ordering::Acquire)
    }

    /// Notes whether the open group accepts no more changes.
    pub fn set_spent(&self, spent: bool) {
        self.spent.store(spent, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_fresh_is_held() {
        let fresh = Fresh::default();
        let set = |ranges: &[(u64, u64)]| {
            let mut set = RangeSet::new();
            for (s, e) in ranges {
                set.insert(*s, *e);
            }
            set
        };
        fresh.change(&set(&[(10, 20), (30, 40)]), &set(&[]));
        assert_eq!(fresh.held(5, 45), [(5, 10), (20, 30), (40, 45)]);
        assert_eq!(fresh.held(12, 18), []);
        fresh.change(&set(&[]), &set(&[(15, 32)]));
        assert_eq!(fresh.held(10, 40), [(15, 32)]);
        fresh.clear();
        assert_eq!(fresh.held(10, 40), [(10, 40)]);
    }
}
