//! Blocks of attributes that were written lately, by their hash: for the next inode that has the
//! same attributes. Only a hint: who finds a block here looks at it before sharing it.

use std::collections::{BTreeMap, HashMap};

/// Blocks remembered; all are forgotten when there would be more.
const BLOCKS_MAX: usize = 4096;

/// As of the finished transactions.
#[derive(Debug, Default)]
pub(crate) struct XattrBlockCache {
    pub(crate) by_hash: HashMap<u32, u64>,
    hash_of: HashMap<u64, u32>,
}

/// What a transaction learns: a block's new hash, or that it is no block of attributes any more.
pub(crate) type Notes = BTreeMap<u64, Option<u32>>;

impl XattrBlockCache {
    /// Takes over what a finished transaction has learnt.
    pub fn apply(&mut self, notes: Notes) {
        for (block, hash) in notes {
            if let Some(old) = self.hash_of.remove(&block)
                && self.by_hash.get(&old) == Some(&block)
            {
                self.by_hash.remove(&old);
            }
            let Some(hash) = hash else { continue };
            if self.hash_of.len() >= BLOCKS_MAX {
                *self = XattrBlockCache::default();
            }
            self.hash_of.insert(block, hash);
            self.by_hash.insert(hash, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_one_hash_and_may_be_forgotten() {
        let mut known = XattrBlockCache::default();
        known.apply(Notes::from([(10, Some(1)), (11, Some(2))]));
        known.apply(Notes::from([(10, Some(3))]));
        assert_eq!((known.by_hash.get(&1), known.by_hash.get(&3)), (None, Some(&10)));
        known.apply(Notes::from([(11, None), (12, Some(3)), (10, None)]));
        assert_eq!(known.by_hash, HashMap::from([(3, 12)]));
    }
}
