//! Which of two or more is greater, of figures that were measured by turns: one rule for all that
//! Steadfast prints.
//!
//! Whether ranges overlap depends on how many rounds there are: two ranges of three values miss
//! each other in one case of ten without any difference. So the rule is a test at a fixed level:
//!
//! * **Wilcoxon's signed-rank test** (Biometrics Bulletin 1, 1945), two-sided, of the logarithms of
//!   the ratios, round by round. It takes no distribution for granted, only that what was measured
//!   in one round is as likely one way round as the other if there is no difference. What meets a
//!   whole round (another program, a warm processor) meets both sides, and goes out of the ratio:
//!   that is why the test is of pairs. The distribution is computed exactly, ties included.
//! * **The level** is 5 % for all that is compared in one row together: the single comparisons of
//!   more than two follow Holm (Scandinavian Journal of Statistics 6, 1979). So at least 6 rounds
//!   are needed for two, and [`rounds_needed`] says how many for more.
//! * **The effect**: the median ratio is at least 5 % from one. What is less has no use for a
//!   reader, and a build or a placement in memory moves as much.

use std::cmp::Ordering;

use crate::median;

/// How often something is called different that is not, at the most.
const LEVEL: f64 = 0.05;

/// What differs by less is level.
const EFFECT: f64 = 0.05;

/// Of more rounds the first so many decide: the time that a test takes grows with their cube.
const ROUNDS_MAX: usize = 200;

/// Two sides, compared round by round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedTest {
    /// The median of the first over the second.
    pub ratio: f64,
    /// Rounds that both have.
    pub rounds: usize,
    /// How often chance alone gives what is as far from no difference.
    pub p: f64,
}

impl PairedTest {
    /// Of the figures of the same rounds; `None` without a round. Figures that are not above zero
    /// do not count.
    pub fn of(first: &[f64], second: &[f64]) -> Option<PairedTest> {
        let both = first.iter().zip(second).filter(|(a, b)| **a > 0.0 && **b > 0.0);
        let ratios: Vec<f64> =
            both.map(|(a, b)| a / b).filter(|r| r.is_finite() && *r > 0.0).collect();
        let logs: Vec<f64> = ratios.iter().take(ROUNDS_MAX).map(|r| r.ln()).collect();
        Some(PairedTest { ratio: median(&ratios)?, rounds: ratios.len(), p: signed_rank(&logs) })
    }

    /// Which of the two is greater; [`Ordering::Equal`]: level, or it cannot be said.
    pub fn order(&self) -> Ordering {
        self.order_at(LEVEL)
    }

    fn order_at(&self, level: f64) -> Ordering {
        if self.p > level || (self.ratio.max(1.0 / self.ratio)) < 1.0 + EFFECT {
            return Ordering::Equal;
        }
        self.ratio.total_cmp(&1.0)
    }
}

/// The fewest rounds that allow an order of so many: with fewer, rounds that all agree could be
/// chance.
pub fn rounds_needed(sides: usize) -> usize {
    let pairs = sides.saturating_mul(sides.saturating_sub(1)) as f64 / 2.0;
    // Both directions of n rounds that agree: 2 / 2^n.
    (2.0 * pairs.max(1.0) / LEVEL).log2().ceil() as usize
}

/// The best and the worst place that each of several sides may have, the greatest first. Each
/// has its figures round by round; sides whose order is not known share their places.
pub fn places(sides: &[Vec<f64>]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize, PairedTest)> = Vec::new();
    for a in 0..sides.len() {
        for b in a + 1..sides.len() {
            pairs.extend(PairedTest::of(&sides[a], &sides[b]).map(|c| (a, b, c)));
        }
    }
    pairs.sort_by(|(.., x), (.., y)| x.p.total_cmp(&y.p));
    let mut places = vec![(1, sides.len()); sides.len()];
    for (done, (a, b, compared)) in pairs.iter().enumerate() {
        let level = LEVEL / (pairs.len() - done) as f64;
        if compared.p > level {
            // Holm: what follows is not looked at.
            break;
        }
        let (ahead, behind) = match compared.order_at(level) {
            Ordering::Greater => (*a, *b),
            Ordering::Less => (*b, *a),
            Ordering::Equal => continue,
        };
        places[ahead].1 -= 1;
        places[behind].0 += 1;
    }
    places
}

