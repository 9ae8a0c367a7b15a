//! Makes the calls of a trace again, on any file system.
//!
//! Before it begins, the files of the beginning are made ([`prepare`]). Then each call is made when
//! those that it waited for have returned and the program has thought as long as it did when it was
//! recorded; how long calls take is the file system's affair. In a simulation all of this happens
//! in virtual time.

mod calls;
pub mod content;
mod feed;
mod places;
mod prepare;
mod progress;
mod schedule;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use steadfast_vfs::FileSystem;

use crate::error::Result;
use crate::format::{CallOp, TraceCall, TraceEnd};
use crate::reader::TraceReader;

pub use places::CallPaths;
pub use prepare::{ReplayPlan, prepare};
pub use progress::ReplayProgress;
pub use schedule::replay;

/// A trace that can be read more than once.
pub trait TraceSource: Send + Sync {
    /// Begins to read it.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    fn read(&self) -> Result<TraceReader<Box<dyn BufRead + Send>>>;
}

/// A trace in a file.
#[derive(Debug, Clone)]
pub struct TraceFile {
    /// Where it is.
    pub path: std::path::PathBuf,
    /// One that was cut off is taken as far as it goes.
    pub partial: bool,
}

impl TraceSource for TraceFile {
    fn read(&self) -> Result<TraceReader<Box<dyn BufRead + Send>>> {
        // Before it is opened: a pipe waits for somebody who writes.
        if !std::fs::metadata(&self.path)?.is_file() {
            return Err(std::io::Error::other("is no file").into());
        }
        let file = std::fs::File::open(&self.path)?;
        TraceReader::new(Box::new(std::io::BufReader::with_capacity(1 << 18, file)), self.partial)
    }
}

/// A trace in memory.
impl TraceSource for Vec<u8> {
    fn read(&self) -> Result<TraceReader<Box<dyn BufRead + Send>>> {
        TraceReader::new(Box::new(std::io::Cursor::new(self.clone())), false)
    }
}

/// How fast the calls come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayPace {
    /// The program thinks as long as it did.
    #[default]
    Recorded,
    /// It does not think: each call is made when those that it waited for have returned.
    FlatOut,
}

/// A replay, in figures.
#[derive(Debug, Clone, Default)]
pub struct ReplayFigures {
    /// From the beginning to the return of the last call, and what the program did after it.
    pub elapsed: Duration,
    /// Of that, what the program did after its last call: no time passes for it here.
    pub tail: Duration,
    /// Calls that were made.
    pub calls: u64,
    /// Of each kind of call, how long they took.
    pub times: BTreeMap<CallOp, CallTimes>,
    /// Bytes that were read and written.
    pub bytes: (u64, u64),
    /// What came out otherwise than it was recorded.
    pub differences: Differences,
    /// When how many of the calls had returned.
    pub progress: ReplayProgress,
}

impl ReplayFigures {
    /// How long the syncs of files and folders took.
    pub fn syncs(&self) -> CallTimes {
        let mut all = CallTimes::default();
        self.times.iter().filter(|(op, _)| op.is_sync()).for_each(|(_, times)| all.merge(times));
        all
    }

    /// Time in calls, of all threads.
    pub fn in_calls(&self) -> Duration {
        self.times.values().map(|times| times.sum).sum()
    }
}

/// How long calls took: bounded memory, whatever their number.
#[derive(Debug, Clone)]
pub struct CallTimes {
    /// All together.
    pub sum: Duration,
    /// ns, to three digits.
    histogram: Histogram<u64>,
}

/// The longest call that is told from longer ones, in ns: an hour.
const LONGEST: u64 = 3_600_000_000_000;

impl Default for CallTimes {
    fn default() -> CallTimes {
        // OK to unwrap: the bounds are these.
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3).unwrap();
        CallTimes { sum: Duration::ZERO, histogram }
    }
}

impl CallTimes {
    fn add(&mut self, took: Duration) {
        self.sum += took;
        let ns = u64::try_from(took.as_nanos()).unwrap_or(LONGEST);
        self.histogram.saturating_record(ns.max(1));
    }

    fn merge(&mut self, other: &CallTimes) {
        self.sum += other.sum;
        // OK to ignore: both have the same bounds.
        let _ = self.histogram.add(&other.histogram);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The time that a share (0 to 1) of them does not exceed; `None` without a call.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.histogram.value_at_quantile(share)))
    }

    /// How many took how long, in ns, from the shortest on; times are to three digits.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
        self.histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

/// Results that are not those that were recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// How many calls.
    pub calls: u64,
    /// By what differs, in words: how many, and the number of the first such call.
    pub kinds: BTreeMap<String, (u64, u64)>,
}

impl Differences {
    fn add(&mut self, call: u64, what: String) {
        self.calls += 1;
        self.kinds.entry(what).or_insert((0, call)).0 += 1;
    }
}

/// Is told of a replay's calls, before and after each.
pub trait ReplayObserver: Send + Sync {
    /// Whether it is told paths.
    fn wants_paths(&self) -> bool {
        true
    }

    /// A file is made that was there before the first call: a regular one of so many bytes, or
    /// something else. What its contents are stamped with; `None`: as ever.
    fn made(&self, _file: u64, _path: &str, _regular: Option<u64>) -> Option<u64> {
        None
    }

    /// The files of the beginning are there, and durable.
    fn prepared(&self) {}

    /// A call of this number begins. What a write is stamped with; `None`: as ever.
    fn begins(&self, _number: u64, _call: &TraceCall, _paths: &CallPaths) -> Option<u64> {
        None
    }

    /// It has returned; `durable`: a write that promised to be durable by then.
    fn ended(&self, _number: u64, _call: &TraceCall, _succeeded: bool, _durable: bool) {}
}

/// Nobody looks on.
impl ReplayObserver for () {
    fn wants_paths(&self) -> bool {
        false
    }
}

/// A whole replay: makes the files, calls `begin`, and makes the calls.
///
/// # Errors
/// The trace cannot be read, or the files of the beginning cannot be made. A call that fails is a
/// difference.
pub fn run(
    trace: &Arc<dyn TraceSource>,
    fs: &Arc<dyn FileSystem>,
    (pace, observer): (ReplayPace, Arc<dyn ReplayObserver>),
    begin: impl FnOnce() -> Result<()>,
) -> Result<(ReplayFigures, TraceEnd)> {
    let plan = prepare(&**trace, &**fs, &*observer)?;
    let end = plan.end;
    begin()?;
    Ok((replay(trace, fs, (pace, observer), plan)?, end))
}
