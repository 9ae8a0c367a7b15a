//! Copies by dd.

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Unit};
use super::column::{always, wide};
use super::row::{Order, Row, RowContext, TableLine};

/// A copy by dd on a variant.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyRow {
    /// The test's name.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Records that were read.
    pub records: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// How long it took, in seconds of the results' clock.
    pub seconds: f64,
    /// Records a second.
    pub records_per_s: f64,
    /// What the source published, at its own size.
    pub published_records_per_s: Option<f64>,
}

impl Row for CopyRow {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let published = self.published_records_per_s;
        let mut columns = vec![
            wide("records", Cell::count(self.records)),
            always("seconds", Cell::plain(self.seconds, 2)),
            always("records/s", Cell::plain(self.records_per_s, 0)),
            wide("MB/s", Cell::plain(self.bytes as f64 / 1e6 / self.seconds.max(1e-9), 2)),
        ];
        if published.is_some() {
            let difference = published.map(|p| (self.records_per_s / p - 1.0) * 100.0);
            columns.push(always("published", Cell::maybe(published, Unit::Plain(0))));
            columns.push(always("difference", Cell::maybe(difference, Unit::Difference)));
        }
        vec![TableLine::new(
            Order::First,
            format!("dd: {}, {}", self.test, results.clock()),
            &self.variant,
            columns,
        )]
    }
}
