//! Bits of a group, one a cluster: search and change. Bit `i` is bit `i % 8` of byte `i / 8`; set
//! means in use.

/// A run of free bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeRange {
    /// First free bit.
    pub start: u32,
    /// How many.
    pub len: u32,
}

/// Whether bit `bit` is set.
pub fn is_set(map: &[u8], bit: u32) -> bool {
    map[bit as usize / 8] & (1 << (bit % 8)) != 0
}

/// Sets `[start, start + len)`. Returns how many were set already: not zero means corruption.
pub fn set(map: &mut [u8], start: u32, len: u32) -> u32 {
    change(map, start, len, true)
}

/// Clears `[start, start + len)`. Returns how many were clear already.
pub fn clear(map: &mut [u8], start: u32, len: u32) -> u32 {
    change(map, start, len, false)
}

fn change(map: &mut [u8], start: u32, len: u32, to: bool) -> u32 {
    let mut already = 0;
    let (mut bit, end) = (start, start + len);
    while bit < end {
        let byte = &mut map[bit as usize / 8];
        let take = (8 - bit % 8).min(end - bit);
        let mask = (((1u16 << take) - 1) << (bit % 8)) as u8;
        if to {
            already += (*byte & mask).count_ones();
            *byte |= mask;
        } else {
            already += (!*byte & mask).count_ones();
            *byte &= !mask;
        }
        bit += take;
    }
    already
}

/// The first bit at or after `from`, below `end`, that has the wanted value.
fn next(map: &[u8], from: u32, end: u32, wanted: bool) -> Option<u32> {
    let skip = if wanted { 0x00 } else { 0xff };
    let mut bit = from;
    while bit < end {
        if bit.is_multiple_of(8) {
            // Whole words, then whole bytes, that cannot hold the bit.
            let mut byte = bit as usize / 8;
            while byte + 8 <= end as usize / 8 && map[byte..byte + 8] == [skip; 8] {
                byte += 8;
            }
            while byte < end as usize / 8 && map[byte] == skip {
                byte += 1;
            }
            bit = byte as u32 * 8;
            if bit >= end {
                return None;
            }
        }
        if is_set(map, bit) == wanted {
            return Some(bit);
        }
        bit += 1;
    }
    None
}

/// The first clear bit in `[from, end)`.
pub fn next_free(map: &[u8], from: u32, end: u32) -> Option<u32> {
    next(map, from, end, false)
}

/// The free run that starts at or after `from`, cut at `end` and at `want` bits.
pub fn next_run(map: &[u8], from: u32, end: u32, want: u32) -> Option<FreeRange> {
    let start = next_free(map, from, end)?;
    let limit = end.min(start.saturating_add(want));
    let stop = next(map, start, limit, true).unwrap_or(limit);
    Some(FreeRange { start, len: stop - start })
}

/// The best run for `want` bits in `[0, bits)`: the free bits at `goal` if they suffice, else the
/// first run from `goal` on that suffices, else the first from the start, else the longest.
pub fn best_run(map: &[u8], bits: u32, goal: u32, want: u32) -> Option<FreeRange> {
    let mut best: Option<FreeRange> = None;
    for (mut from, end) in [(goal.min(bits), bits), (0, goal.min(bits))] {
        while let Some(run) = next_run(map, from, end, want) {
            if run.len >= want {
                return Some(run);
            }
            if best.is_none_or(|b| b.len < run.len) {
                best = Some(run);
            }
            from = run.start + run.len;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finds_the_best_run() {
        let mut map = vec![0u8; 16];
        set(&mut map, 0, 10);
        set(&mut map, 20, 30);
        set(&mut map, 60, 68);
        assert_eq!(best_run(&map, 128, 0, 5), Some(FreeRange { start: 10, len: 5 }));
        assert_eq!(best_run(&map, 128, 30, 5), Some(FreeRange { start: 50, len: 5 }));
        assert_eq!(best_run(&map, 128, 55, 10), Some(FreeRange { start: 10, len: 10 }));
        assert_eq!(best_run(&map, 128, 0, 50), Some(FreeRange { start: 10, len: 10 }));
        assert_eq!(best_run(&[0xff; 16], 128, 0, 1), None);
    }

    proptest! {
        #[test]
        fn runs_agree_with_bits(
            bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 24),
                                from in 0u32..200, end in 0u32..192, want in 1u32..100) {
            let model = (from..end).find(|b| !is_set(&bytes, *b));
            let run = next_run(&bytes, from, end, want);
            prop_assert_eq!(run.map(|r| r.start), model);
            if let Some(r) = run {
                let len = (r.start..end).take_while(|b| !is_set(&bytes, *b)).count() as u32;
                prop_assert_eq!(r.len, len.min(want));
            }
        }
    }
}
