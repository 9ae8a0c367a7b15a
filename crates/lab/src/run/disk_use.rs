//! How much of what a test of the benchmark moved the disk had to move: a test that was answered
//! by memory, or whose writes were still in the journal or in memory when it ended, says little
//! about the disk.

use std::sync::{Arc, Mutex, PoisonError};

use steadfast_bench::iozone::{Call, Observer, Test, TestResult};
use steadfast_block::BlockDevice;
use steadfast_devices::filter::Stat;
use steadfast_ext4::Ext4;
use steadfast_runtime::Nanos;

use crate::results::{Note, SeedResults, SpeedRow, VariantTime};

/// Below this share the disk took no part worth the name.
const HARDLY: f64 = 0.1;

/// What the disk moved in a test, over what the test moved; `None`: the test moved nothing so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Share {
    read: Option<f64>,
    written: Option<f64>,
}

/// Counts what passes to a disk, test by test, and passes on what it is told.
pub(super) struct DiskUse {
    /// `None`: memory that is used in place is not counted.
    disk: Option<Arc<Stat>>,
    also: Arc<dyn Observer>,
    seen: Mutex<LogUsage>,
}

#[derive(Default)]
struct LogUsage {
    /// Bytes read and written when the test began.
    before: (u64, u64),
    tests: Vec<Share>,
}

/// The disk with its counter.
pub(super) fn counted(disk: &Arc<dyn BlockDevice>) -> (Arc<dyn BlockDevice>, Option<Arc<Stat>>) {
    if disk.direct_memory().is_some() {
        return (Arc::clone(disk), None);
    }
    let stat = Arc::new(Stat::new(Arc::clone(disk)));
    (Arc::clone(&stat) as Arc<dyn BlockDevice>, Some(stat))
}

impl DiskUse {
    pub fn new(disk: Option<Arc<Stat>>, also: Arc<dyn Observer>) -> DiskUse {
        DiskUse { disk, also, seen: Mutex::default() }
    }

    fn moved(&self) -> (u64, u64) {
        let Some(disk) = &self.disk else { return (0, 0) };
        let counters = disk.counters();
        (counters.read.bytes, counters.write.bytes)
    }

    /// Of each test, in their order; none if nothing was counted.
    pub fn shares(&self) -> Vec<Share> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let tests = std::mem::take(&mut seen.tests);
        if self.disk.is_some() { tests } else { Vec::new() }
    }
}

/// Notes the shares in the rows of the tests.
pub(super) fn note(shares: &[Share], rows: &mut [SpeedRow]) {
    if shares.len() == rows.len() {
        for (row, share) in rows.iter_mut().zip(shares) {
            (row.read_from_disk, row.written_to_disk) = (share.read, share.written);
        }
    }
}

impl Observer for DiskUse {
    fn started(&self, call: &Call<'_>) {
        self.also.started(call);
    }

    fn finished(&self, call: &Call<'_>, at: Nanos, durable: bool) {
        self.also.finished(call, at, durable);
    }

    fn synced(&self, file: Option<&str>, started: Nanos, at: Nanos) {
        self.also.synced(file, started, at);
    }

    fn test_started(&self, test: Test, children: usize) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).before = self.moved();
        self.also.test_started(test, children);
    }

    fn test_finished(&self, result: &TestResult) {
        let now = self.moved();
        let of = |reads: bool| -> u64 {
            let all = result.children.iter().filter(|c| c.role.contains("read") == reads);
            all.map(|child| child.bytes).sum()
        };
        let share = |moved: u64, of: u64| (of > 0).then(|| moved as f64 / of as f64);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (read, written) = (now.0 - seen.before.0, now.1 - seen.before.1);
        seen.tests.push(Share { read: share(read, of(true)), written: share(written, of(false)) });
        drop(seen);
        self.also.test_finished(result);
    }
}

/// How often the log has been filled: below one it has not wrapped. `None` without a journal.
pub(super) fn log_used(fs: &Ext4) -> Option<f64> {
    let journal = fs.journal()?;
    let stats = journal.stats();
    let (_, blocks) = journal.usage();
    Some((stats.logged_blocks + stats.fast_blocks) as f64 / f64::from(blocks.max(1)))
}

/// Says beside which figures the disk took hardly any part, and whose log was never full.
pub(super) fn notes(runs: &[SeedResults]) -> Vec<Note> {
    let Some(run) = runs.first() else { return Vec::new() };
    let hardly = |what: &str, rest: &str, of: fn(&SpeedRow) -> Option<f64>| {
        let mut names: Vec<(&str, Vec<String>)> = Vec::new();
        for row in run.of::<SpeedRow>() {
            let Some(share) = of(row).filter(|share| *share < HARDLY) else { continue };
            let said = format!("{} ({:.0} %)", row.test, share * 100.0);
            match names.iter_mut().find(|(name, _)| *name == row.variant) {
                Some((_, tests)) => tests.push(said),
                None => names.push((&row.variant, vec![said])),
            }
        }
        let list: Vec<String> =
            names.iter().map(|(name, tests)| format!("'{name}': {}", tests.join(", "))).collect();
        (!list.is_empty()).then(|| {
            Note::remark(format!(
                "The disk has {what} hardly any of it: {}. {rest}",
                list.join("; ")
            ))
        })
    };
    let read = hardly("read", "Memory had the rest.", |row| row.read_from_disk);
    let rest = "When the test ended, the rest was in the journal or in memory.";
    let written = hardly("written", rest, |row| row.written_to_disk);
    read.into_iter().chain(written).chain(not_wrapped(run.of())).collect()
}

fn not_wrapped<'r>(took: impl Iterator<Item = &'r VariantTime>) -> Option<Note> {
    let list: Vec<String> = took
        .filter_map(|took| Some((took, took.log_used.filter(|used| *used < 1.0)?)))
        .map(|(took, used)| format!("'{}' ({:.0} %)", took.variant, used * 100.0))
        .collect();
    (!list.is_empty()).then(|| {
        Note::remark(format!(
            "The log never wrapped, so what a full log costs is not in the figures: {}.",
            list.join(", ")
        ))
    })
}
