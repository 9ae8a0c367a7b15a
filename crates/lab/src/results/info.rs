//! What was run, by which clock, and what the machine did meanwhile.

use serde::{Deserialize, Serialize};
use steadfast_statistics::load::Load;

use super::row::Row;
use super::{Spread, SumKind};
use crate::scenario::Variant;

/// A variant.
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The options of the mount by FUSE through which it was cut, in real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuse: Option<String>,
    /// Its devices lie about flushes, or its flushes are left out: it must break promises.
    pub control: bool,
}

/// A configuration of the benchmark.
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantTime {
    /// Variant's name.
    pub variant: String,
    /// Seconds of the simulation's clock.
    pub virtual_seconds: f64,
    /// Blocks that were logged, over those that the log has: below one it never wrapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_used: Option<f64>,
}

impl Row for VariantTime {}

/// The speed of one test on one mounted variant, in real time.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerRow {
    /// The test.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Which of IOzone's two sums it is.
    pub figure: SumKind,
    /// The kernel's own, or ours by FUSE.
    pub path: Path,
    /// Speed in KiB a second, over the runs.
    pub kb_per_s: Spread,
    /// The first variant of the same file system.
    pub baseline: String,
    /// This one's speed over the baseline's, run by run; null for the baseline.
    pub ratio: Option<Spread>,
}

/// What the machine did beside the runs in real time: tasks that wanted to run, on average over a
/// minute; `null`: not known.
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// How the calls reach a variant where nothing else is said.
    pub(crate) fn of(variant: &Variant) -> Path {
        match (&variant.kernel, &variant.fuse) {
            (Some(_), _) => Path::Kernel,
            (None, Some(_)) => Path::Fuse,
            (None, None) => Path::InProcess,
        }
    }

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

/// Which clock a speed was taken by.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockKind {
    /// The wall clock: all that a run takes, its own code too, and whatever else the machine does.
    Wall,
    /// The simulation's: the modelled devices, and what of the code is declared.
    #[default]
    Virtual,
}

impl std::fmt::Display for ClockKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} clock", self.name())
    }
}

impl ClockKind {
    pub(crate) fn is_virtual(&self) -> bool {
        *self == ClockKind::Virtual
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            ClockKind::Wall => "wall",
            ClockKind::Virtual => "virtual",
        }
    }
}
