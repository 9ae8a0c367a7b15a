//! Random choices from a seed: which writes survive a power cut, which block a test picks.
//!
//! This is not the simulation's own sequence ([`random_u64`](crate::random_u64)): a choice from its
//! own seed can be repeated alone, without the run before it.

/// SplitMix64 (Steele, Lea, Flood 2014): one word of state, every seed is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// The sequence that belongs to `seed`. It never changes: kept results name their seeds.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`; 0 if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        // The bias of the multiplication is below n / 2^64.
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_stays_below_and_reaches_all() {
        let mut rng = Rng::new(1);
        let mut seen = [0; 5];
        for _ in 0..1000 {
            seen[rng.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|n| *n > 150), "{seen:?}");
        assert_eq!(rng.below(0), 0);
    }

    /// The published sequence of seed 1234567.
    #[test]
    fn the_sequence_of_a_seed_is_splitmix64() {
        let mut rng = Rng::new(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| rng.bits()), expected);
    }
}
