//! Random numbers that are the same for the same seed.

/// A generator: SplitMix64 (Steele, Lea and Flood, 2014), which has no bad seeds.
#[derive(Debug, Clone)]
pub(super) struct SplitMix64(u64);

impl SplitMix64 {
    pub(super) fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`, which must not be 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Once in `n` times.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Bytes that show where and by which write they were written.
    pub(super) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let first = self.next();
        for (i, part) in bytes.chunks_mut(8).enumerate() {
            let word = first.wrapping_add((i as u64).wrapping_mul(0x0101_0101_0101_0103));
            part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
        }
        bytes
    }

    /// A range within `size`, small ones more often than large ones; empty if `size` is 0.
    pub(super) fn range(&mut self, size: usize) -> (usize, usize) {
        if size == 0 {
            return (0, 0);
        }
        let at = self.below(size);
        let max = [16, 512, 5000, 70_000][self.below(4)].min(size - at);
        (at, 1 + self.below(max.max(1)))
    }
}
