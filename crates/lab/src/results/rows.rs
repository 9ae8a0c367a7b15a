//! The rows of a run's results: one a test and variant, or one a variant.

use serde::{Deserialize, Serialize};
use steadfast_bench::distribution::Distribution;
use steadfast_statistics::load::{Load, not_ranked};
use steadfast_statistics::rank::{places, rounds_needed};

use super::statistics::{Percentiles, Rate, Spread};

/// A variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantInfo {
    /// Its name in the scenario.
    pub name: String,
    /// For people.
    pub label: String,
    /// The devices, in words.
    pub devices: Vec<String>,
    /// Mount options.
    pub mount: String,
    /// Of several configurations of the benchmark, the one that it is run with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The kernel's file system that it is, in real time; `null`: Steadfast's own.
    pub kernel: Option<String>,
    /// Its devices lie about flushes, or its flushes are left out: it must break promises.
    pub control: bool,
}

/// A configuration of the benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfigurationInfo {
    /// Its name in the scenario.
    pub name: String,
    /// For people.
    pub label: String,
    /// IOzone's command line, as it was run.
    pub command: String,
    /// That of the runs that are cut.
    pub risk_command: String,
}

/// How long a variant's benchmark took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Variant's name.
    pub variant: String,
    /// Seconds of the simulation's clock.
    pub virtual_seconds: f64,
    /// Blocks that were logged, over those that the log has: below one it never wrapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_used: Option<f64>,
}

/// The speed of one test on one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The test: "initial write", "rewrite", ...
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// `children` or `parent`: which of IOzone's two sums `kb_per_s` is.
    pub figure: Figure,
    /// Speed in kB (1024 bytes) a second.
    pub kb_per_s: f64,
    /// What the source published for this test and variant, or null.
    pub published_kb_per_s: Option<f64>,
    /// Sum over the children's own speeds.
    pub children_kb_per_s: f64,
    /// Counted bytes over the parent's time.
    pub parent_kb_per_s: f64,
    /// Of what the test read, the share that the disk has read meanwhile; null: it read nothing,
    /// or nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_from_disk: Option<f64>,
    /// The same of what it wrote. What goes home later is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_to_disk: Option<f64>,
    /// Latency of one record, microseconds: p50, p99, max.
    pub latency_us: Option<Percentiles>,
    /// The same of all records, in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
}

/// Which of IOzone's sums a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// "Children see throughput".
    #[default]
    Children,
    /// "Parent sees throughput".
    Parent,
}

/// The speed of one test on one mounted variant, in real time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerRow {
    /// The test.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Which of IOzone's two sums it is.
    pub figure: Figure,
    /// The kernel's own, or ours by FUSE.
    pub path: Path,
    /// Speed in kB (1024 bytes) a second, over the runs.
    pub kb_per_s: Spread,
    /// The first variant of the same file system.
    pub baseline: String,
    /// This one's speed over the baseline's, run by run; null for the baseline.
    pub ratio: Option<Spread>,
}

/// One test's speed on a variant over the same on the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The test.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// The baseline's name.
    pub baseline: String,
    /// Variant over baseline.
    pub ratio: f64,
    /// The source's ratio, or null.
    pub published_ratio: Option<f64>,
    /// `ratio` against `published_ratio` in per cent; null without one.
    pub difference_percent: Option<f64>,
}

