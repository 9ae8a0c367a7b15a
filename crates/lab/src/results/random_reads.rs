//! Random reads of a disk.

use serde::{Deserialize, Serialize};

use super::Percentiles;
use super::cell::{Cell, Unit};
use super::column::{Column, always, percentiles, wide};
use super::row::{Order, Row, RowContext, TableLine};

/// Reads of a variant's disk at random places.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RandomReadRow {
    /// The test's name.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Reads that were timed.
    pub reads: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// How long all took, in seconds of the results' clock.
    pub seconds: f64,
    /// Reads a second.
    pub reads_per_s: f64,
    /// Microseconds of a read.
    pub latency_us: Percentiles,
}

impl Row for RandomReadRow {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let [p50, tail, max] = percentiles("us", &self.latency_us, Unit::Plain(1));
        let columns = vec![
            wide("reads", Cell::count(self.reads)),
            wide("seconds", Cell::plain(self.seconds, 2)),
            always("reads/s", Cell::plain(self.reads_per_s, 0)),
            Column { wide: false, ..p50 },
            tail,
            max,
        ];
        vec![TableLine::new(
            Order::First,
            format!("random reads: {}, {}", self.test, results.clock()),
            &self.variant,
            columns,
        )]
    }
}
