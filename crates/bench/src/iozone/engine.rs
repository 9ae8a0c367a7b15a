//! The parent: starts children, times them, joins them, test after test.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steadfast_runtime::{Mutex, now, sleep, spawn};
use steadfast_vfs::{FileSystem, FsError};

use super::child::{self, ChildTest};
use super::data::FileData;
use super::file::TestFile;
use super::gate::Gate;
use super::latency::Latencies;
use super::observer::{Observer, SilentObserver};
use super::options::Options;
use super::plan::{self, Test};
use super::random;
use super::results::{FORMAT, IozoneResults, Surroundings, TestResult, ThroughputRun, VERSION};
use super::stonewall::{Score, Unit, summarise};
use crate::calls::path_in;
use crate::{cpu_since, cpu_used};

/// A child that ran for less than this says little about a device.
const SHORT: Duration = Duration::from_millis(100);

/// A run that could not be finished: which test, which file, what was being done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunError {
    /// The test.
    pub test: Option<Test>,
    /// The file's path.
    pub file: String,
    /// What was being done to it.
    pub doing: String,
    /// Why it failed; `None` if nothing failed but the data were wrong, as `doing` says.
    pub source: Option<FsError>,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(test) = self.test {
            write!(f, "{}: ", test.title())?;
        }
        write!(f, "{}: {}", self.file, self.doing)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        if self.source == Some(FsError::NotFound) && self.test.is_some() {
            write!(f, " (this test reads or overwrites the file that -i 0 makes)")?;
        }
        Ok(())
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|e| e as _)
    }
}

/// What all children of all tests share.
pub(super) struct Bench {
    pub(super) fs: Arc<dyn FileSystem>,
    pub(super) options: Options,
    pub(super) observer: Arc<dyn Observer>,
    /// Paths from the root, by child.
    pub(super) files: Vec<String>,
    /// Which of them this run has made or emptied.
    pub(super) made: Vec<AtomicBool>,
    /// What each file holds. Locked by its child for a whole test, so over waits.
    pub(super) data: Vec<Mutex<FileData>>,
    /// The order of the random tests.
    pub(super) shuffled: Vec<u64>,
}

/// What the children of one test share.
pub(super) struct Round {
    pub(super) test: Test,
    pub(super) children: usize,
    pub(super) gate: Gate,
    /// The stonewall: a child has finished.
    pub(super) wall: AtomicBool,
    /// A child has failed: the others need not go on.
    pub(super) failed: AtomicBool,
}

/// Runs a command line on a file system.
///
/// `folder` is the path from the file system's root of the folder for files that are not named
/// by an absolute path ("" is the root). Children are tasks, so this runs in real time, or in
/// virtual time if called inside a simulation. Files are removed at the end, unless -w says
/// otherwise; after a failure those that the run has made.
pub fn run(
    fs: Arc<dyn FileSystem>,
    folder: &str,
    options: &Options,
    surroundings: &Surroundings,
    observer: Option<Arc<dyn Observer>>,
) -> Result<IozoneResults, RunError> {
    let mut results = IozoneResults {
        format: FORMAT,
        version: VERSION,
        options: options.clone(),
        began: surroundings.began.clone(),
        machine: surroundings.machine.clone(),
        unit: options.unit(),
        runs: Vec::new(),
        notes: Vec::new(),
    };
    let observer = observer.unwrap_or_else(|| Arc::new(SilentObserver));
    for &children in &options.children {
        let bench = Arc::new(Bench::new(&fs, folder, options, &observer, children, surroundings));
        let tests = plan::tests(options).into_iter().map(|test| bench.test(test, children));
        let tests = tests.collect::<Result<Vec<_>, _>>();
        let removed = match options.keep_files {
            true => Ok(()),
            false => bench.remove_files(children, tests.is_err()),
        };
        results.runs.push(ThroughputRun { children, tests: tests? });
        removed?;
    }
    results.notes = notes(&results, surroundings);
    Ok(results)
}

impl Bench {
    fn new(
        fs: &Arc<dyn FileSystem>,
        folder: &str,
        options: &Options,
        observer: &Arc<dyn Observer>,
        children: usize,
        surroundings: &Surroundings,
    ) -> Bench {
        let file = |child| path_in(folder, options.file_of(child));
        let data = |child| Mutex::new(FileData::of(child, options, surroundings));
        let random = plan::tests(options)
            .iter()
            .any(|t| matches!(t, Test::RandomRead | Test::RandomWrite | Test::Mixed));
        Bench {
            fs: Arc::clone(fs),
            options: options.clone(),
            observer: Arc::clone(observer),
            files: (0..children).map(file).collect(),
            made: (0..children).map(|_| AtomicBool::new(false)).collect(),
            data: (0..children).map(data).collect(),
            shuffled: if random { random::shuffled(options.records()) } else { Vec::new() },
        }
    }

    /// What amounts are counted in.
    pub(super) fn unit(&self) -> Unit {
        Unit { bytes: if self.options.ops { self.options.record_bytes } else { 1024 } }
    }

