//! The stonewall, and the arithmetic of a test.
//!
//! Children do not finish together, and a rate over a time in which some had already finished is
//! nobody's rate. So the first child to finish puts up a wall: what the others complete from then
//! on is not counted, and their time ends when they notice. An operation that completes while the
//! wall is up is not counted either, even if it began before.
//!
//! *Children see* is the sum of the children's own rates; *parent sees* is what was counted over
//! the parent's time from the last start to the last join, uncounted tails included. The two
//! differ by how unevenly the children ran.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use serde::Serialize;

/// What a child has done that counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    bytes: u64,
    frozen: Option<Duration>,
}

impl Tally {
    /// An operation has moved `bytes` and completed; it counts unless the wall was up by then.
    pub fn completed(&mut self, bytes: u64, wall: &AtomicBool) {
        if !self.is_frozen() && !wall.load(SeqCst) {
            self.bytes += bytes;
        }
    }

    /// Ends the child's time; whatever follows is uncounted.
    pub fn freeze(&mut self, elapsed: Duration) {
        self.frozen.get_or_insert(elapsed);
    }

    /// Whether the child's time has ended.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Bytes counted, and the time they took. At least a microsecond, IOzone's clock tick, so
    /// that a rate exists.
    pub(crate) fn score(&self) -> Score {
        let elapsed = self.frozen.unwrap_or_default().max(Duration::from_micros(1));
        Score { bytes: self.bytes, elapsed }
    }
}

/// What a child has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    /// Bytes counted.
    pub bytes: u64,
    /// The child's time.
    pub elapsed: Duration,
}

/// What amounts and rates are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Bytes in one: 1024 for kB, the record's for operations.
    pub bytes: u64,
}

impl Unit {
    /// An amount in this unit.
    pub(crate) fn amount(self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes as f64
    }

    /// A rate in this unit a second.
    pub fn rate(self, score: Score) -> f64 {
        self.amount(score.bytes) / score.elapsed.as_secs_f64()
    }
}

/// The figures of a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Sum of the children's rates.
    pub children_see: f64,
    /// All that was counted over the parent's time.
    pub parent_sees: f64,
    /// The slowest child's rate. Zero if a child had nothing to count (IOzone shows the next
    /// one's rate then).
    pub min: f64,
    /// The fastest child's rate.
    pub max: f64,
    /// `children_see` over the number of children.
    pub avg: f64,
    /// The least amount counted for a child.
    pub min_xfer: f64,
}

/// Sums a test up. There is at least one child.
pub(crate) fn summarise(scores: &[Score], parent: Duration, unit: Unit) -> Summary {
    let rates = || scores.iter().map(|s| unit.rate(*s));
    let children_see = rates().sum::<f64>();
    let counted: u64 = scores.iter().map(|s| s.bytes).sum();
    let whole = Score { bytes: counted, elapsed: parent.max(Duration::from_micros(1)) };
    Summary {
        children_see,
        parent_sees: unit.rate(whole),
        min: rates().fold(f64::INFINITY, f64::min),
        max: rates().fold(0.0, f64::max),
        avg: children_see / scores.len() as f64,
        min_xfer: unit.amount(scores.iter().map(|s| s.bytes).min().unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: Unit = Unit { bytes: 1024 };

    fn score(kb: u64, millis: u64) -> Score {
        Score { bytes: kb << 10, elapsed: Duration::from_millis(millis) }
    }

    #[test]
    fn the_sums_of_a_test() {
        let scores = [score(1000, 1000), score(500, 1000), score(300, 500)];
        let s = summarise(&scores, Duration::from_secs(2), KB);
        assert_eq!(s.children_see, 2100.0);
        assert_eq!(s.parent_sees, 900.0);
        assert_eq!((s.min, s.max, s.avg), (500.0, 1000.0, 700.0));
        assert_eq!(s.min_xfer, 300.0);
    }

    #[test]
    fn the_published_figures_add_up() {
        // Initial writers with the external journal: the average is a third of the sum.
        let rates = [19034.27, 19060.63, 19062.55];
        let scores = rates.map(|r: f64| Score {
            bytes: 4_188_160 << 10,
            elapsed: Duration::from_secs_f64(4_188_160.0 / r),
        });
        let s = summarise(&scores, Duration::from_secs(220), KB);
        assert!((s.children_see - 57157.45).abs() < 0.01, "{}", s.children_see);
        assert!((s.avg - 19052.48).abs() < 0.01, "{}", s.avg);
        assert!((s.min - 19034.27).abs() < 0.01);
    }

    #[test]
    fn a_child_with_nothing_is_the_minimum() {
        let s = summarise(&[score(4096, 1), score(0, 1)], Duration::from_millis(11), KB);
        assert_eq!((s.min, s.min_xfer), (0.0, 0.0));
    }

    #[test]
    fn behind_the_wall_nothing_counts() {
        let wall = AtomicBool::new(false);
        let mut tally = Tally::default();
        tally.completed(10, &wall);
        wall.store(true, SeqCst);
        tally.completed(10, &wall);
        tally.freeze(Duration::from_secs(1));
        tally.freeze(Duration::from_secs(9));
        tally.completed(10, &AtomicBool::new(false));
        assert_eq!(tally.score(), Score { bytes: 10, elapsed: Duration::from_secs(1) });
    }

    #[test]
    fn operations_are_records() {
        let unit = Unit { bytes: 64 << 10 };
        assert_eq!(unit.rate(score(640, 500)), 20.0);
    }
}
