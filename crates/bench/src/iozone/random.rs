//! The order of the random tests: every record once, shuffled, the same for all children.
//!
//! IOzone seeds a 64-bit Mersenne Twister (Matsumoto and Nishimura, MT19937-64) with four
//! constants and exchanges record after record with a randomly chosen one. The same generator
//! with the same constants makes our order IOzone's order.

use rand_mt::Mt64;

/// IOzone's constants, which are also those of the authors' reference output.
const KEY: [u64; 4] = [0x12345, 0x23456, 0x34567, 0x45678];

/// The numbers 0 to `records` - 1 in IOzone's order.
pub(crate) fn shuffled(records: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..records).collect();
    let mut twister = Mt64::new_with_key(KEY);
    for i in 0..order.len() {
        let other = (twister.next_u64() % records) as usize;
        order.swap(i, other);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the authors' published output (mt19937-64.out.txt).
    #[test]
    fn the_generator_is_mt19937_64() {
        let mut t = Mt64::new_with_key(KEY);
        let first: Vec<u64> = (0..5).map(|_| t.next_u64()).collect();
        assert_eq!(
            first,
            [
                7_266_447_313_870_364_031,
                4_946_485_549_665_804_864,
                16_945_909_448_695_747_420,
                16_394_063_075_524_226_720,
                4_873_882_236_456_199_058
            ]
        );
    }

    #[test]
    fn every_record_once_and_always_the_same_order() {
        for n in [1, 2, 64, 1000] {
            let order = shuffled(n);
            assert_eq!(order, shuffled(n));
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..n).collect::<Vec<_>>());
        }
        assert_ne!(shuffled(64), (0..64).collect::<Vec<_>>());
    }
}
