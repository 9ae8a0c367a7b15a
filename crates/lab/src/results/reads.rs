//! What reading beside a writer found.

use serde::{Deserialize, Serialize};

use super::Percentiles;
use super::cell::{Cell, Unit};
use super::column::{Column, always, only_wide, percentiles, wide};
use super::row::{Order, Row, RowContext, TableLine};

/// How long it took to read a cold file while another was written flat out.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadRow {
    /// The test: where the file is.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Seconds, before there was a writer.
    pub idle_seconds: Percentiles,
    /// Seconds, beside the writer.
    pub seconds: Percentiles,
    /// The median beside the writer over the median without.
    pub times_idle: f64,
    /// What the source published, or null.
    pub published_seconds: Option<f64>,
    /// Milliseconds of each read(2) beside the writer.
    pub call_ms: Percentiles,
    /// What the writer wrote meanwhile, in KiB a second.
    pub written_kb_per_s: f64,
}

/// What waited in the request scheduler's queue, from when the writer began.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueSeries {
    /// Variant's name.
    pub variant: String,
    /// Milliseconds between two values.
    pub every_ms: f64,
    /// When the first file was begun to be read, in seconds.
    pub reads_from_s: f64,
    /// KiB of writes that waited.
    pub write_kb: Vec<f64>,
    /// KiB of reads that waited.
    pub read_kb: Vec<f64>,
}

impl Row for QueueSeries {}

impl Row for ReadRow {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let digits = match self.seconds.max() {
            s if s < 0.1 => 4,
            s if s < 1.0 => 2,
            _ => 1,
        };
        let [p50, tail, max] = percentiles("s", &self.seconds, Unit::Plain(digits));
        let [call_p50, call_tail, call_max] =
            percentiles("read(2) ms", &self.call_ms, Unit::Plain(2));
        let columns = vec![
            Column { wide: false, ..p50 },
            always("s, published", Cell::maybe(self.published_seconds, Unit::Plain(0))),
            tail,
            max,
            wide("trials", Cell::count(self.seconds.n())),
            always("idle s p50", Cell::plain(self.idle_seconds.p50(), digits.max(2))),
            always("times idle", Cell::of(self.times_idle, Unit::Times)),
            only_wide(call_p50),
            only_wide(call_tail),
            call_max,
            always("writer, MiB/s", Cell::plain(self.written_kb_per_s / 1024.0, 1)),
        ];
        let mib = self.bytes >> 20;
        let title = format!("{}: {mib} MiB beside a writer, {}", self.test, results.clock());
        vec![TableLine::new(Order::First, title, &self.variant, columns)]
    }
}
