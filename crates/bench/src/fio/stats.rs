//! What a job's requests took: counts, bytes, times, as fio adds them up.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::options::RequestKind;
use crate::cpu::TaskUse;
use crate::iozone::latency::histogram;

/// Bounds of the steps of latencies within a unit; what is above the last but one is in the last.
const STEPS: [u64; 9] = [2, 4, 10, 20, 50, 100, 250, 500, 750];
/// A rate is taken over this long.
const RATE_WINDOW: Duration = Duration::from_millis(500);

/// Number, range, mean and deviation of values, which are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Moments {
    /// How many.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Their mean.
    pub mean: f64,
    squares: f64,
}

impl Moments {
    /// Takes a value in (Welford's way: nothing grows with the number of values).
    pub(super) fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        let off = value as f64 - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value as f64 - self.mean);
    }

    /// Takes others in.
    pub(super) fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let off = other.mean - self.mean;
        self.squares += other.squares + off * off * ours * theirs / (ours + theirs);
        self.mean += off * theirs / (ours + theirs);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.count += other.count;
    }

    /// The standard deviation.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }
}

/// Times, with their percentiles.
#[derive(Debug, Clone, Default)]
pub struct CallTimes {
    /// In nanoseconds.
    pub moments: Moments,
    counts: Option<Histogram<u64>>,
}

impl CallTimes {
    pub(super) fn add(&mut self, ns: u64, keeps_percentiles: bool) {
        self.moments.add(ns);
        if !keeps_percentiles {
            return;
        }
        // OK to expect: the histogram grows to hold any 64-bit value.
        self.counts.get_or_insert_with(histogram).record(ns).expect("a histogram that grows");
    }

    pub(super) fn merge(&mut self, other: &CallTimes) {
        self.moments.merge(&other.moments);
        if let Some(theirs) = &other.counts {
            // OK to expect: both grow by themselves, so every value fits.
            self.counts.get_or_insert_with(histogram).add(theirs).expect("histograms of one form");
        }
    }

    /// What so many percent took at most, in nanoseconds; 0 of nothing.
    pub fn percentile(&self, percent: f64) -> u64 {
        self.counts.as_ref().map_or(0, |counts| counts.value_at_quantile(percent / 100.0))
    }
}

/// The requests of a kind.
#[derive(Debug, Clone, Default)]
pub struct KindFigures {
    /// Bytes that were moved.
    pub bytes: u64,
    /// How many.
    pub requests: u64,
    /// Of which so many came short at first.
    pub short: u64,
    /// How long the job made any, in nanoseconds.
    pub runtime_ns: u64,
    /// From being chosen to the call, of engines that have several in flight.
    pub slat: Moments,
    /// From call to return.
    pub clat: CallTimes,
    /// From being chosen to return.
    pub lat: CallTimes,
    /// KiB/s, of each half second.
    pub bw: Moments,
    /// Requests a second, of each half second.
    pub iops: Moments,
}

impl KindFigures {
    fn merge(&mut self, other: &KindFigures) {
        self.bytes += other.bytes;
        self.requests += other.requests;
        self.short += other.short;
        self.runtime_ns = self.runtime_ns.max(other.runtime_ns);
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
        self.lat.merge(&other.lat);
        self.bw.merge(&other.bw);
        self.iops.merge(&other.iops);
    }

    fn per_second(&self, count: u64) -> f64 {
        if self.runtime_ns == 0 { 0.0 } else { count as f64 * 1e9 / self.runtime_ns as f64 }
    }

    /// Bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        self.per_second(self.bytes)
    }

    /// Requests a second.
    pub fn requests_per_s(&self) -> f64 {
        self.per_second(self.requests)
    }
}

/// Counts by how long calls took: nanoseconds below 1000, then microseconds, then milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatencySteps {
    /// Below a microsecond.
    pub ns: [u64; 10],
    /// Below a millisecond.
    pub us: [u64; 10],
    /// The others; the last two are of up to and of more than two seconds.
    pub ms: [u64; 12],
}

impl LatencySteps {
    fn add(&mut self, ns: u64) {
        // fio's first step is 0 and 1, the second 2 to 4.
        let step = |value: u64| match value {
            0 | 1 => 0,
            _ => STEPS.iter().skip(1).position(|bound| value <= *bound).map_or(9, |at| at + 1),
        };
        match (ns / 1000, ns / 1_000_000) {
            (0, _) => self.ns[step(ns)] += 1,
            (us, 0) => self.us[step(us)] += 1,
            (_, ms @ 0..1000) => self.ms[step(ms)] += 1,
            (_, 1000..2000) => self.ms[10] += 1,
            _ => self.ms[11] += 1,
        }
    }

    fn merge(&mut self, other: &LatencySteps) {
        let ours = self.ns.iter_mut().chain(&mut self.us).chain(&mut self.ms);
        let theirs = other.ns.iter().chain(&other.us).chain(&other.ms);
        ours.zip(theirs).for_each(|(ours, theirs)| *ours += theirs);
    }
}

