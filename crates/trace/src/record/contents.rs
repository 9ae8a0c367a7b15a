//! What of written bytes is kept: how many are zeros, and how far compression would get.

use std::sync::OnceLock;

/// Of a write so many bytes are looked at, spread over it.
const SAMPLE: usize = 256;

/// The share of zeros, and what a code for single bytes would save (their entropy), both in %.
/// (Compression that knows repetitions saves more.)
pub(super) fn shares(data: &[u8]) -> (u8, u8) {
    if data.is_empty() {
        return (0, 0);
    }
    let step = data.len().div_ceil(SAMPLE);
    let mut counts = [0u16; 256];
    data.iter().step_by(step).for_each(|byte| counts[usize::from(*byte)] += 1);
    let all = data.len().div_ceil(step);
    let logs = LOGS.get_or_init(|| {
        let mut logs = [0.0; SAMPLE + 1];
        (1..=SAMPLE).for_each(|n| logs[n] = n as f64 * (n as f64).log2());
        logs
    });
    // OK to index in both: no more than `SAMPLE` were counted.
    let sum: f64 = counts.iter().map(|count| logs[usize::from(*count)]).sum();
    let bits = (logs[all] - sum) / all as f64;
    let zeros = f64::from(counts[0]) / all as f64;
    // OK to cast: both are from 0 to 100.
    ((zeros * 100.0) as u8, ((1.0 - bits / 8.0).max(0.0) * 100.0) as u8)
}

/// n log n: what the entropy of so few is made of.
static LOGS: OnceLock<[f64; SAMPLE + 1]> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_and_text_are_told_from_noise() {
        assert_eq!(shares(&[]), (0, 0));
        assert_eq!(shares(&[0; 10000]), (100, 100));
        let all: Vec<u8> = (0..=255).collect();
        assert!(shares(&all).1 < 2, "{:?}", shares(&all));
        let (zeros, saves) = shares(&b"abcdefgh".repeat(32));
        assert_eq!((zeros, saves), (0, 62));
    }
}
