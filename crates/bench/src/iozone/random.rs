//! The order of the random tests: every record once, shuffled, the same for all children.
//!
//! IOzone seeds a 64-bit Mersenne Twister (Matsumoto and Nishimura, MT19937-64) with four
//! constants and exchanges record after record with a randomly chosen one. The same generator
//! with the same constants makes our order IOzone's order.

/// The generator.
struct Twister {
    state: [u64; N],
    next: usize,
}

const N: usize = 312;
const M: usize = 156;
/// IOzone's constants, which are also those of the authors' reference output.
const KEY: [u64; 4] = [0x12345, 0x23456, 0x34567, 0x45678];

impl Twister {
    fn from_seed(seed: u64) -> Twister {
        let mut state = [0; N];
        state[0] = seed;
        for i in 1..N {
            let previous: u64 = state[i - 1];
            state[i] = (previous ^ (previous >> 62))
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(i as u64);
        }
        Twister { state, next: N }
    }

    /// The authors' init_by_array64.
    fn from_key(key: &[u64]) -> Twister {
        let mut twister = Twister::from_seed(19_650_218);
        let s = &mut twister.state;
        let (mut i, mut j) = (1, 0);
        for _ in 0..N.max(key.len()) {
            let mixed = (s[i - 1] ^ (s[i - 1] >> 62)).wrapping_mul(3_935_559_000_370_003_845);
            s[i] = (s[i] ^ mixed).wrapping_add(key[j]).wrapping_add(j as u64);
            (i, j) = (i + 1, (j + 1) % key.len());
            if i == N {
                s[0] = s[N - 1];
                i = 1;
            }
        }
        for _ in 0..N - 1 {
            let mixed = (s[i - 1] ^ (s[i - 1] >> 62)).wrapping_mul(2_862_933_555_777_941_757);
            s[i] = (s[i] ^ mixed).wrapping_sub(i as u64);
            i += 1;
            if i == N {
                s[0] = s[N - 1];
                i = 1;
            }
        }
        s[0] = 1 << 63;
        twister
    }

    fn refill(&mut self) {
        const UPPER: u64 = 0xffff_ffff_8000_0000;
        let s = &mut self.state;
        for i in 0..N {
            let x = (s[i] & UPPER) | (s[(i + 1) % N] & !UPPER);
            let odd = if x & 1 == 1 { 0xb502_6f5a_a966_19e9 } else { 0 };
            s[i] = s[(i + M) % N] ^ (x >> 1) ^ odd;
        }
        self.next = 0;
    }

    fn next(&mut self) -> u64 {
        if self.next == N {
            self.refill();
        }
        let mut x = self.state[self.next];
        self.next += 1;
        x ^= (x >> 29) & 0x5555_5555_5555_5555;
        x ^= (x << 17) & 0x71d6_7fff_eda6_0000;
        x ^= (x << 37) & 0xfff7_eee0_0000_0000;
        x ^ (x >> 43)
    }
}

/// The numbers 0 to `records` - 1 in IOzone's order.
pub(crate) fn shuffled(records: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..records).collect();
    let mut twister = Twister::from_key(&KEY);
    for i in 0..order.len() {
        let other = (twister.next() % records) as usize;
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
        let mut t = Twister::from_key(&KEY);
        let first: Vec<u64> = (0..5).map(|_| t.next()).collect();
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
