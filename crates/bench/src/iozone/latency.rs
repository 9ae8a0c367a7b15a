//! Percentiles of how long operations took.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use steadfast_statistics::Percentile;

use crate::distribution::LatencyHistogram;

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

/// One kind's percentiles, in nanoseconds; `None` where too few operations happened for one.
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
    pub p90_ns: Option<u64>,
    /// 95 %.
    pub p95_ns: Option<u64>,
    /// 99 %.
    pub p99_ns: Option<u64>,
    /// 99.9 %.
    pub p99_9_ns: Option<u64>,
    /// The longest.
    pub max_ns: u64,
    /// All of them, in coarse steps: to be drawn.
    #[serde(skip)]
    pub distribution: LatencyHistogram,
}

fn percentile(h: &Histogram<u64>, percentile: Percentile) -> Option<u64> {
    percentile.is_in(h.len()).then(|| h.value_at_quantile(percentile.share()))
}

pub(crate) fn histogram() -> Histogram<u64> {
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
                p90_ns: percentile(h, Percentile::P90),
                p95_ns: percentile(h, Percentile::P95),
                p99_ns: percentile(h, Percentile::P99),
                p99_9_ns: percentile(h, Percentile::P99_9),
                max_ns: h.max(),
                distribution: LatencyHistogram::counted(
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
        let p99 = write.p99_ns.unwrap();
        assert!((990_000..992_000).contains(&p99), "{p99}");
        assert_eq!((fsync.operation, fsync.count), (Operation::Fsync, 1));
        assert!(fsync.max_ns >= 3_000_000_000);
        // One above it of a thousand is no percentile, and of one operation nothing is.
        assert_eq!(write.p99_9_ns, None);
        let of_one = [fsync.p90_ns, fsync.p95_ns, fsync.p99_ns, fsync.p99_9_ns];
        assert_eq!(of_one, [None; 4]);
        let json = serde_json::to_value(fsync).unwrap();
        assert!(json["p99_9_ns"].is_null() && json["p50_ns"].as_u64() >= Some(3_000_000_000));
    }

    #[test]
    fn a_percentile_is_there_from_its_size_on() {
        for (n, there) in [(39, 0), (40, 1), (80, 2), (400, 3), (3999, 3), (4000, 4)] {
            let mut all = Latencies::default();
            (1..=n).for_each(|i| all.record(Operation::Read, Duration::from_micros(i)));
            let read = all.percentiles().remove(0);
            let of = [read.p90_ns, read.p95_ns, read.p99_ns, read.p99_9_ns];
            assert_eq!(of.iter().flatten().count(), there, "{n}: {of:?}");
        }
    }
}
