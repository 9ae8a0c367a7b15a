//! What the zeros of a run are worth: the bugs that as many cuts of the same programs have shown,
//! each planted by itself.
//!
//! No product has the bugs. So a build with the feature `planted-bugs` makes the cuts beforehand
//! (the example `planted`), and what they showed comes with the program. It is quoted beside a run
//! only if that is of the same scenario, seed and number of cuts, and if its programs did the same.

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::column::{always, wide};
use super::row::{Order, Row, RowContext, TableLine};
use crate::scenario::Scenario;

/// What comes with the program.
const KEPT: &str = include_str!("../../planted-bugs.json");

/// Runs with planted bugs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlantedRuns {
    /// Version of the program that had them.
    pub program: String,
    /// The variants that were run.
    pub runs: Vec<PlantedRun>,
}

/// A variant, once with each bug.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlantedRun {
    /// The scenario's name.
    pub scenario: String,
    /// The variant's name.
    pub variant: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Cuts with each bug.
    pub cuts: u64,
    /// What was cut, in words.
    pub workload: String,
    /// A number for what the programs did.
    pub programs: u64,
    /// What each bug brought.
    pub bugs: Vec<PlantedBug>,
}

/// What cuts of a run with a bug have shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlantedBug {
    /// Its name.
    pub bug: String,
    /// So many cuts were looked at, in the order of time: until a few had shown it, or all.
    pub looked_at: u64,
    /// Cuts with broken promises.
    pub broken_promises: u64,
    /// Cuts with damage.
    pub damage: u64,
    /// Cuts that needed manual repair.
    pub manual_repair: u64,
    /// Bytes of stale data, over all cuts.
    pub stale_bytes: u64,
    /// The programs failed while they ran, with this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl PlantedBug {
    /// Whether any figure is not zero.
    pub fn is_shown(&self) -> bool {
        self.broken_promises + self.damage + self.manual_repair + self.stale_bytes > 0
            || self.failed.is_some()
    }
}

/// The planted bugs that the cuts of a variant show: in which of its figures.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRow {
    /// Variant's name.
    pub variant: String,
    /// How many bugs were planted, one at a time.
    pub planted: u64,
    /// Those that were seen as broken promises.
    pub broken_promises: Vec<String>,
    /// As damage or a need of manual repair.
    pub damage: Vec<String>,
    /// As stale data.
    pub stale_bytes: Vec<String>,
    /// Those that none of the cuts show.
    pub not_shown: Vec<String>,
}

impl PlantedRuns {
    /// What comes with the program.
    ///
    /// # Errors
    /// It cannot be read: a test sees to it that it can.
    pub fn kept() -> serde_json::Result<PlantedRuns> {
        serde_json::from_str(KEPT)
    }

    /// What is known of the cuts of a run.
    pub fn of(
        &self,
        scenario: &Scenario,
        variant: &str,
        (seed, cuts): (u64, u64),
        programs: u64,
    ) -> Option<ShownRow> {
        let same = |r: &&PlantedRun| {
            (r.scenario == scenario.name && r.variant == variant)
                && (r.seed, r.cuts, r.programs) == (seed, cuts, programs)
        };
        let run = self.runs.iter().find(same)?;
        let is_own = Scenario::find_own(&scenario.name).is_some_and(|own| own == *scenario);
        let names = |has: fn(&PlantedBug) -> bool| -> Vec<String> {
            run.bugs.iter().filter(|b| has(b)).map(|b| b.bug.clone()).collect()
        };
        is_own.then(|| ShownRow {
            variant: variant.to_owned(),
            planted: run.bugs.len() as u64,
            broken_promises: names(|b| b.broken_promises > 0),
            damage: names(|b| b.damage + b.manual_repair > 0 || b.failed.is_some()),
            stale_bytes: names(|b| b.stale_bytes > 0),
            not_shown: names(|b| !b.is_shown()),
        })
    }
}

impl Row for ShownRow {
    fn lines(&self, _results: &dyn RowContext) -> Vec<TableLine> {
        let names = |all: &[String]| match all {
            [] => Cell::None,
            all => Cell::Text(all.join(", ")),
        };
        let figures = [
            ("as broken promises", &self.broken_promises),
            ("as damage", &self.damage),
            ("as stale data", &self.stale_bytes),
        ];
        let shown = self.planted.saturating_sub(self.not_shown.len() as u64);
        let mut columns =
            vec![always("planted", Cell::count(self.planted)), always("shown", Cell::count(shown))];
        columns.extend(figures.map(|(how, all)| always(how, Cell::count(all.len() as u64))));
        columns.extend(figures.map(|(how, all)| wide(format!("{how}: names"), names(all))));
        columns.push(always("not shown", names(&self.not_shown)));
        vec![TableLine::new(
            Order::Planted,
            "planted bugs that as many cuts show",
            &self.variant,
            columns,
        )]
    }
}