/// What power cuts took from one variant: the figures that docs/risk.md defines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RiskRow {
    /// Variant's name.
    pub variant: String,
    /// Cuts made.
    pub cuts: u64,
    /// At so many different places of the run: by what the devices held and what was in doubt.
    pub places: u64,
    /// Acknowledged-durable operations whose effect was missing, over all cuts.
    pub broken_promises: u64,
    /// Cuts with at least one broken promise.
    pub cuts_with_broken_promises: Rate,
    /// Control: the same run, cut as if the drive ignored every flush.
    pub control_flush_ignored: Option<ControlRow>,
    /// Control: the same run, cut as if the file system had never asked for a flush. On devices
    /// without a volatile cache nothing can come of it, and the zeros of such a variant say nothing
    /// about flushes.
    pub control_flushes_omitted: Option<ControlRow>,
    /// Bytes of acknowledged work that a cut took.
    pub exposure_bytes: Percentiles,
    /// Operations of acknowledged work that a cut took.
    pub exposure_operations: Percentiles,
    /// What the times of the run that was cut are of, `exposure_ms` too.
    pub run_clock: Clock,
    /// Milliseconds from the oldest acknowledged operation that was lost to the cut.
    pub exposure_ms: Percentiles,
    /// Write calls found half old, half new, over all cuts.
    pub torn_writes: u64,
    /// Units of 4096 bytes of one write call found half old, half new, over all cuts.
    pub torn_units: u64,
    /// Stale data exposed: bytes found in a file that were never written to it, over all cuts.
    pub stale_bytes: u64,
    /// Writes that survived where an earlier one in the same file did not, over all cuts.
    pub order_violations: u64,
    /// Empty after rename: names that a rename gave to a file whose data, written before it, is
    /// missing; over all cuts.
    pub empty_after_rename: u64,
    /// Those of them for which a file that was there before has gone.
    pub empty_after_replace: u64,
    /// Cuts after which the file system's structure was damaged or could not be mounted.
    pub damage: Rate,
    /// Cuts after which recovery needed manual repair.
    pub manual_repair: Rate,
    /// Cuts whose result e2fsck -fn judged too, and how many of these it did not call clean.
    pub e2fsck_checked: u64,
    /// See `e2fsck_checked`.
    pub e2fsck_damage: u64,
    /// What the time of the recovery is of.
    pub recovery_clock: Clock,
    /// Milliseconds from power on to mounted.
    pub recovery_ms: Percentiles,
    /// Of as many of these cuts as a variant of the kernel's has, if one stands beside it: bytes of
    /// acknowledged work that a cut took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub few_exposure_bytes: Option<Percentiles>,
    /// The same of its age, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub few_exposure_ms: Option<Percentiles>,
    /// A number for what the programs that were cut did, however far they got; not in `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<u64>,
    /// The first findings, in words.
    pub findings: Vec<String>,
    /// What could not be judged, if there is such; not in `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_judged: Option<NotJudged>,
}

impl RiskRow {
    /// Bytes of acknowledged work that a cut took, of as many cuts as the variants beside it have.
    pub(crate) fn comparable_bytes(&self) -> &Percentiles {
        self.few_exposure_bytes.as_ref().unwrap_or(&self.exposure_bytes)
    }

    /// The same of its age, in milliseconds.
    pub(super) fn comparable_ms(&self) -> &Percentiles {
        self.few_exposure_ms.as_ref().unwrap_or(&self.exposure_ms)
    }
}

/// The age of what cuts took, cut by cut in the order of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgeSeries {
    /// Variant's name.
    pub variant: String,
    /// What both times are of.
    pub clock: Clock,
    /// When the cut was, in milliseconds from the beginning of the run.
    pub at_ms: Vec<u64>,
    /// Milliseconds from the oldest acknowledged operation that was lost to the cut; 0: none was.
    pub age_ms: Vec<u64>,
}

/// Cuts that could not be judged because something failed on this machine: no room for an image, a
/// program that did not end. This says nothing of the file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotJudged {
    /// Cuts of which nothing is known; they are not among the row's cuts.
    pub cuts: u64,
    /// Cuts that another program was to judge too, and could not.
    pub opinions: u64,
    /// Why, the first time.
    pub why: String,
}

/// What power cuts took from the measured run itself, made while something acknowledged was not
/// synced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossRow {
    /// Variant's name.
    pub variant: String,
    /// Cuts made, all while something was acknowledged and not promised. 0: that was never so, and
    /// no cut takes anything that had been acknowledged.
    pub cuts: u64,
    /// At so many different places, as in [`RiskRow`].
    pub places: u64,
    /// Bytes of the run's files together: what a cut could take at the most.
    pub data_bytes: u64,
    /// The share of the run's time in which something was acknowledged and not promised, 0 to 1;
    /// pauses in which nothing was asked of the devices do not count.
    pub unsynced_share: f64,
    /// Acknowledged bytes that no promise covered at the cuts.
    pub unsynced_bytes: Percentiles,
    /// Bytes of them that the cuts took, to 256 KiB.
    pub bytes: Percentiles,
    /// Milliseconds from the oldest acknowledged write that was lost to the cut.
    pub ms: Percentiles,
    /// Cuts after which the structure was damaged.
    pub damage: Rate,
    /// Whether more was logged than the journal holds.
    pub journal_wrapped: bool,
    /// Of the cuts after that: the steady state. `null`: the run is too short for it.
    pub steady: Option<SteadyLoss>,
}

