//! What of written bytes is kept: how many are zeros, and how far compression would get.

/// Of a write so many bytes are looked at, spread over it.
const SAMPLE: usize = 4096;

/// The share of zeros, and what a code for single bytes would save (their entropy), both in %.
/// (Compression that knows repetitions saves more.)
pub(super) fn shares(data: &[u8]) -> (u8, u8) {
    if data.is_empty() {
        return (0, 0);
    }
    let step = data.len().div_ceil(SAMPLE);
    let mut counts = [0u32; 256];
    data.iter().step_by(step).for_each(|byte| counts[usize::from(*byte)] += 1);
    let all: u32 = counts.iter().sum();
    let share = |count: u32| f64::from(count) / f64::from(all);
    let bits: f64 = counts.iter().filter(|n| **n > 0).map(|n| -share(*n) * share(*n).log2()).sum();
    // OK to cast: both are from 0 to 100.
    ((share(counts[0]) * 100.0) as u8, ((1.0 - bits / 8.0).max(0.0) * 100.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_text_are_told_from_noise() {
        assert_eq!(shares(&[]), (0, 0));
        assert_eq!(shares(&[0; 10000]), (100, 100));
        let all: Vec<u8> = (0..=255).cycle().take(8192 + 256).collect();
        assert!(shares(&all).1 < 2, "{:?}", shares(&all));
        let (zeros, saves) = shares(&b"abcdefgh".repeat(512));
        assert_eq!((zeros, saves), (0, 62));
    }
}
