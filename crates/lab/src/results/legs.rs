//! What cuts took of a volume, and of its legs.

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::column::{Column, always, wide, zero};
use super::row::{Order, Row, RowContext, TableLine};
use super::{Percentiles, Rate};

/// A variant under one kind of cut.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LegRow {
    /// What was cut.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// It is a model of somebody else's mirror.
    pub model: bool,
    /// Cuts.
    pub cuts: u64,
    /// Cuts after which flushed data could not be read any more.
    pub lost_flushed: Rate,
    /// How much of it, in KiB.
    pub lost_flushed_kb: Percentiles,
    /// How much of that no disk holds any more, in KiB.
    pub gone_kb: Percentiles,
    /// How much that was acknowledged and not flushed was lost, in KiB.
    pub lost_unflushed_kb: Percentiles,
    /// Cuts after which disks held different things when all was resynced.
    pub copies_differ: Rate,
    /// Cuts after which somebody had to do something before all legs were in use again.
    pub by_hand: Rate,
    /// Cuts after which nothing could be read.
    pub refused: Rate,
}

impl Row for LegRow {
    fn lines(&self, _results: &dyn RowContext) -> Vec<TableLine> {
        let ours = |column: Column| if self.model { column } else { zero(column) };
        let kib = |p: &Percentiles| Cell::plain(p.max(), 0);
        let columns = vec![
            always("cuts", Cell::Total(self.cuts)),
            ours(always("cuts that lost flushed data", Cell::Rate(self.lost_flushed))),
            always("most lost, KiB", kib(&self.lost_flushed_kb)),
            always("on no disk any more, KiB", kib(&self.gone_kb)),
            ours(always("disks differ", Cell::Rate(self.copies_differ))),
            always("by hand", Cell::Rate(self.by_hand)),
            wide("not readable at all", Cell::Rate(self.refused)),
            wide("most lost that was not flushed, KiB", kib(&self.lost_unflushed_kb)),
        ];
        vec![TableLine::new(
            Order::Volumes,
            format!("data at risk: {}", self.test),
            &self.variant,
            columns,
        )]
    }
}
