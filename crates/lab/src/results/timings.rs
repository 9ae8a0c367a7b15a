//! What hdparm's timings found.

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Unit};
use super::column::{always, wide};
use super::row::{Order, Row, RowContext, TableLine};

/// One timing.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingRow {
    /// The command: `hdparm -t card`.
    pub test: String,
    /// The variant whose file it is; `null`: a device by itself.
    pub variant: Option<String>,
    /// Bytes that were read.
    pub bytes: u64,
    /// Seconds of the simulation's clock that it took.
    pub seconds: f64,
    /// Speed in KiB a second.
    pub kb_per_s: f64,
    /// What the source published, or null.
    pub published_kb_per_s: Option<f64>,
}

impl Row for TimingRow {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let published = self.published_kb_per_s;
        let percent = published.map(|kb| (self.kb_per_s / kb - 1.0) * 100.0);
        let columns = vec![
            wide("MiB read", Cell::plain((self.bytes >> 20) as f64, 0)),
            wide("seconds", Cell::plain(self.seconds, 2)),
            always("MiB/s", Cell::plain(self.kb_per_s / 1024.0, 2)),
            always("published", Cell::maybe(published.map(|kb| kb / 1024.0), Unit::Plain(2))),
            always("difference", Cell::maybe(percent, Unit::Difference)),
        ];
        let variant = self.variant.as_ref().map_or(String::new(), |v| format!("{v}: "));
        let name = format!("{variant}{}", self.test);
        vec![TableLine::new(Order::Devices, format!("hdparm, {}", results.clock()), name, columns)]
    }
}
