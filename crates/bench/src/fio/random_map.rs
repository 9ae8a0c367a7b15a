//! Which blocks of a file were come to: a bit each, with summaries above, so that the next one that
//! was not is found in a few steps.

const BITS: usize = 64;

/// Blocks of a file.
pub(super) struct RandomMap {
    /// The first level has a bit a block; each other one a bit for each word of the level below,
    /// set if that word is all ones.
    levels: Vec<Vec<u64>>,
    blocks: u64,
    left: u64,
}

impl RandomMap {
    /// Of so many blocks, none of which was come to.
    pub(super) fn new(blocks: u64) -> RandomMap {
        let mut levels = Vec::new();
        let mut bits = blocks.max(1) as usize;
        loop {
            let words = bits.div_ceil(BITS);
            let mut level = vec![0u64; words];
            // What is behind the end counts as come to.
            let rest = bits % BITS;
            if rest > 0 {
                level[words - 1] = !0 << rest;
            }
            levels.push(level);
            if words == 1 {
                break;
            }
            bits = words;
        }
        RandomMap { levels, blocks, left: blocks }
    }

    /// Notes that a block was come to; whether it was not before.
    pub(super) fn take(&mut self, block: u64) -> bool {
        let mut at = block as usize;
        if block >= self.blocks || self.has(at) {
            return false;
        }
        self.left -= 1;
        for level in &mut self.levels {
            let word = &mut level[at / BITS];
            *word |= 1 << (at % BITS);
            if *word != !0 {
                break;
            }
            at /= BITS;
        }
        true
    }

    fn has(&self, block: usize) -> bool {
        self.levels[0][block / BITS] >> (block % BITS) & 1 == 1
    }

    /// The first block at or behind this one that was not come to, or else the first of all.
    pub(super) fn next(&self, from: u64) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.next_from(from as usize).or_else(|| self.next_from(0))
    }

    fn next_from(&self, from: usize) -> Option<u64> {
        let (mut level, mut at) = (0, from);
        // Up, until a word has a zero at or behind `at`.
        loop {
            let word = *self.levels.get(level)?.get(at / BITS)?;
            let free = !word & (!0 << (at % BITS));
            if free != 0 {
                at = at / BITS * BITS + free.trailing_zeros() as usize;
                break;
            }
            (level, at) = (level + 1, at / BITS + 1);
        }
        // Down again: each word that is not full has a zero.
        while level > 0 {
            level -= 1;
            at = at * BITS + (!self.levels[level][at]).trailing_zeros() as usize;
        }
        Some(at as u64)
    }

    /// How many blocks from this one on were not come to, at most `most`.
    pub(super) fn run(&self, from: u64, most: u64) -> u64 {
        let end = self.blocks.min(from.saturating_add(most));
        (from..end).take_while(|block| !self.has(*block as usize)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_as_a_list_of_flags(
            blocks in 1u64..10_000,
            asked in prop::collection::vec(0u64..12_000, 1..400),
        ) {
            let mut map = RandomMap::new(blocks);
            let mut flags = vec![false; blocks as usize];
            for block in asked {
                let from = block % blocks;
                let later = (from..blocks).chain(0..from).find(|b| !flags[*b as usize]);
                let expected = (from..blocks).find(|b| !flags[*b as usize])
                    .or_else(|| (0..blocks).find(|b| !flags[*b as usize]));
                prop_assert_eq!(map.next(from), expected);
                prop_assert!(later.is_some() == expected.is_some());
                let known = flags.get(block as usize).copied();
                prop_assert_eq!(map.take(block), known == Some(false));
                if let Some(flag) = flags.get_mut(block as usize) {
                    *flag = true;
                }
                prop_assert_eq!(map.left, flags.iter().filter(|f| !**f).count() as u64);
            }
        }
    }

    #[test]
    fn all_blocks_are_found_once() {
        let mut map = RandomMap::new(5000);
        let mut at = 77;
        for _ in 0..5000 {
            let block = map.next(at).unwrap();
            assert_eq!(map.run(block, 1), 1);
            assert!(map.take(block));
            at = (block * 7919 + 13) % 5000;
        }
        assert_eq!((map.next(0), map.left, map.run(0, 9)), (None, 0, 0));
    }
}
