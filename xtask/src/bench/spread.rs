//! How often as fast: over the rounds, and whether that says anything.

use steadfast_statistics::median;

/// How many times as fast the first was as another, round by round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Times {
    median: f64,
    least: f64,
    most: f64,
}

impl Times {
    /// Of the times that both needed, round by round; `None` without a round.
    pub fn of(ours: &[u64], theirs: &[u64]) -> Option<Times> {
        let mut each: Vec<f64> =
            ours.iter().zip(theirs).map(|(o, t)| *t as f64 / (*o).max(1) as f64).collect();
        each.sort_by(f64::total_cmp);
        let (least, most) = (*each.first()?, *each.last()?);
        Some(Times { median: median(&each)?, least, most })
    }

    /// The rounds do not agree who is faster.
    fn is_level(self) -> bool {
        self.least <= 1.0 && self.most >= 1.0
    }

    /// The middle one.
    pub fn median(self) -> f64 {
        self.median
    }

    /// As [`text`](Self::text), in fewer characters.
    pub fn brief(self) -> String {
        let Times { median, least, most } = self;
        match self.is_level() {
            true => format!("level ({least:.1}..{most:.1})"),
            false => format!("{median:.1} ({least:.1}..{most:.1})"),
        }
    }

    /// Median and range, also where the two are level.
    pub fn with_range(self) -> String {
        let Times { median, least, most } = self;
        format!("{median:.2} ({least:.2}..{most:.2})")
    }

    /// As the table has it: median and range, or that the two are level.
    pub fn text(self) -> String {
        let Times { median, least, most } = self;
        match self.is_level() {
            true => format!("level ({least:.2} to {most:.2})"),
            false => format!("{median:.2} ({least:.2} to {most:.2})"),
        }
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
    fn a_range_that_spans_one_is_level() {
        let text = |ours: &[u64], theirs: &[u64]| Times::of(ours, theirs).unwrap().text();
        assert_eq!(text(&[100, 100, 100], &[200, 150, 180]), "1.80 (1.50 to 2.00)");
        assert_eq!(text(&[100, 100, 100], &[90, 150, 110]), "level (0.90 to 1.50)");
        assert_eq!(text(&[100, 100], &[30, 50]), "0.40 (0.30 to 0.50)");
        assert_eq!(Times::of(&[], &[1]), None);
        let level = Times::of(&[100, 100, 100], &[90, 150, 110]).unwrap();
        assert_eq!(level.with_range(), "1.10 (0.90..1.50)");
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
