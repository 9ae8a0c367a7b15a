//! The options of the modes with one file: single and auto.

use serde::Serialize;
use smart_default::SmartDefault;

use super::UsageError;
use super::size::{bytes, number};

/// How a mapped file's changes get to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MmapSync {
    /// When the system likes (-B).
    Plain,
    /// MS_ASYNC after each record (-B -D).
    Async,
    /// MS_SYNC after each record (-B -G).
    Sync,
}

/// Several requests at a time (-H, -k).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueueDepth {
    /// How many.
    pub requests: usize,
    /// Data is copied to and from the requests' own buffers (-H).
    pub copies: bool,
}

/// One file at a time, of each size with each record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, SmartDefault)]
pub struct Matrix {
    /// -a or -A.
    pub auto: bool,
    /// -A: only write and read, and a table of only these.
    pub short_table: bool,
    /// Sizes that were given (-s), in bytes.
    pub sizes: Vec<u64>,
    /// Records that were given (-r), in bytes.
    pub records: Vec<u64>,
    /// Smallest and largest file of auto mode, in bytes (-n, -g).
    #[default((64 << 10, 512 << 20))]
    pub files: (u64, u64),
    /// Smallest and largest record of auto mode, in bytes (-y, -q).
    #[default((4 << 10, super::RECORD_BYTES_MAX))]
    pub record_range: (u64, u64),
    /// Small records with large files, too (-z; -s, -r, -y and -q say so as well).
    pub no_cutoff: bool,
    /// From one size to the next (-+x).
    #[default(2)]
    pub multiplier: u64,
    /// Microseconds an operation (-N).
    pub microseconds: bool,
    /// The pread and pwrite tests (-E).
    pub extended: bool,
    /// Through a mapping (-B).
    pub mapped: Option<MmapSync>,
    /// Every other record of a mapped file by read and write (-Z).
    pub mapped_mixed: bool,
    /// Several requests at a time (-H, -k).
    pub depth: Option<QueueDepth>,
    /// Milliseconds of computing before each operation, taken off (-J).
    pub compute_ms: u64,
    /// Reads at other places in between (-K).
    pub disrupted: bool,
    /// The whole file is locked (-W).
    pub locked: bool,
    /// Where and how much is written, and when (-X).
    pub write_telemetry: Option<String>,
    /// Where and how much is read, and when (-Y).
    pub read_telemetry: Option<String>,
    /// Caches are dropped before each test that reads (--drop-caches).
    pub drop_caches: bool,
    /// Each cell so many times (--repeat).
    #[default(1)]
    pub repeat: u32,
    /// Cells that are done are kept in this file (--resume).
    pub resume: Option<String>,
}

/// Files above this have records of at least [`CUTOFF_RECORD`], unless the command line says
/// otherwise.
const CUTOFF_FILE: u64 = 16 << 20;
const CUTOFF_RECORD: u64 = 64 << 10;

impl Matrix {
    /// All file sizes with all records, in the order in which they run.
    pub fn cells(&self, file_bytes: u64, record_bytes: u64) -> Vec<(u64, u64)> {
        let files = match (&self.sizes[..], self.auto) {
            ([], true) => self.steps(self.files),
            ([], false) => vec![file_bytes],
            (given, _) => given.to_vec(),
        };
        let records = self.columns(record_bytes);
        let mut cells = Vec::new();
        for file in files {
            let cutoff = self.auto && !self.no_cutoff && file > CUTOFF_FILE;
            let fits = |r: &&u64| **r <= file && !(cutoff && **r < CUTOFF_RECORD);
            cells.extend(records.iter().filter(fits).map(|record| (file, *record)));
        }
        cells
    }

    /// All records of the run: the columns of the report.
    pub fn columns(&self, record_bytes: u64) -> Vec<u64> {
        match (&self.records[..], self.auto) {
            ([], true) => self.steps(self.record_range),
            ([], false) => vec![record_bytes],
            (given, _) => given.to_vec(),
        }
    }

    fn steps(&self, (from, to): (u64, u64)) -> Vec<u64> {
        std::iter::successors(Some(from), |n| n.checked_mul(self.multiplier))
            .take_while(|n| *n <= to)
            .collect()
    }
}

/// What was given, for the mode to decide on.
#[derive(Default)]
pub(super) struct MatrixOptions {
    pub(super) matrix: Matrix,
    /// Options that only these modes have.
    pub(super) only_here: Vec<String>,
    /// -D or -G without -B: they change how a mapping is used, but make none.
    pub(super) sync_mapped: Option<MmapSync>,
    pub(super) is_mapped: bool,
}

