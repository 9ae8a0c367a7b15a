//! The checksum of labels and info blocks on memory.

/// Fletcher's checksum of 64 bits over little-endian words of 32 (kernel: `nd_fletcher64`). The
/// eight bytes at `without`, where the sum itself is kept, count as zeros. What is left of less
/// than a word does not count.
pub(crate) fn fletcher64(bytes: &[u8], without: usize) -> u64 {
    let kept = without..without.saturating_add(8);
    let mut low = 0u32;
    let mut high = 0u64;
    for (at, word) in bytes.chunks_exact(4).enumerate() {
        let word = match kept.contains(&(at * 4)) {
            true => 0,
            false => u32::from_le_bytes([word[0], word[1], word[2], word[3]]),
        };
        low = low.wrapping_add(word);
        high = high.wrapping_add(u64::from(low));
    }
    high << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_published_one() {
        // low: 1, 3, 6; high: 1 + 3 + 6.
        let words = [1u32, 2, 3].map(u32::to_le_bytes).concat();
        assert_eq!(fletcher64(&words, usize::MAX), 10 << 32 | 6);
        let words = [1u32, 2, 9, 9].map(u32::to_le_bytes).concat();
        assert_eq!(fletcher64(&words, 8), 10 << 32 | 3);
    }
}
