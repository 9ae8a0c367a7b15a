//! Jobs of fio's.

use serde::{Deserialize, Serialize};

use super::Percentiles;
use super::cell::{Cell, Unit};
use super::column::{Column, always, percentiles, wide};
use super::row::{Order, Row, RowContext, TableLine};

/// The reads or the writes of a job, or of the jobs of a group together.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FioRow {
    /// The job's name, and `read` or `write`.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Requests that were counted.
    pub requests: u64,
    /// Speed in KiB a second.
    pub kb_per_s: f64,
    /// Requests a second.
    pub requests_per_s: f64,
    /// Calls of fsync and fdatasync of the job.
    pub fsyncs: u64,
    /// Microseconds from call to return.
    pub latency_us: Percentiles,
}

impl Row for FioRow {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let [p50, tail, max] = percentiles("us", &self.latency_us, Unit::Plain(1));
        let columns = vec![
            wide("requests", Cell::count(self.requests)),
            wide("fsyncs", Cell::count(self.fsyncs)),
            always("MiB/s", Cell::plain(self.kb_per_s / 1024.0, 1)),
            always("requests/s", Cell::plain(self.requests_per_s, 0)),
            Column { wide: false, ..p50 },
            tail,
            max,
        ];
        vec![TableLine::new(
            Order::First,
            format!("fio: {}, {}", self.test, results.clock()),
            &self.variant,
            columns,
        )]
    }
}