impl MatrixOptions {
    /// Takes an option: the line of the header, if it is one of these modes.
    pub(super) fn option(&mut self, name: &str, text: &str) -> Result<Option<String>, UsageError> {
        let m = &mut self.matrix;
        let kb = |bytes: u64| bytes >> 10;
        let mut line = String::new();
        match name {
            "-a" => line = set(&mut m.auto, "Auto Mode"),
            "-A" => {
                (m.auto, m.short_table, m.no_cutoff) = (true, true, true);
                line = "Auto Mode 2. This option is obsolete. Use -az -i0 -i1 ".into();
            }
            "-n" => {
                m.files.0 = bytes(name, text)?.max(4 << 10);
                line = format!("Using minimum file size of {} kilobytes.", kb(m.files.0));
            }
            "-g" => {
                m.files.1 = bytes(name, text)?.max(4 << 10);
                line = format!("Using maximum file size of {} kilobytes.", kb(m.files.1));
            }
            "-y" => {
                m.record_range.0 = bytes(name, text)?;
                m.no_cutoff = true;
                line = format!("Using Minimum Record Size {} kB", kb(m.record_range.0));
            }
            "-q" => {
                m.record_range.1 = super::parse::record_bytes(name, text)?;
                m.no_cutoff = true;
                line = format!("Using Maximum Record Size {} kB", kb(m.record_range.1));
            }
            "-+x" => m.multiplier = number(name, text, 2, 1 << 20)?,
            "-N" => {
                let what = "Microseconds/op Mode. Output is in microseconds per operation.";
                line = set(&mut m.microseconds, what);
            }
            "-B" => line = set(&mut self.is_mapped, "Using mmap files"),
            "-D" => {
                self.sync_mapped = Some(MmapSync::Async);
                // As IOzone has it: -D maps by itself, -G does not.
                line = set(&mut self.is_mapped, "Using msync(MS_ASYNC) on mmap files");
            }
            "-G" => {
                self.sync_mapped = Some(MmapSync::Sync);
                line = "Using msync(MS_SYNC) on mmap files".into();
            }
            "-Z" => line = set(&mut m.mapped_mixed, "Enable mmap & file I/O mixing."),
            "-H" | "-k" => {
                let requests = number(name, text, 1, 1024)? as usize;
                m.depth = Some(QueueDepth { requests, copies: name == "-H" });
                line = match name {
                    "-H" => format!("POSIX async I/O (with bcopy). Depth {requests}"),
                    _ => format!("POSIX Async I/O (no bcopy). Depth {requests} "),
                };
            }
            "-J" => m.compute_ms = number(name, text, 0, 3_600_000)?,
            "-K" => line = set(&mut m.disrupted, "Disrupted read patterns selected."),
            "-W" => line = set(&mut m.locked, "Lock file when reading/writing."),
            "-X" => {
                m.write_telemetry = Some(text.to_owned());
                line = format!("Using write telemetry file \"{text}\"");
            }
            "-Y" => {
                m.read_telemetry = Some(text.to_owned());
                line = format!("Using read telemetry file \"{text}\"");
            }
            "--drop-caches" => m.drop_caches = true,
            "--repeat" => m.repeat = number(name, text, 1, 1000)? as u32,
            "--resume" => m.resume = Some(text.to_owned()),
            _ => return Ok(None),
        }
        self.only_here.push(name.to_owned());
        Ok(Some(line))
    }

    /// What the options say together.
    pub(super) fn finish(mut self, file: u64, record: u64) -> Result<Matrix, UsageError> {
        let m = &mut self.matrix;
        let is_bound = |o: &&String| ["-n", "-g", "-y", "-q", "-+x"].contains(&o.as_str());
        if let (Some(bound), false) = (self.only_here.iter().find(is_bound), m.auto) {
            let message = format!("{bound} is a bound of auto mode: give -a, too");
            return Err(UsageError::new(255, message));
        }
        if self.is_mapped {
            m.mapped = Some(self.sync_mapped.unwrap_or(MmapSync::Plain));
        }
        let refused = [
            (m.mapped_mixed && m.mapped.is_none(), "-Z mixes mapped and other I/O: give -B, too"),
            (m.mapped.is_some() && m.depth.is_some(), "-B and -H or -k do not go together"),
            (m.mapped.is_some() && m.disrupted, "-B and -K do not go together"),
            (m.depth.is_some() && m.disrupted, "-K and -H or -k do not go together"),
            (m.depth.is_some() && m.compute_ms > 0, "-J and -H or -k do not go together"),
        ];
        refused.into_iter().try_for_each(|(wrong, why)| UsageError::when(wrong, 17, why))?;
        if !m.sizes.is_empty() || !m.records.is_empty() {
            m.no_cutoff = true;
        }
        // Several of a kind mean auto mode over the list.
        if m.sizes.len() > 1 || m.records.len() > 1 {
            m.auto = true;
            if m.records.is_empty() {
                m.records.push(record);
            }
            if m.sizes.is_empty() {
                m.sizes.push(file);
            }
        }
        let message = "no file is as large as a record: see -s and -r, or -g and -y";
        UsageError::when(m.cells(file, record).is_empty(), 23, message)?;
        Ok(self.matrix)
    }
}

fn set(flag: &mut bool, line: &str) -> String {
    *flag = true;
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auto() -> Matrix {
        Matrix { auto: true, ..Matrix::default() }
    }

    #[test]
    fn as_many_cells_as_iozone_runs() {
        let count = |m: Matrix| m.cells(512 << 10, 4 << 10).len();
        assert_eq!(count(auto()), 126);
        assert_eq!(count(Matrix { no_cutoff: true, ..auto() }), 146);
        let seed = Matrix { files: (64 << 10, 128 << 20), no_cutoff: true, ..auto() };
        assert_eq!(count(seed), 120);
        assert_eq!(count(Matrix::default()), 1);
    }
}
