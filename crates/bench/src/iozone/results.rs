//! What came out, for programs. `docs/iozone.md` describes the JSON.

use serde::Serialize;

use super::latency::Latency;
use super::options::Options;
use super::plan::Test;
use super::stonewall::Summary;

/// Version of the JSON form: raised when a field changes its meaning or goes.
pub const VERSION: u32 = 1;
/// What the JSON of results says that it is.
pub const FORMAT: &str = "steadfast-iozone";
/// The same, of all sizes by all records.
pub(crate) const MATRIX_FORMAT: &str = "steadfast-iozone-matrix";

/// What the engine cannot know by itself; the caller knows it or leaves it out. It is passed in,
/// so that a simulated run's results do not depend on the machine or the time of day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// When the run began, as it shall be printed ("Fri Nov 20 19:54:09 2026").
    pub began: Option<String>,
    /// What -M prints: `uname -a`'s line, or what the stack is made of.
    pub machine: Option<String>,
    /// Memory that could hold cached data, to warn of figures that are the cache's.
    pub memory_bytes: Option<u64>,
    /// Write the same bytes every time, as IOzone does, instead of bytes that identify which
    /// write they are from. For simulations whose data nobody looks at: no model's time depends
    /// on what is written, and making the bytes is half of what such a run costs. Not with -+d.
    pub repeat_data: bool,
    /// Every sector that is written says which write it is from, whatever -V, -+w, -+y and -+C ask
    /// for: somebody reads it back after a power cut.
    pub judged: bool,
}

/// Everything that a command line gave.
#[derive(Debug, Clone, Serialize)]
pub struct IozoneResults {
    /// [`FORMAT`].
    pub format: &'static str,
    /// [`VERSION`].
    pub version: u32,
    /// The command line and what it was understood as.
    pub options: Options,
    /// When the run began, if known.
    pub began: Option<String>,
    /// The machine, if known.
    pub machine: Option<String>,
    /// What amounts are in: "kB" (1024 bytes) or "ops"; rates are that a second.
    pub unit: &'static str,
    /// One for each number of children.
    pub runs: Vec<ThroughputRun>,
    /// Warnings: what a reader of the figures should know.
    pub notes: Vec<String>,
}

/// All tests with one number of children.
#[derive(Debug, Clone, Serialize)]
pub struct ThroughputRun {
    /// How many children.
    pub children: usize,
    /// The tests in the order in which they ran.
    pub tests: Vec<TestResult>,
}

/// One test.
#[derive(Debug, Clone, Serialize)]
pub struct TestResult {
    /// Which.
    pub test: Test,
    /// IOzone's words for it: "initial writers".
    pub label: &'static str,
    /// The figures, in the results' unit (a second, or as an amount for `min_xfer`).
    #[serde(flatten)]
    pub summary: Summary,
    /// The parent's time, in nanoseconds.
    pub parent_ns: u64,
    /// Processor time of the process meanwhile (-+u).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_ns: Option<u64>,
    /// Each child.
    pub children: Vec<ChildResult>,
    /// Percentiles of the counted operations of all children.
    pub latency: Vec<Latency>,
}

/// One child in one test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChildResult {
    /// Its number.
    pub child: usize,
    /// Its file, by its path from the file system's root.
    pub file: String,
    /// What it did: "write", "random_read" ...
    pub role: &'static str,
    /// Bytes counted.
    pub bytes: u64,
    /// The same in the results' unit.
    pub xfer: f64,
    /// The child's time, in nanoseconds.
    pub elapsed_ns: u64,
    /// Its rate, in the results' unit a second.
    pub rate: f64,
    /// Whether another child's finishing ended its time.
    pub stopped: bool,
    /// Each operation, for -Q.
    #[serde(skip)]
    pub operations: Vec<super::matrix::LatencyLine>,
}

impl IozoneResults {
    /// All results of one test, one for each number of children.
    pub fn of(&self, test: Test) -> impl Iterator<Item = &TestResult> {
        self.runs.iter().flat_map(|run| &run.tests).filter(move |t| t.test == test)
    }

    /// The results as JSON, with a line end.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}
