//! How often as fast: over the rounds, and whether that says anything.

use std::cmp::Ordering;

use steadfast_statistics::load::{Load, not_ranked};
use steadfast_statistics::median;
use steadfast_statistics::rank::PairedTest;

/// How many times as fast the first was as another, round by round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    median: f64,
    least: f64,
    most: f64,
    /// What to say instead of the median.
    instead: Option<&'static str>,
}

impl Times {
    /// Of the times that both needed, round by round, with the load before the first; `None`
    /// without a round.
    pub fn of(ours: &[u64], theirs: &[u64], before: Option<Load>) -> Option<Times> {
        let speed = |nanos: &[u64]| -> Vec<f64> {
            nanos.iter().map(|nanos| 1.0 / (*nanos).max(1) as f64).collect()
        };
        let (ours, theirs) = (speed(ours), speed(theirs));
        let compared = PairedTest::of(&ours, &theirs)?;
        let each = || ours.iter().zip(&theirs).map(|(o, t)| o / t);
        Some(Times {
            median: compared.ratio,
            least: each().fold(f64::INFINITY, f64::min),
            most: each().fold(0.0, f64::max),
            instead: instead(&compared, before),
        })
    }

    /// The middle one.
    pub fn median(self) -> f64 {
        self.median
    }

    /// As [`text`](Self::text), in fewer characters.
    pub fn brief(self) -> String {
        let Times { median, least, most, instead } = self;
        match instead {
            Some(word) => format!("{word} ({least:.1}..{most:.1})"),
            None => format!("{median:.1} ({least:.1}..{most:.1})"),
        }
    }

    /// Median and range, also where the two are level.
    pub fn with_range(self) -> String {
        let Times { median, least, most, .. } = self;
        format!("{median:.2} ({least:.2}..{most:.2})")
    }

    /// As the table has it: median and range, or why there is no order of the two.
    pub fn text(self) -> String {
        let Times { median, least, most, instead } = self;
        match instead {
            Some(word) => format!("{word} ({least:.2} to {most:.2})"),
            None => format!("{median:.2} ({least:.2} to {most:.2})"),
        }
    }
}

/// What is said of two without an order.
pub(super) fn instead(compared: &PairedTest, before: Option<Load>) -> Option<&'static str> {
    match (not_ranked(before), compared.order()) {
        (Some(_), _) => Some("not ranked"),
        (None, Ordering::Equal) => Some("level"),
        (None, Ordering::Less | Ordering::Greater) => None,
    }
}

/// How much longer the first took than another, round by round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Differences {
    median: f64,
    least: f64,
    most: f64,
}

impl Differences {
    /// Of the nanoseconds that both needed, round by round; `None` without a round.
    pub fn of(ours: &[u64], theirs: &[u64]) -> Option<Differences> {
        let micros = |(o, t): (&u64, &u64)| (*o as f64 - *t as f64) / 1e3;
        let mut each: Vec<f64> = ours.iter().zip(theirs).map(micros).collect();
        each.sort_by(f64::total_cmp);
        let (least, most) = (*each.first()?, *each.last()?);
        Some(Differences { median: median(&each)?, least, most })
    }

    /// Microseconds: median and range; from a hundred on, whole ones.
    pub fn text(self) -> String {
        let Differences { median, least, most } = self;
        let places = usize::from(least.abs().max(most.abs()) < 100.0);
        format!("{median:.places$} ({least:.places$}..{most:.places$})")
    }
}

/// Which of several set-ups of a peer is the best in a row: the one with the least median.
pub(super) fn best(medians: &[u64]) -> Option<usize> {
    medians.iter().enumerate().min_by_key(|(_, nanos)| **nanos).map(|(i, _)| i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_order_says_so() {
        let at = |average| Some(Load { average, processors: 2 });
        let of = |theirs: &[u64], load| Times::of(&[100; 7], theirs, at(load)).unwrap();
        let text = |theirs: &[u64]| of(theirs, 0.3).text();
        assert_eq!(text(&[200, 150, 180, 170, 190, 160, 185]), "1.80 (1.50 to 2.00)");
        assert_eq!(text(&[90, 150, 110, 95, 85, 120, 90]), "level (0.85 to 1.50)");
        // All agree, but there are too few; or the difference is too small.
        assert_eq!(text(&[200, 150, 180, 170, 190]), "level (1.50 to 2.00)");
        assert_eq!(text(&[102, 103, 104, 102, 103, 104, 103]), "level (1.02 to 1.04)");
        assert_eq!(text(&[30, 50, 40, 35, 45, 38, 42]), "0.40 (0.30 to 0.50)");
        let noisy = of(&[200, 150, 180, 170, 190, 160, 185], 8.61);
        assert_eq!(noisy.text(), "not ranked (1.50 to 2.00)");
        assert_eq!(noisy.brief(), "not ranked (1.5..2.0)");
        assert_eq!(format!("{:.3}", noisy.median()), "1.800");
        assert_eq!(noisy.with_range(), "1.80 (1.50..2.00)");
        assert_eq!(Times::of(&[], &[1], None), None);
    }

    #[test]
    fn what_is_added_in_microseconds() {
        let text = Differences::of(&[3000, 2500, 900], &[1000, 1000, 1000]).unwrap().text();
        assert_eq!(text, "1.5 (-0.1..2.0)");
        let text = Differences::of(&[3000, 101_600], &[1000, 1000]).unwrap().text();
        assert_eq!(text, "51 (2..101)");
        assert_eq!(Differences::of(&[], &[]), None);
    }

    #[test]
    fn the_best_set_up_has_the_least_time() {
        assert_eq!(best(&[30, 10, 20]), Some(1));
        assert_eq!(best(&[]), None);
    }
}
