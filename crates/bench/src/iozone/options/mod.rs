//! The command line.
//!
//! Parsed as IOzone does: getopt(3) with clustered flags and operands that may be glued on
//! (`-t3`), extended options `-+X` whose operand is the next word, sizes in kB unless k, m or g
//! follows. Where IOzone guesses (`-t many` runs eight children, `-s 0` takes 512 kB, a stray
//! word is ignored), we refuse.
//!
//! Options that a mode has not are refused by name: a benchmark that
//! silently leaves out an option measures something else than was asked for.

mod getopt;
mod help;
mod matrix;
mod parse;
mod size;
mod usage_error;

use serde::Serialize;
use smart_default::SmartDefault;

pub use help::HELP;
pub use matrix::{Matrix, MmapSync, QueueDepth};
pub use parse::{CommandLine, parse};
pub(crate) use size::RECORD_BYTES_MAX;
pub use usage_error::UsageError;

/// IOzone's MAXSTREAMS.
pub(crate) const CHILDREN_MAX: usize = 256;

/// What to run; without more IOzone's defaults, with one child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, SmartDefault)]
pub struct Options {
    /// The command line, beginning with "iozone".
    #[default("iozone".to_owned())]
    pub command_line: String,
    /// Bytes in each child's file (-s).
    #[default(512 << 10)]
    pub file_bytes: u64,
    /// Bytes in a record (-r).
    #[default(4 << 10)]
    pub record_bytes: u64,
    /// How many children, one run for each number (-t, -l and -u).
    #[default(vec![1])]
    pub children: Vec<usize>,
    /// The bounds given with -l and -u: the header names them.
    pub sweep: Option<(usize, usize)>,
    /// Tests selected with -i; `None` means all of IOzone's own.
    pub tests: Option<Vec<u8>>,
    /// The file of single and auto mode (-f); with many children their files' names begin so.
    #[default("iozone".to_owned())]
    pub base: String,
    /// One name for each child (-F).
    pub files: Option<Vec<String>>,
    /// O_SYNC (-o).
    pub sync: bool,
    /// O_DSYNC (-+D).
    pub dsync: bool,
    /// O_DIRECT (-I).
    pub direct: bool,
    /// fsync inside the timing (-e).
    pub include_fsync: bool,
    /// close inside the timing (-c).
    pub include_close: bool,
    /// Stonewalling; off with -x.
    #[default(true)]
    pub stonewall: bool,
    /// "thread" instead of "process" in the text (-T). Children are tasks either way.
    pub threads: bool,
    /// Rates in operations a second (-O).
    pub ops: bool,
    /// A line for each child (-C).
    pub child_lines: bool,
    /// The text report (-R).
    pub report: bool,
    /// Files are left in place (-w).
    pub keep_files: bool,
    /// No rewrite and no re-read (-+n).
    pub no_retest: bool,
    /// The initial write does not truncate a file that is there (-+N).
    pub no_truncate: bool,
    /// Every byte that is read is checked (-+d).
    pub verify: bool,
    /// Per cent of the children that read in the mixed test (-+p).
    pub mixed_readers_percent: Option<u32>,
    /// Number of children that read in the mixed test (-+K).
    pub mixed_readers: Option<u32>,
    /// The mixed test reads and writes in order (-+B).
    pub mixed_sequential: bool,
    /// Microseconds between the children's starts (-d).
    pub start_delay_us: u64,
    /// Seconds of pause after each test, on top of `settle_ms` (-+q).
    pub rest_s: u64,
    /// Stride of the stride test in records (-j).
    #[default(17)]
    pub stride: u64,
    /// Processor cache in kB: in the header only (-S).
    #[default(1024)]
    pub cache_kb: u64,
    /// Processor cache line in bytes: in the header only (-L).
    #[default(32)]
    pub cache_line: u64,
    /// Milliseconds of pause after the sync that follows each test; IOzone's two seconds.
    #[default(2000)]
    pub settle_ms: u64,
    /// One file at a time, in single or auto mode; `None`: throughput mode.
    pub matrix: Option<Matrix>,
    /// Per cent of each record that is the same in all files (-+w).
    pub dedup_percent: u32,
    /// Per cent of that part that is the same in all records, too (-+y).
    pub dedup_within_percent: u32,
    /// Per cent of that part that is the same in all records of a file, but no other file (-+C).
    pub dedup_file_percent: u32,
    /// Every byte written is this one, and is checked (-V).
    pub pattern: Option<u8>,
    /// Processor use (-+u).
    pub cpu_use: bool,
    /// Files with the latency of each operation (-Q).
    pub latency_files: bool,
    /// The first processor to run on (-P).
    pub processor: Option<u32>,
    /// Where to write the report as a spreadsheet (-b).
    pub spreadsheet: Option<String>,
    /// Where to write the results as JSON ("-" is standard output): `--json`.
    pub json: Option<String>,
    /// The header's lines, in the order of the options that caused them.
    #[serde(skip)]
    pub banner: Vec<BannerLine>,
}

/// A line of the header that an option causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BannerLine {
    /// `Machine = ...` (-M).
    Machine,
    /// As it stands, without the tabulator in front and the line end.
    Text(String),
}

impl Options {
    /// Whole records in a file.
    pub fn records(&self) -> u64 {
        self.file_bytes / self.record_bytes
    }

    /// What figures are in: "kB" or "ops" a second, or "us/op".
    pub(crate) fn unit(&self) -> &'static str {
        match (self.ops, self.matrix.as_ref().is_some_and(|m| m.microseconds)) {
            (_, true) => "us/op",
            (true, false) => "ops",
            (false, false) => "kB",
        }
    }

    /// Bytes of all files that are there at a time, at the most.
    pub fn data_bytes(&self) -> u64 {
        match &self.matrix {
            Some(matrix) => {
                let cells = matrix.cells(self.file_bytes, self.record_bytes);
                cells.iter().map(|(file, _)| *file).max().unwrap_or(self.file_bytes)
            }
            None => {
                let files = self.children.iter().max().copied().unwrap_or(1) as u64;
                files.saturating_mul(self.file_bytes)
            }
        }
    }

    /// The file of a child, as the command line names it.
    pub fn file_of(&self, child: usize) -> String {
        match &self.files {
            Some(files) => files[child].clone(),
            None => format!("{}.DUMMY.{child}", self.base),
        }
    }
}
