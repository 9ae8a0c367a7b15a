//! What the source published in figures, against ours: each figure, whether it agrees, and whether
//! it could hardly be otherwise.

use serde::{Deserialize, Deserializer, Serialize};

use super::cell::{Cell, Unit};
use super::column::{always, wide};
use super::row::{Order, TableLine};
use super::seed::SeedResults;
use super::sentences::Verdict;
use super::{ReadRow, SpeedRow, Spread, TimingRow};
use crate::scenario::{PublishedSpeed, Scenario, SumKind};

/// Two figures agree if they differ by a tenth of the published one at most.
const AGREES: f64 = 0.1;

/// A published figure, checked over all seeds.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// The test.
    pub test: String,
    /// Variant's name; of hdparm the device's.
    pub variant: String,
    /// Which of IOzone's sums it is.
    pub figure: SumKind,
    /// `MiB/s` or `s`. (Programs up to 0.1.0 called the first `MB/s`.)
    #[serde(deserialize_with = "binary_unit")]
    pub unit: String,
    /// The published figure.
    pub said: f64,
    /// Ours, over the seeds; null: it was not measured.
    pub here: Option<Spread>,
    /// Whether they agree: within a tenth.
    pub verdict: Verdict,
    /// Why ours could hardly be another.
    pub by_construction: Option<String>,
    /// Where they disagree: why, as it was tested.
    pub explained: Option<String>,
}

/// What was called MB/s was MiB/s.
fn binary_unit<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let unit = String::deserialize(from)?;
    Ok(if unit == "MB/s" { "MiB/s".to_owned() } else { unit })
}

/// All that a scenario has.
pub(crate) fn published(scenario: &Scenario, runs: &[SeedResults]) -> Vec<PublishedRow> {
    let mut rows = Vec::new();
    for p in &scenario.published {
        let speeds = p.kb_per_s.iter().map(|(variant, kb)| (variant, kb / 1024.0, "MiB/s"));
        let times = p.seconds.iter().map(|(variant, seconds)| (variant, *seconds, "s"));
        for (variant, said, unit) in speeds.chain(times) {
            let here = here(runs, p, variant);
            let agrees = here.map(|here| (here.median() / said - 1.0).abs() <= AGREES);
            let not_known = || Some("not known".to_owned());
            rows.push(PublishedRow {
                test: p.test.clone(),
                variant: variant.clone(),
                figure: p.figure,
                unit: unit.into(),
                said,
                here,
                verdict: match agrees {
                    None => Verdict::NotMeasured,
                    Some(true) => Verdict::Agrees,
                    Some(false) => Verdict::Disagrees,
                },
                by_construction: p.by_construction.get(variant).cloned(),
                explained: p.explained.clone().or_else(not_known).filter(|_| agrees == Some(false)),
            });
        }
    }
    rows
}

/// Our figure of a test and variant.
fn here(runs: &[SeedResults], p: &PublishedSpeed, variant: &str) -> Option<Spread> {
    let test = &p.test;
    let of = |run: &SeedResults| {
        if p.seconds.contains_key(variant) {
            let read = run.of::<ReadRow>().find(|r| r.test == *test && r.variant == variant);
            return read.map(|r| r.seconds.p50());
        }
        let speed = run.of::<SpeedRow>().find(|r| r.test == *test && r.variant == variant);
        let speed = speed.map(|r| match p.figure {
            SumKind::Children => r.children_kb_per_s,
            SumKind::Parent => r.parent_kb_per_s,
        });
        let is_timed = |r: &&TimingRow| {
            r.test == *test && r.variant.as_deref().is_none_or(|name| name == variant)
        };
        let timed = || run.of::<TimingRow>().find(is_timed).map(|r| r.kb_per_s);
        Some(speed.or_else(timed)? / 1024.0)
    };
    let all: Vec<f64> = runs.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| Spread::of(&all))
}

pub(super) fn yes_or_no(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

impl PublishedRow {
    /// The line of a table.
    pub(crate) fn line(&self) -> TableLine {
        let unit = Unit::Plain(if self.said < 10.0 { 2 } else { 1 });
        let of =
            |spread: Option<Spread>, unit| spread.map_or(Cell::None, |s| Cell::Number(s, unit));
        let difference = self.here.map(|s| (s.median() / self.said - 1.0) * 100.0);
        let why = [&self.by_construction, &self.explained].into_iter().flatten();
        let why = why.map(String::as_str).collect::<Vec<_>>().join("; ");
        let why = if why.is_empty() { Cell::None } else { Cell::Text(why) };
        let columns = vec![
            always("said", Cell::of(self.said, unit)),
            always("here", of(self.here, unit)),
            always("difference", Cell::maybe(difference, Unit::Difference)),
            always("figures say", Cell::Text(self.verdict.name().into())),
            always("by construction", Cell::Text(yes_or_no(self.by_construction.is_some()))),
            wide("why", why),
        ];
        let test = match self.figure {
            SumKind::Children => self.test.clone(),
            SumKind::Parent => format!("{} (parent)", self.test),
        };
        let name = format!("{test}, {}, {}", self.variant, self.unit);
        TableLine::new(Order::Sentences, "what the source measured", name, columns)
    }
}
