//! Published figures beside the range over what the source leaves unknown.

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Unit};
use super::column::{always, wide};
use super::row::{Order, Row, RowContext, TableLine};
use super::seed::SeedResults;

/// A published figure, and what it is over the combinations of what the source leaves unknown.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BandRow {
    /// The test.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Combinations that the range is over.
    pub combinations: u64,
    /// Its speed in KiB a second.
    pub kb_per_s: BandFigure,
    /// Its speed over the baseline's; null for the baseline.
    pub ratio: Option<BandFigure>,
}

/// A figure of the source's, and ours.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BandFigure {
    /// What the source published.
    pub published: f64,
    /// The least of all combinations.
    pub lowest: f64,
    /// The greatest.
    pub highest: f64,
    /// With the scenario's own values.
    pub default: f64,
}

impl BandFigure {
    /// Whether the published figure is in the range, as a table shows both.
    fn is_inside(&self, unit: Unit) -> bool {
        let shown = |x| Cell::of(x, unit).text().0;
        let equal = |x| shown(x) == shown(self.published);
        (self.lowest..=self.highest).contains(&self.published)
            || equal(self.lowest)
            || equal(self.highest)
    }

    fn scaled(&self, factor: f64) -> BandFigure {
        let BandFigure { published, lowest, highest, default } = *self;
        BandFigure {
            published: published * factor,
            lowest: lowest * factor,
            highest: highest * factor,
            default: default * factor,
        }
    }
}

/// A combination of what the source leaves unknown.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CombinationRow {
    /// What is other than in the scenario.
    pub settings: String,
    /// The published figure that it is farthest from, of those that it is to fit, or of all ratios.
    pub farthest: String,
    /// By how much, in per cent.
    pub off_percent: f64,
    /// Whether it fits what it has to.
    pub fits: bool,
    /// Its ratios, where there are published ones.
    pub ratios: Vec<CombinationRatio>,
}

/// A ratio of a combination.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CombinationRatio {
    /// The test.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Variant over baseline.
    pub ratio: f64,
}

impl Row for BandRow {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let inside = |f: &BandFigure, unit| {
            Cell::Text(if f.is_inside(unit) { "yes" } else { "NO" }.to_owned())
        };
        let columns = |what: &str, f: &BandFigure, unit: Unit| {
            vec![
                always(format!("{what}, published"), Cell::of(f.published, unit)),
                always(format!("{what}, lowest"), Cell::of(f.lowest, unit)),
                always(format!("{what}, highest"), Cell::of(f.highest, unit)),
                always(format!("{what}, default"), Cell::of(f.default, unit)),
                always(format!("{what}, inside"), inside(f, unit)),
            ]
        };
        let title = format!("over {} combinations of what is unknown", self.combinations);
        let ratio = self.ratio.iter().flat_map(|r| columns(&self.variant, r, Unit::Times));
        let speed = self.kb_per_s.scaled(1.0 / 1024.0);
        let unit = Unit::Plain(if speed.published < 10.0 { 2 } else { 1 });
        let speed = columns(&format!("{} MiB/s", self.variant), &speed, unit);
        let columns = ratio.chain(speed).collect();
        vec![TableLine::new(Order::First, title, results.test_label(&self.test), columns)]
    }
}

impl Row for CombinationRow {
    fn lines(&self, _: &dyn RowContext) -> Vec<TableLine> {
        if !self.fits {
            return Vec::new();
        }
        let mut columns = vec![
            wide("farthest from", Cell::Text(self.farthest.clone())),
            wide("off by", Cell::of(self.off_percent, Unit::Difference)),
        ];
        columns.extend(
            self.ratios.iter().map(|r| {
                wide(format!("{}, {}", r.test, r.variant), Cell::of(r.ratio, Unit::Times))
            }),
        );
        vec![TableLine::new(Order::First, "combinations", &self.settings, columns)]
    }
}

/// What a run over all combinations says of the published figures, in a sentence; nothing without.
pub(crate) fn answer(runs: &[SeedResults]) -> Option<String> {
    let run = runs.iter().find(|run| run.of::<BandRow>().next().is_some())?;
    let ratios: Vec<&BandFigure> = run.of::<BandRow>().filter_map(|r| r.ratio.as_ref()).collect();
    let inside = ratios.iter().filter(|f| f.is_inside(Unit::Times)).count();
    let mut all = run.of::<CombinationRow>();
    let fitting = all.clone().filter(|c| c.fits).count();
    let nearest = all.clone().min_by(|a, b| a.off_percent.abs().total_cmp(&b.off_percent.abs()))?;
    let count = match (all.by_ref().count(), fitting) {
        (n, fitting) if n == fitting => format!("{n} combinations of the unknown settings"),
        (n, fitting) => format!("the {fitting} of {n} combinations that fit"),
    };
    Some(format!(
        "{inside} of {} published ratios lie inside the range over {count}. The nearest \
         combination ({}) is off by {:+.1} % at most ({}).",
        ratios.len(),
        nearest.settings,
        nearest.off_percent,
        nearest.farthest
    ))
}
