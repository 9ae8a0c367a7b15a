//! The two checksums of JBD2, with the kernel's conventions (no final inversion).

use std::cell::{OnceCell, RefCell};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use steadfast_block::pattern;

use crate::Tid;
use crate::ondisk::layout::Layout;

/// CRC-32C continued from `seed` (kernel: `jbd2_chksum`). Sums start from `!0`.
pub(crate) fn crc32c(seed: u32, data: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, data)
}

thread_local! {
    /// The sums, from seed 0, of blocks whose memory lasts, by address and length.
    static INTERNED: RefCell<FxHashMap<(usize, usize), u32>> = RefCell::default();
}

/// Sums the images of one transaction. What a benchmark in virtual time writes again and again is
/// summed once: of a block from seed 0. The sum from another seed is that one, exclusive or the sum
/// of as many zeros from that seed, for a CRC is linear.
pub(crate) struct ImageSums {
    layout: Layout,
    tid: Tid,
    /// Of a block of zeros in this transaction.
    of_zeros: OnceCell<u32>,
}

impl ImageSums {
    pub(crate) fn new(layout: Layout, tid: Tid) -> Self {
        ImageSums { layout, tid, of_zeros: OnceCell::new() }
    }

    /// As [`Layout::image_checksum`]; 0 without checksums of blocks.
    pub(crate) fn of(&self, image: &Bytes) -> u32 {
        if !self.layout.has_block_checksums() {
            return 0;
        }
        let sum = |block: &[u8]| self.layout.image_checksum(self.tid.0, block);
        if image.len() == self.layout.block_size && pattern::is_interned(image) {
            let of_zeros = self.of_zeros.get_or_init(|| sum(&vec![0; image.len()]));
            return from_zero(image) ^ of_zeros;
        }
        sum(image)
    }
}

/// The sum from seed 0 of lasting memory: made once.
fn from_zero(block: &Bytes) -> u32 {
    let place = (block.as_ptr().addr(), block.len());
    INTERNED.with_borrow_mut(|sums| *sums.entry(place).or_insert_with(|| crc32c(0, block)))
}

/// CRC-32 of IEEE 802.3, most significant bit first, continued from `seed` (kernel:
/// `crc32_be`): the sum of checksum v1. Sums start from `!0`.
pub(crate) fn crc32_be(seed: u32, data: &[u8]) -> u32 {
    let (words, rest) = data.as_chunks::<8>();
    let crc = words.iter().fold(seed, |crc, w| {
        let hi = crc ^ u32::from_be_bytes([w[0], w[1], w[2], w[3]]);
        let [a, b, c, d] = hi.to_be_bytes().map(usize::from);
        let [e, f, g, h] = [w[4], w[5], w[6], w[7]].map(usize::from);
        TABLES[7][a]
            ^ TABLES[6][b]
            ^ TABLES[5][c]
            ^ TABLES[4][d]
            ^ TABLES[3][e]
            ^ TABLES[2][f]
            ^ TABLES[1][g]
            ^ TABLES[0][h]
    });
    rest.iter().fold(crc, |crc, b| (crc << 8) ^ TABLES[0][usize::from(crc.to_be_bytes()[0] ^ b)])
}

const POLYNOMIAL: u32 = 0x04c1_1db7;

/// `TABLES[n][b]`: what byte `b` becomes after it and `n` more zero bytes have been shifted in.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut t = [[0u32; 256]; 8];
    let mut b = 0;
    while b < 256 {
        let mut crc = (b as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000_0000 != 0 { (crc << 1) ^ POLYNOMIAL } else { crc << 1 };
            bit += 1;
        }
        t[0][b] = crc;
        b += 1;
    }
    let mut n = 1;
    while n < 8 {
        let mut b = 0;
        while b < 256 {
            let before = t[n - 1][b];
            t[n][b] = (before << 8) ^ t[0][(before >> 24) as usize];
            b += 1;
        }
        n += 1;
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_values() {
        // "123456789": CRC-32C is e3069283, CRC-32/BZIP2 (this bit order) fc891918, both inverted.
        assert_eq!(!crc32c(!0, b"123456789"), 0xe306_9283);
        assert_eq!(!crc32_be(!0, b"123456789"), 0xfc89_1918);
    }

    #[test]
    fn images_of_lasting_memory_have_the_same_sums() {
        use crate::Checksums;
        let run = pattern::interned(4711, 0, 16384);
        for (block_size, checksums) in [(4096, Checksums::V3), (1024, Checksums::V2)] {
            let layout = Layout { block_size, checksums, wide: true, async_commit: false, seed: 5 };
            for tid in [Tid(1), Tid(77)] {
                let sums = ImageSums::new(layout, tid);
                for at in (0..run.len()).step_by(block_size) {
                    let image = run.slice(at..at + block_size);
                    let want = layout.image_checksum(tid.0, &image);
                    assert_eq!(sums.of(&image), want, "{at}");
                    assert_eq!(sums.of(&Bytes::copy_from_slice(&image)), want, "{at}");
                }
            }
        }
    }

    #[test]
    fn sums_continue() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i * 7) as u8).collect();
        for cut in [0, 1, 7, 8, 500, 999] {
            let (a, b) = data.split_at(cut);
            assert_eq!(crc32_be(crc32_be(!0, a), b), crc32_be(!0, &data));
            assert_eq!(crc32c(crc32c(!0, a), b), crc32c(!0, &data));
        }
    }
}