/// What cuts took in the steady state, after the journal had wrapped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteadyLoss {
    /// Bytes, as in [`LossRow`].
    pub bytes: Percentiles,
    /// Milliseconds, as in [`LossRow`].
    pub ms: Percentiles,
}

/// A control of a variant: the same run without something that its promises stand on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlRow {
    /// Cuts made.
    pub cuts: u64,
    /// As in [`RiskRow`].
    pub broken_promises: u64,
    /// Cuts with at least one.
    pub cuts_with_broken_promises: Rate,
    /// Whether promises must be broken: some device has a volatile cache.
    pub must_break: bool,
}

impl ControlRow {
    /// The control did not fail as it must: the zeros beside it prove nothing.
    pub fn is_blind(&self) -> bool {
        self.must_break && self.broken_promises == 0
    }
}

/// How fast the workload of files was on one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilesRow {
    /// Variant's name.
    pub variant: String,
    /// How its calls reach the file system.
    pub path: Path,
    /// What the times below are of.
    pub clock: Clock,
    /// Where the runs that are measured are others than the one that is cut: the speed of that one,
    /// in virtual time for Steadfast, in real time for the kernel.
    pub cut_run_operations_per_s: Option<f64>,
    /// Of the variants whose calls are system calls, which place this one has by speed: the best
    /// and the worst that the runs allow (`steadfast_statistics::rank`). `null`: nothing can be
    /// said.
    pub place: Option<(u64, u64)>,
    /// Calls made, over all runs.
    pub operations: u64,
    /// Calls a second of the time that the programs spent in calls; in real time, over the runs.
    pub operations_per_s: Spread,
    /// The same of each run in real time, in the order of the turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_operations_per_s: Vec<f64>,
    /// That time, added up over the programs.
    pub in_calls_seconds: f64,
    /// From the first call to the last return, pauses included; of several runs the median.
    pub elapsed_seconds: f64,
    /// Calls that were an fsync, an fdatasync or an fsync of a folder.
    pub fsyncs: u64,
    /// How long these took, in milliseconds.
    pub fsync_ms: Percentiles,
    /// The same of all of them, in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsync_distribution: Option<Distribution>,
}

impl FilesRow {
    /// How its calls were made and timed, in words: `by system calls, wall clock`.
    pub fn way(&self) -> String {
        format!("{}, {} clock", self.path.name(), self.clock.name())
    }
}

/// What the machine did beside the runs in real time: tasks that wanted to run, on average over a
/// minute; `null`: not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// Before the first of them.
    pub before: Option<f64>,
    /// After the last, which is of them too.
    pub after: Option<f64>,
    /// Processors that there are.
    pub processors: u64,
}

impl MachineLoad {
    /// The machine's that these runs are on now, before them and after.
    pub fn of(before: Option<Load>, after: Option<Load>) -> MachineLoad {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        let average = |load: Option<Load>| load.map(|load| load.average);
        MachineLoad { before: average(before), after: average(after), processors }
    }

    /// Before them.
    pub fn at_start(&self) -> Option<Load> {
        // OK to cast: processors of a machine.
        Some(Load { average: self.before?, processors: self.processors as usize })
    }
}

impl std::fmt::Display for MachineLoad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said = |load: Option<f64>| load.map_or("unknown".to_owned(), |l| format!("{l:.2}"));
        write!(
            f,
            "The machine's load (tasks that wanted to run, over a minute) was {} before the runs \
             in real time and {} after them, on {} processors.",
            said(self.before),
            said(self.after),
            self.processors
        )
    }
}

/// How calls reach a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// Steadfast, called in the same process.
    InProcess,
    /// Steadfast, mounted by FUSE: by system calls.
    Fuse,
    /// The kernel's own: by system calls.
    Kernel,
}

