//! What may be said of a sample in one number: its median, and those percentiles that it is large
//! enough for; and which of two samples is greater ([`rank`]). One rule for all that Steadfast
//! prints and writes.
//!
//! *p50* is a percentile, which by nearest rank is one of the values. The *median* of runs, rounds
//! or seeds is of few values, and of an even number of them the mean of the two in the middle.

mod demerit;
pub mod load;
pub mod rank;

pub use demerit::demerit;

/// A percentile is given if at least so many of the values lie above it. With fewer it would be
/// the maximum by another name, or nearly so.
const ABOVE: u64 = 4;

/// A percentile above the median. The median may be given of any sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percentile {
    /// 90 % of the values are at most this.
    P90,
    /// 95 %.
    P95,
    /// 99 %.
    P99,
    /// 99.9 %.
    P99_9,
}

impl Percentile {
    /// All, from the lowest.
    pub const ALL: [Percentile; 4] =
        [Percentile::P90, Percentile::P95, Percentile::P99, Percentile::P99_9];

    /// Of how many values one is above it.
    const fn one_in(self) -> u64 {
        match self {
            Percentile::P90 => 10,
            Percentile::P95 => 20,
            Percentile::P99 => 100,
            Percentile::P99_9 => 1000,
        }
    }

    /// The share of the values that are at most this, 0 to 1.
    pub const fn share(self) -> f64 {
        match self {
            Percentile::P90 => 0.9,
            Percentile::P95 => 0.95,
            Percentile::P99 => 0.99,
            Percentile::P99_9 => 0.999,
        }
    }

    /// So many values it needs: 40, 80, 400, 4000.
    pub const fn needs(self) -> u64 {
        ABOVE * self.one_in()
    }

    /// Whether a sample of `n` values is large enough for it.
    pub const fn is_in(self, n: u64) -> bool {
        n >= self.needs()
    }
}

/// The value that a share of the sorted values (0 to 1) does not exceed, by nearest rank; `None`
/// without a value.
pub fn nearest_rank<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
}

/// The median: of an even number, the mean of the two in the middle. `None` without a value.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (lower, upper) = middle(&sorted)?;
    Some(f64::midpoint(lower, upper))
}

/// As [`median`] of whole numbers, rounded down.
pub fn median_of_whole(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let (lower, upper) = middle(&sorted)?;
    Some(u64::midpoint(lower, upper))
}

/// The two in the middle; of an odd number both are the same.
fn middle<T: Copy>(sorted: &[T]) -> Option<(T, T)> {
    let upper = *sorted.get(sorted.len() / 2)?;
    Some((sorted[(sorted.len() - 1) / 2], upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_four_values_above_it() {
        assert_eq!(Percentile::ALL.map(Percentile::needs), [40, 80, 400, 4000]);
        for percentile in Percentile::ALL {
            let needs = percentile.needs();
            assert!(percentile.is_in(needs) && !percentile.is_in(needs - 1), "{percentile:?}");
            let values: Vec<u64> = (1..=needs).collect();
            let value = nearest_rank(&values, percentile.share());
            assert_eq!(value, Some(needs - ABOVE), "{percentile:?}");
        }
    }

    #[test]
    fn a_rank_is_of_a_value() {
        assert_eq!(nearest_rank(&[1, 2, 3, 4], 0.0), Some(1));
        assert_eq!(nearest_rank(&[1, 2, 3, 4], 0.5), Some(2));
        assert_eq!(nearest_rank(&[1, 2, 3, 4], 1.0), Some(4));
        assert_eq!(nearest_rank::<u64>(&[], 0.5), None);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
        assert_eq!(median(&[10.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(median_of_whole(&[9, 1, 5]), Some(5));
        assert_eq!(median_of_whole(&[4, 1]), Some(2));
        assert_eq!(median_of_whole(&[u64::MAX, u64::MAX]), Some(u64::MAX));
        assert_eq!(median_of_whole(&[]), None);
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
