//! Percentiles of how long operations took.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// Three significant digits: percentiles are within 0.1 %.
const DIGITS: u8 = 3;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A read call.
    Read,
    /// A write call.
    Write,
    /// An fsync inside the timing (-e).
    Fsync,
    /// A close inside the timing (-c).
    Close,
}

/// Durations of one child's or one test's counted operations, by kind.
#[derive(Debug, Default)]
pub struct Latencies {
    kinds: BTreeMap<Operation, Histogram<u64>>,
}

/// One kind's percentiles, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Which operation.
    pub operation: Operation,
    /// How many.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The mean.
    pub mean_ns: f64,
    /// Half took at most this.
    pub p50_ns: u64,
    /// 90 %.
    pub p90_ns: u64,
    /// 95 %.
    pub p95_ns: u64,
    /// 99 %.
    pub p99_ns: u64,
    /// 99.9 %.
    pub p99_9_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them, in coarse steps: to be drawn.
    #[serde(skip)]
    pub distribution: Distribution,
}

fn histogram() -> Histogram<u64> {
    // OK to expect: only more than five digits are refused.
    Histogram::new(DIGITS).expect("a histogram of three digits")
}

impl Latencies {
    /// Notes one operation.
    pub fn record(&mut self, operation: Operation, took: Duration) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let histogram = self.kinds.entry(operation).or_insert_with(histogram);
        // OK to expect: the histogram grows to hold any 64-bit value.
        histogram.record(ns).expect("a histogram that grows");
    }

    /// Adds what another has noted.
    pub fn add(&mut self, other: &Latencies) {
        for (operation, theirs) in &other.kinds {
            let ours = self.kinds.entry(*operation).or_insert_with(histogram);
            // OK to expect: both grow by themselves, so every value fits.
            ours.add(theirs).expect("histograms of one form");
        }
    }

    /// The percentiles of each kind that happened.
    pub fn percentiles(&self) -> Vec<Latency> {
        self.kinds
            .iter()
            .map(|(operation, h)| Latency {
                operation: *operation,
                count: h.len(),
                min_ns: h.min(),
                mean_ns: h.mean(),
                p50_ns: h.value_at_quantile(0.5),
                p90_ns: h.value_at_quantile(0.9),
                p95_ns: h.value_at_quantile(0.95),
                p99_ns: h.value_at_quantile(0.99),
                p99_9_ns: h.value_at_quantile(0.999),
                max_ns: h.max(),
                distribution: Distribution::counted(
                    h.iter_recorded()
                        .map(|v| (v.value_iterated_to() as f64 / 1e3, v.count_at_value())),
                ),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_two_children() {
        let (mut all, mut other) = (Latencies::default(), Latencies::default());
        (1..=500).for_each(|i| all.record(Operation::Write, Duration::from_micros(i)));
        (501..=1000).for_each(|i| other.record(Operation::Write, Duration::from_micros(i)));
        other.record(Operation::Fsync, Duration::from_secs(3));
        all.add(&other);
        let [write, fsync] = &all.percentiles()[..] else { panic!() };
        assert_eq!((write.operation, write.count), (Operation::Write, 1000));
        assert_eq!(write.distribution.count(), 1000);
        assert!((500_000..501_000).contains(&write.p50_ns), "{}", write.p50_ns);
        assert!((990_000..992_000).contains(&write.p99_ns), "{}", write.p99_ns);
        assert_eq!((fsync.operation, fsync.count), (Operation::Fsync, 1));
        assert!(fsync.max_ns >= 3_000_000_000);
    }
}