/// All of a job, or of a group of jobs.
#[derive(Debug, Clone, Default)]
pub struct JobFigures {
    /// Reads and writes.
    pub kinds: [KindFigures; 2],
    /// fsync and fdatasync.
    pub syncs: CallTimes,
    /// All calls by how long they took.
    pub steps: LatencySteps,
    /// How many were in flight when each was made: 1, 2, 4, 8, 16, 32, 64 and more.
    pub depths: [u64; 7],
    /// How long it ran, in nanoseconds.
    pub elapsed_ns: u64,
    /// What its tasks took.
    pub tasks: TaskUse,
}

impl JobFigures {
    /// A request that has returned.
    pub(super) fn request(&mut self, done: &RequestTimes, keeps: KeptTimes) {
        let kind = &mut self.kinds[done.kind as usize];
        kind.bytes += done.bytes;
        kind.requests += 1;
        kind.short += u64::from(done.is_short);
        if keeps.slat {
            kind.slat.add(done.called.saturating_sub(done.chosen));
        }
        let clat = done.returned.saturating_sub(done.called);
        kind.clat.add(clat, true);
        kind.lat.add(done.returned.saturating_sub(done.chosen), keeps.lat_percentiles);
        self.steps.add(clat);
    }

    /// So many requests are in flight now that one more is made.
    pub(super) fn in_flight(&mut self, depth: u64) {
        let at = depth.max(1).ilog2().min(6) as usize;
        self.depths[at] += 1;
    }

    pub(super) fn merge(&mut self, other: &JobFigures) {
        for kind in RequestKind::ALL {
            self.kinds[kind as usize].merge(&other.kinds[kind as usize]);
        }
        self.syncs.merge(&other.syncs);
        self.steps.merge(&other.steps);
        self.depths.iter_mut().zip(other.depths).for_each(|(ours, theirs)| *ours += theirs);
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        self.tasks.merge(&other.tasks);
    }

    /// Reads and writes.
    pub fn requests(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.requests).sum()
    }
}

/// What is noted of requests beside what always is.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeptTimes {
    /// The time from being chosen to the call.
    pub(super) slat: bool,
    /// Percentiles of the whole time.
    pub(super) lat_percentiles: bool,
}

/// When a request was chosen, called and returned, in nanoseconds of one clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestTimes {
    pub(super) kind: RequestKind,
    pub(super) bytes: u64,
    pub(super) is_short: bool,
    pub(super) chosen: u64,
    pub(super) called: u64,
    pub(super) returned: u64,
}

/// Rates, half second by half second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateWindow {
    began: u64,
    bytes: [u64; 2],
    requests: [u64; 2],
}

impl RateWindow {
    pub(super) fn new(now: u64) -> RateWindow {
        RateWindow { began: now, ..RateWindow::default() }
    }

    /// Takes a request in; a window that is over goes to the figures.
    pub(super) fn request(&mut self, done: &RequestTimes, figures: &mut JobFigures) {
        self.bytes[done.kind as usize] += done.bytes;
        self.requests[done.kind as usize] += 1;
        let past = done.returned.saturating_sub(self.began);
        if past < RATE_WINDOW.as_nanos() as u64 {
            return;
        }
        for (at, kind) in figures.kinds.iter_mut().enumerate() {
            let per_second =
                |count: u64| (u128::from(count) * 1_000_000_000 / u128::from(past)) as u64;
            if self.requests[at] > 0 {
                kind.bw.add(per_second(self.bytes[at]) >> 10);
                kind.iops.add(per_second(self.requests[at]));
            }
        }
        *self = RateWindow::new(done.returned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_parts_are_those_of_the_whole() {
        let (mut whole, mut parts) = (Moments::default(), [Moments::default(); 2]);
        for value in 0..1000u64 {
            whole.add(value * value);
            parts[usize::from(value % 3 == 0)].add(value * value);
        }
        let mut sum = Moments::default();
        parts.iter().for_each(|part| sum.merge(part));
        assert_eq!((sum.count, sum.min, sum.max), (1000, 0, 999 * 999));
        assert!((sum.mean - whole.mean).abs() < 1e-6);
        assert!((sum.deviation() - whole.deviation()).abs() < 1e-3);
        let few = [4u64, 4, 4];
        let mut same = Moments::default();
        few.iter().for_each(|value| same.add(*value));
        assert_eq!((same.mean, same.deviation()), (4.0, 0.0));
    }

    #[test]
    fn a_time_is_in_the_step_that_fio_has_it_in() {
        let mut steps = LatencySteps::default();
        for ns in [1, 2, 4, 5, 751, 999, 1000, 3000, 4_999, 999_999, 1_000_000, 751_000_000] {
            steps.add(ns);
        }
        assert_eq!(steps.ns, [1, 2, 1, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(steps.us, [1, 2, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(steps.ms, [1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
        steps.add(1_500_000_000);
        steps.add(2_000_000_000);
        assert_eq!(steps.ms[10..], [1, 1]);
    }
}