impl Path {
    /// For people, as a column says it.
    pub fn name(self) -> &'static str {
        match self {
            Path::InProcess => "in process",
            Path::Fuse | Path::Kernel => "by system calls",
        }
    }

    /// Whether a call is a system call.
    pub(crate) fn is_system_call(self) -> bool {
        self != Path::InProcess
    }
}

/// Gives the variants whose calls are system calls their places by speed, if there are enough runs
/// on a machine that was quiet before them; else says why there are none.
pub fn place(files: &mut [FilesRow], before: Option<Load>) -> Option<String> {
    let mut rows: Vec<&mut FilesRow> =
        files.iter_mut().filter(|f| f.path.is_system_call()).collect();
    let runs = rows.iter().map(|f| f.each_operations_per_s.len()).min()?;
    let needed = rounds_needed(rows.len());
    let few = || {
        let why = format!("not ranked: {runs} runs; an order of {} needs {needed}", rows.len());
        (runs < needed).then_some(why)
    };
    if let Some(why) = not_ranked(before).or_else(few) {
        return Some(why);
    }
    let speeds: Vec<Vec<f64>> = rows.iter().map(|f| f.each_operations_per_s.clone()).collect();
    for (row, (best, worst)) in rows.iter_mut().zip(places(&speeds)) {
        row.place = Some((best as u64, worst as u64));
    }
    None
}

/// Which clock a speed was taken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The wall clock: all that a run takes, its own code too, and whatever else the machine does.
    Wall,
    /// The simulation's: the modelled devices, and what of the code is declared.
    Virtual,
}

impl Clock {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Wall => "wall",
            Clock::Virtual => "virtual",
        }
    }
}

/// A variant in the chart of speed against exposure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Variant's name.
    pub variant: String,
    /// How fast.
    pub speed: Spread,
    /// Of what, in which unit: "calls/s, wall clock", "initial write, kB/s, virtual time".
    pub speed_unit: String,
    /// Bytes of acknowledged work that a cut took: the 99th percentile, or the greatest of few.
    pub exposure_bytes: f64,
    /// Its age in milliseconds, the same.
    pub exposure_ms: f64,
    /// Which of the two it is: "p99", "max of 60".
    pub exposure_is: String,
    /// What `exposure_ms` is of.
    pub exposure_clock: Clock,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: Path, speeds: &[f64]) -> FilesRow {
        FilesRow {
            variant: "a".into(),
            path,
            clock: Clock::Wall,
            cut_run_operations_per_s: None,
            place: None,
            operations: 1,
            operations_per_s: Spread::of(speeds),
            each_operations_per_s: speeds.to_vec(),
            in_calls_seconds: 1.0,
            elapsed_seconds: 1.0,
            fsyncs: 0,
            fsync_ms: Percentiles::default(),
            fsync_distribution: None,
        }
    }

    #[test]
    fn places_need_a_difference_runs_and_a_quiet_machine() {
        let speeds =
            |of: f64, n: u32| -> Vec<f64> { (0..n).map(|i| of + f64::from(i * 7 % 11)).collect() };
        let rows = |n| {
            [
                row(Path::Kernel, &speeds(100.0, n)),
                row(Path::Fuse, &speeds(101.0, n)),
                row(Path::Kernel, &speeds(10.0, n)),
                row(Path::InProcess, &speeds(500.0, n)),
            ]
        };
        let load = |average| Some(Load { average, processors: 2 });
        let mut enough = rows(7);
        assert_eq!(place(&mut enough, load(0.4)), None);
        let places: Vec<_> = enough.iter().map(|r| r.place).collect();
        assert_eq!(places, [Some((1, 2)), Some((1, 2)), Some((3, 3)), None]);
        for (n, load, why) in [
            (5, load(0.4), "not ranked: 5 runs; an order of 3 needs 7"),
            (7, load(8.61), "not ranked: load was 8.6"),
            (7, None, "not ranked: the load is not known"),
        ] {
            let mut rows = rows(n);
            assert_eq!(place(&mut rows, load).as_deref(), Some(why));
            assert!(rows.iter().all(|r| r.place.is_none()));
        }
        assert_eq!(place(&mut [], None), None);
    }
}
