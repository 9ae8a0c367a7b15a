//! The two checksums of JBD2, with the kernel's conventions (no final inversion).

/// CRC-32C continued from `seed` (kernel: `jbd2_chksum`). Sums start from `!0`.
pub(crate) fn crc32c(seed: u32, data: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, data)
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
    fn sums_continue() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i * 7) as u8).collect();
        for cut in [0, 1, 7, 8, 500, 999] {
            let (a, b) = data.split_at(cut);
            assert_eq!(crc32_be(crc32_be(!0, a), b), crc32_be(!0, &data));
            assert_eq!(crc32c(crc32c(!0, a), b), crc32c(!0, &data));
        }
    }
}