/// The two-sided p of Wilcoxon's signed-rank test; values of zero are left out.
fn signed_rank(values: &[f64]) -> f64 {
    let mut sizes: Vec<(f64, bool)> =
        values.iter().filter(|v| **v != 0.0).map(|v| (v.abs(), *v > 0.0)).collect();
    sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the rank, so that the mean of an even number of tied ones is whole.
    let mut ranks = vec![0usize; sizes.len()];
    let mut from = 0;
    while from < sizes.len() {
        let to = from + sizes[from..].iter().take_while(|(size, _)| *size == sizes[from].0).count();
        ranks[from..to].fill(from + 1 + to);
        from = to;
    }
    let all: usize = ranks.iter().sum();
    let plus: usize = ranks.iter().zip(&sizes).filter(|(_, (_, up))| *up).map(|(r, _)| r).sum();
    // How likely each sum of those above zero is, if each is so or not by the toss of a coin.
    let mut likely = vec![0.0; all + 1];
    likely[0] = 1.0;
    let mut reached = 0;
    for rank in &ranks {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = sum.checked_sub(*rank).map_or(0.0, |before| likely[before]);
            likely[sum] = (likely[sum] + with) / 2.0;
        }
    }
    let far = plus.abs_diff(all - plus);
    let as_far = likely.iter().enumerate().filter(|(sum, _)| sum.abs_diff(all - sum) >= far);
    as_far.map(|(_, p)| p).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform in 0 to 1, always the same (Numerical Recipes' ranqd1 is too short: splitmix64).
    struct Rng(u64);

    impl Rng {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Speeds of a round of so many sides without a difference: what is slow in a round is so
        /// for all, and now and then one is slow for itself.
        fn round(&mut self, sides: usize, kind: usize) -> Vec<f64> {
            let common = 50.0 + 100.0 * self.next();
            let mut one = || match kind {
                0 => common * (0.9 + 0.2 * self.next()),
                1 => common / (1.0 - 0.3 * self.next().ln()),
                // Few values: many are equal.
                _ => (10.0 * self.next()).floor() + 1.0,
            };
            (0..sides).map(|_| one()).collect()
        }

        /// Of each side its rounds.
        fn rounds(&mut self, sides: usize, n: usize, kind: usize) -> Vec<Vec<f64>> {
            let mut all = vec![Vec::new(); sides];
            for _ in 0..n {
                for (side, speed) in all.iter_mut().zip(self.round(sides, kind)) {
                    side.push(speed);
                }
            }
            all
        }
    }

    const TRIALS: usize = 4000;

    /// Three standard deviations above the level: once in a thousand a right rule is above.
    fn bound() -> f64 {
        LEVEL + 3.0 * (LEVEL * (1.0 - LEVEL) / TRIALS as f64).sqrt()
    }

    #[test]
    fn without_a_difference_an_order_is_as_rare_as_the_level_says() {
        let mut rng = Rng(1);
        for n in [5, 6, 7, 10, 40] {
            for kind in 0..3 {
                let (mut rejected, mut ordered) = (0, 0);
                for _ in 0..TRIALS {
                    let sides = rng.rounds(2, n, kind);
                    let compared = PairedTest::of(&sides[0], &sides[1]).unwrap();
                    rejected += usize::from(compared.p <= LEVEL);
                    ordered += usize::from(compared.order() != Ordering::Equal);
                }
                let share = rejected as f64 / TRIALS as f64;
                assert!(share <= bound() && ordered <= rejected, "{n}, {kind}: {share}");
                // The test can reject: from six rounds on it does.
                assert_eq!(rejected > 0, n >= rounds_needed(2), "{n}, {kind}: {rejected}");
            }
        }
    }

    /// What was done before: an order if ranges do not overlap. Why it is no rule.
    #[test]
    fn ranges_that_miss_each_other_depend_on_the_number_of_rounds() {
        let mut rng = Rng(2);
        let mut share = |n| {
            let misses = (0..TRIALS).filter(|_| {
                let sides = rng.rounds(2, n, 2);
                let [a, b] = [0, 1].map(|i| {
                    let least = sides[i].iter().copied().fold(f64::INFINITY, f64::min);
                    (least, sides[i].iter().copied().fold(0.0, f64::max))
                });
                a.0 > b.1 || b.0 > a.1
            });
            misses.count() as f64 / TRIALS as f64
        };
        assert!(share(2) > 0.2 && share(3) > 0.05 && share(10) < 0.001);
    }

    #[test]
    fn without_a_difference_places_are_as_rare_for_all_pairs_together() {
        let mut rng = Rng(3);
        for n in [5, 10, 40] {
            let trials = 400;
            let ordered = (0..trials).filter(|_| {
                let sides = rng.rounds(9, n, 1);
                places(&sides).iter().any(|place| *place != (1, 9))
            });
            let share = ordered.count() as f64 / f64::from(trials);
            let above = 3.0 * (LEVEL * (1.0 - LEVEL) / f64::from(trials)).sqrt();
            assert!(share <= LEVEL + above, "{n}: {share}");
        }
    }

    #[test]
    fn a_difference_is_found() {
        let mut rng = Rng(4);
        for (n, found_at_least) in [(10, 0.95), (40, 0.999)] {
            let found = (0..TRIALS).filter(|_| {
                let mut sides = rng.rounds(2, n, 0);
                sides[1].iter_mut().for_each(|speed| *speed *= 1.15);
                PairedTest::of(&sides[0], &sides[1]).unwrap().order() == Ordering::Less
            });
            let share = found.count() as f64 / TRIALS as f64;
            assert!(share >= found_at_least, "{n}: {share}");
        }
        let mut sides = rng.rounds(9, 12, 0);
        sides[4].iter_mut().for_each(|speed| *speed *= 2.0);
        assert_eq!(rounds_needed(9), 11);
        assert_eq!(places(&sides)[4], (1, 1));
        assert!(places(&sides).iter().enumerate().all(|(i, p)| i == 4 || p.0 == 2));
        // Of too few rounds nothing is said, however large it is.
        let few: Vec<Vec<f64>> = sides.iter().map(|side| side[..10].to_vec()).collect();
        assert!(places(&few).iter().all(|place| *place == (1, 9)));
    }

    #[test]
    fn a_difference_that_is_too_small_is_none() {
        let first = [100.0; 40];
        let of = |factor: f64| PairedTest::of(&first.map(|v| v * factor), &first).unwrap();
        assert!(of(1.04).p < 1e-9 && of(1.04).order() == Ordering::Equal);
        assert_eq!((of(1.06).order(), of(0.94).order()), (Ordering::Greater, Ordering::Less));
        assert_eq!((of(1.0).p, of(1.0).order()), (1.0, Ordering::Equal));
    }

    /// Against the tables of the test (two-sided) and sums by hand.
    #[test]
    fn the_distribution_is_exact() {
        let close = |values: &[f64], p: f64| {
            let got = signed_rank(values);
            assert!((got - p).abs() < 1e-12, "{values:?}: {got}");
        };
        close(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2.0 / 64.0);
        close(&[-1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 4.0 / 64.0);
        close(&[1.0, -2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 6.0 / 256.0);
        // Two are tied: ranks 1.5, 1.5, 3.
        close(&[1.0, -1.0, 2.0], 6.0 / 8.0);
        close(&[0.0, 0.0], 1.0);
        close(&[], 1.0);
    }

    #[test]
    fn what_is_not_above_zero_does_not_count() {
        let compared = PairedTest::of(&[1.0, 0.0, f64::NAN, 2.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((compared.rounds, compared.ratio), (1, 1.0));
        assert_eq!(PairedTest::of(&[0.0], &[1.0]), None);
    }
}
