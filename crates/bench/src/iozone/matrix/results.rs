//! What came out, for programs.

use serde::{Deserialize, Serialize};

use super::column::Column;
use crate::iozone::latency::Latency;
use crate::iozone::options::{Matrix, Options};

/// Everything that a command line gave. `docs/iozone.md` describes the JSON.
#[derive(Debug, Clone, Serialize)]
pub struct MatrixResults {
    /// `iozone::results::MATRIX_FORMAT`.
    pub format: &'static str,
    /// [`VERSION`](crate::iozone::results::VERSION).
    pub version: u32,
    /// What the command line was understood as.
    pub options: Options,
    /// When the run began, if known.
    pub began: Option<String>,
    /// The machine, if known.
    pub machine: Option<String>,
    /// What figures are in: "kB" or "ops" a second, or "us/op".
    pub unit: String,
    /// In the order in which they ran.
    pub cells: Vec<Cell>,
    /// Warnings.
    pub notes: Vec<String>,
}

/// A file size with a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// The tests that were run, in order.
    pub measures: Vec<Measure>,
}

/// A test of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Which.
    pub column: Column,
    /// Each time it was run.
    pub runs: Vec<RunOf>,
    /// It says how fast the page cache is, and nothing of the device: the file fits in memory,
    /// and nothing made it durable in the time, or dropped it before.
    pub only_the_cache: bool,
}

/// A test that was run once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOf {
    /// Bytes that were moved.
    pub bytes: u64,
    /// In this time.
    pub elapsed_ns: u64,
    /// Percentiles of each kind of operation in it.
    pub latency: Vec<Latency>,
    /// Processor time of the process meanwhile (-+u).
    pub cpu_ns: Option<u64>,
    /// How the caches were dropped before, if they were.
    pub caches: Option<String>,
    /// Each operation, for -Q.
    #[serde(skip)]
    pub operations: Vec<LatencyLine>,
}

/// One operation, as -Q writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyLine {
    /// Byte offset.
    pub offset: u64,
    /// How long it took.
    pub ns: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Cell {
    /// A test's results.
    pub fn measure(&self, column: Column) -> Option<&Measure> {
        self.measures.iter().find(|m| m.column == column)
    }
}

/// Two-sided 95 % points of Student's distribution, for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl RunOf {
    /// Bytes a second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }

    /// Processor time as per cent of the time that passed.
    pub(crate) fn cpu_percent(&self) -> Option<f64> {
        Some(100.0 * self.cpu_ns? as f64 / self.elapsed_ns.max(1) as f64)
    }
}

impl Measure {
    /// The figure of the table: the mean of all runs, in kB a second, in records a second (-O) or
    /// in microseconds a record (-N).
    pub fn figure(&self, record: u64, options: &Options) -> u64 {
        let rate = self.runs.iter().map(RunOf::rate).sum::<f64>() / self.runs.len().max(1) as f64;
        let microseconds = options.matrix.as_ref().is_some_and(|m| m.microseconds);
        if microseconds {
            (record as f64 / rate.max(1e-9) * 1e6) as u64
        } else if options.ops {
            (rate / record as f64) as u64
        } else {
            // As IOzone truncates.
            rate as u64 >> 10
        }
    }

    /// Half the width of the 95 % confidence interval of the mean, in per cent of it; `None` for
    /// one run.
    pub(crate) fn interval_percent(&self) -> Option<f64> {
        let n = self.runs.len();
        if n < 2 {
            return None;
        }
        let rates: Vec<f64> = self.runs.iter().map(RunOf::rate).collect();
        let mean = rates.iter().sum::<f64>() / n as f64;
        let squares: f64 = rates.iter().map(|r| (r - mean).powi(2)).sum();
        let error = (squares / (n - 1) as f64).sqrt() / (n as f64).sqrt();
        let t = STUDENT.get(n - 2).copied().unwrap_or(1.96);
        Some(100.0 * t * error / mean.max(1e-9))
    }

    /// Mean processor use of the runs.
    pub(crate) fn cpu_percent(&self) -> Option<f64> {
        let all: Option<Vec<f64>> = self.runs.iter().map(RunOf::cpu_percent).collect();
        let all = all?;
        Some(all.iter().sum::<f64>() / all.len().max(1) as f64)
    }
}

impl MatrixResults {
    /// The results as JSON, with a line end.
    ///
    /// # Errors
    /// None is known.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// What a reader of the figures should know.
pub(super) fn notes(results: &MatrixResults, matrix: &Matrix) -> Vec<String> {
    let mut notes = Vec::new();
    let all = results.cells.len();
    let of = |is: &dyn Fn(&Measure) -> bool| {
        results.cells.iter().filter(|c| c.measures.iter().any(is)).count()
    };
    for (reads, what, how) in
        [(true, "reads", "-I or --drop-caches"), (false, "writes", "-e or -o")]
    {
        let cells = of(&|m| m.only_the_cache && m.column.reads() == reads);
        if cells > 0 {
            notes.push(format!(
                "in {cells} of {all} cells {what} are the page cache's, not the device's ({how} \
                 changes that); --json marks them (only_the_cache)"
            ));
        }
    }
    let cells = of(&|m| m.runs.iter().any(|r| r.elapsed_ns < 100_000_000));
    if cells > 0 {
        notes.push(format!(
            "in {cells} of {all} cells a test took less than 100 ms: give --repeat for intervals"
        ));
    }
    if results.options.verify || results.options.pattern.is_some() {
        notes.push("all data read were checked; the check is not in the timing".into());
    }
    if matrix.repeat > 1 {
        notes.push(format!("figures are means of {} runs of each cell", matrix.repeat));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_intervals() {
        let run = |elapsed_ns| RunOf {
            bytes: 1 << 20,
            elapsed_ns,
            latency: Vec::new(),
            cpu_ns: None,
            caches: None,
            operations: Vec::new(),
        };
        let runs = vec![run(1_000_000_000), run(500_000_000)];
        let measure = Measure { column: Column::Write, runs, only_the_cache: false };
        let mut options = Options::default();
        assert_eq!(measure.figure(4096, &options), 1536);
        // 1 and 2 MB/s: mean 1.5, standard error 0.5, t(1) = 12.706.
        let interval = measure.interval_percent().unwrap();
        assert!((interval - 100.0 * 12.706 * 0.5 / 1.5).abs() < 0.01, "{interval}");
        options.ops = true;
        assert_eq!(measure.figure(4096, &options), 384);
        options.matrix = Some(Matrix { microseconds: true, ..Matrix::default() });
        assert_eq!(measure.figure(4096, &options), 2604);
    }
}
