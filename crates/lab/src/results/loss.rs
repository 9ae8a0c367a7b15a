//! What power cuts took from the measured run itself.

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Unit, bytes};
use super::column::{always, wide};
use super::row::{Order, Row, RowContext, TableLine};
use super::{Percentiles, Rate};

/// What power cuts took from the measured run itself, made while something acknowledged was not
/// synced.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LossRow {
    /// Variant's name.
    pub variant: String,
    /// Cuts made, all while something was acknowledged and not promised. 0: that was never so, and
    /// no cut takes anything that had been acknowledged.
    pub cuts: u64,
    /// At so many different places, as in [`super::RiskRow`].
    pub places: u64,
    /// Bytes of the run's files together: what a cut could take at the most.
    pub data_bytes: u64,
    /// The share of the run's time in which something was acknowledged and not promised, 0 to 1;
    /// pauses in which nothing was asked of the devices do not count.
    pub unsynced_share: f64,
    /// Acknowledged bytes that no promise covered at the cuts.
    pub unsynced_bytes: Percentiles,
    /// Bytes of them that the cuts took, to 256 KiB.
    pub bytes: Percentiles,
    /// Milliseconds from the oldest acknowledged write that was lost to the cut.
    pub ms: Percentiles,
    /// Cuts after which the structure was damaged.
    pub damage: Rate,
    /// Whether more was logged than the journal holds.
    pub journal_wrapped: bool,
    /// Of the cuts after that: the steady state. `null`: the run is too short for it.
    pub steady: Option<SteadyLoss>,
}

/// What cuts took in the steady state, after the journal had wrapped.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteadyLoss {
    /// Bytes, as in `LossRow`.
    pub bytes: Percentiles,
    /// Milliseconds, as in `LossRow`.
    pub ms: Percentiles,
}

impl Row for LossRow {
    fn lines(&self, _results: &dyn RowContext) -> Vec<TableLine> {
        // As much as there was: it says nothing of what a larger run would lose.
        let all = self.bytes.max() >= self.data_bytes as f64;
        let most = match all {
            true => Cell::Text(format!(">= {}: all", bytes(self.bytes.max()))),
            false => Cell::of(self.bytes.max(), Unit::Bytes),
        };
        let not_reached = || Cell::Text("not reached".into());
        let steady = |value: fn(&SteadyLoss) -> f64| {
            self.steady.as_ref().map_or_else(not_reached, |s| Cell::of(value(s), Unit::Bytes))
        };
        let steady_cuts = self.steady.as_ref().map_or(0, |s| s.bytes.n());
        let columns = vec![
            wide("data", Cell::of(self.data_bytes as f64, Unit::Bytes)),
            always("time with unsynced data, %", Cell::plain(self.unsynced_share * 100.0, 1)),
            always("cuts in it", Cell::Total(self.cuts)),
            always("distinct places", Cell::Places(self.damage)),
            wide("unsynced p50", Cell::of(self.unsynced_bytes.p50(), Unit::Bytes)),
            always("lost p50", Cell::of(self.bytes.p50(), Unit::Bytes)),
            always("lost, most", most),
            wide("lost, age ms, virtual clock, p50", Cell::plain(self.ms.p50(), 0)),
            always("lost, age ms, virtual clock, most", Cell::plain(self.ms.max(), 0)),
            wide("cuts in steady state", Cell::Total(steady_cuts)),
            always("steady state: lost p50", steady(|s| s.bytes.p50())),
            always("steady state: lost, most", steady(|s| s.bytes.max())),
            wide("damage, cuts", Cell::Rate(self.damage)),
        ];
        vec![TableLine::new(Order::Loss, "loss of the measured run", &self.variant, columns)]
    }
}