    /// Runs one test, then lets the system settle as IOzone does: sync, two seconds.
    fn test(self: &Arc<Self>, test: Test, children: usize) -> Result<TestResult, RunError> {
        self.observer.test_started(test, children);
        let round = Arc::new(Round {
            test,
            children,
            gate: Gate::new(children),
            wall: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        });
        let tasks: Vec<_> = (0..children)
            .map(|child| {
                let (bench, round) = (Arc::clone(self), Arc::clone(&round));
                let name = format!("{} {child}", test.title());
                spawn(name, move || child::run(&bench, &round, child))
            })
            .collect();
        if round.gate.wait_until_ready() {
            for child in 0..children {
                sleep(Duration::from_micros(self.options.start_delay_us));
                round.gate.begin(child);
            }
        }
        let used = self.options.cpu_use.then(cpu_used).flatten();
        let start = now();
        let outcomes: Vec<_> =
            tasks.into_iter().map(|t| t.join().unwrap_or_else(|p| p.resume())).collect();
        let parent = now().since(start);
        // Who only stopped because another failed reports no error of his own.
        let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut result = self.sum_up(test, outcomes, parent);
        result.cpu_ns = cpu_since(used);
        self.observer.test_finished(&result);
        self.rest()?;
        Ok(result)
    }

    fn sum_up(&self, test: Test, outcomes: Vec<ChildTest>, parent: Duration) -> TestResult {
        let unit = self.unit();
        let mut latencies = Latencies::default();
        outcomes.iter().for_each(|(_, _, of_child)| latencies.add(of_child));
        let scores: Vec<Score> = outcomes.iter().map(|(_, score, _)| *score).collect();
        TestResult {
            test,
            label: test.label(),
            summary: summarise(&scores, parent, unit),
            parent_ns: nanos(parent),
            cpu_ns: None,
            children: outcomes.into_iter().map(|(child, ..)| child).collect(),
            latency: latencies.percentiles(),
        }
    }

    fn rest(&self) -> Result<(), RunError> {
        let started = now();
        self.fs.sync().map_err(|e| RunError {
            test: None,
            file: "the file system".into(),
            doing: "sync between two tests".into(),
            source: Some(e),
        })?;
        self.observer.synced(None, started, now());
        sleep(Duration::from_millis(self.options.settle_ms));
        sleep(Duration::from_secs(self.options.rest_s));
        Ok(())
    }

    /// A child's file.
    pub(super) fn test_file(&self, child: usize) -> TestFile<'_> {
        let (path, is_made) = (&*self.files[child], &self.made[child]);
        TestFile { fs: &*self.fs, observer: &*self.observer, child, path, is_made }
    }

    /// Removes the children's files. Those that were never made do not matter.
    fn remove_files(&self, children: usize, failed: bool) -> Result<(), RunError> {
        let mut first = Ok(());
        for (child, path) in self.files.iter().enumerate().take(children) {
            match self.test_file(child).remove(failed) {
                Err(e) if first.is_ok() => {
                    let doing = "removing the file at the end".into();
                    let file = path.clone();
                    first = Err(RunError { test: None, file, doing, source: Some(e) });
                }
                _ => {}
            }
        }
        first
    }
}

impl Round {
    /// Whether a child has failed, so that the test's result is lost anyway.
    pub(super) fn is_lost(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }
}

pub(super) fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

/// What a reader of the figures should know.
fn notes(results: &IozoneResults, surroundings: &Surroundings) -> Vec<String> {
    let o = &results.options;
    let mut notes = Vec::new();
    let most = o.children.iter().copied().max().unwrap_or(1) as u64;
    let fits =
        surroundings.memory_bytes.is_some_and(|memory| most.saturating_mul(o.file_bytes) < memory);
    if !o.direct && fits {
        notes.push(
            "the files fit in memory and -I was not given: reads are reads of the page cache, \
             not of the device"
                .into(),
        );
        if !o.include_fsync && !o.sync && !o.dsync {
            notes.push(
                "nothing makes the writes durable inside the timing (-e, -o): write figures are \
                 those of the page cache, not of the device"
                    .into(),
            );
        }
    }
    let tests = || results.runs.iter().flat_map(|run| &run.tests);
    let short: Vec<_> = tests()
        .filter(|t| t.children.iter().any(|c| c.elapsed_ns < nanos(SHORT)))
        .map(|t| t.label)
        .collect();
    if !short.is_empty() {
        notes.push(format!(
            "a child ran for less than {} ms ({}): take larger files for figures that repeat",
            SHORT.as_millis(),
            short.join(", ")
        ));
    }
    if !o.file_bytes.is_multiple_of(o.record_bytes) {
        let whole = (o.records() * o.record_bytes) >> 10;
        notes.push(format!(
            "the file size is not a multiple of the record size: {whole} kB are used"
        ));
    }
    if o.verify {
        notes.push("all data read were checked (-+d); the check is not in the timing".into());
    }
    notes
}
