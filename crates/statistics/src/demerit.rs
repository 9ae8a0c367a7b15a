//! How far two distributions of times are from each other.

/// Quantiles that are compared, as many as DiskSim's `rms` takes.
const QUANTILES: usize = 10_000;

/// The demerit figure of Ruemmler and Wilkes ("An introduction to disk drive modeling", IEEE
/// Computer, March 1994): the root mean square of the horizontal distance between the two
/// distribution curves, in the unit of the values. Zero if both have the same distribution, however
/// many values each has; the order of the values does not count. `None` without a value on a side.
pub fn demerit(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (a, b) = (sorted(a), sorted(b));
    let squares = (0..QUANTILES).map(|i| {
        let share = (i as f64 + 0.5) / QUANTILES as f64;
        (quantile(&a, share) - quantile(&b, share)).powi(2)
    });
    Some((squares.sum::<f64>() / QUANTILES as f64).sqrt())
}

/// The value at a share of the curve: linear between the sorted values, each of which stands in the
/// middle of its step.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len() - 1;
    let at = (share * sorted.len() as f64 - 0.5).clamp(0.0, last as f64);
    let below = at as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_is_its_own_demerit() {
        let a: Vec<f64> = (0..1000).map(|n| f64::from(n) * 0.01).collect();
        let moved: Vec<f64> = a.iter().rev().map(|v| v + 0.3).collect();
        assert!((demerit(&a, &moved).unwrap() - 0.3).abs() < 1e-9);
        assert_eq!(demerit(&a, &a), Some(0.0));
        assert_eq!(demerit(&a, &[]), None);
    }

    #[test]
    fn samples_of_one_distribution_are_near_whatever_their_number() {
        let of = |n: u32| -> Vec<f64> {
            (0..n).map(|i| (f64::from(i) + 0.5) / f64::from(n) * 8.0).collect()
        };
        assert!(demerit(&of(200), &of(5000)).unwrap() < 0.01);
    }

    /// Half of the values are 2 larger: the root of 2 * 2 / 2.
    #[test]
    fn distances_count_by_their_squares() {
        let (a, b) = ([1.0; 100], [[1.0; 50], [3.0; 50]].concat());
        assert!((demerit(&a, &b).unwrap() - 2f64.sqrt()).abs() < 0.02);
    }
}
