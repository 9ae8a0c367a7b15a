//! What a run found: the versioned JSON document and the arithmetic of its ratios.
//!
//! Each seed's figures stand by themselves ([`SeedResults`]); what is reported of several is their
//! median and range ([`summary`]). The layout is documented in docs/lab.md; a change that a reader
//! could notice raises [`VERSION`].

mod band;
mod binomial;
mod cell;
mod column;
mod copies;
mod files;
mod fio;
mod grids;
mod info;
mod legs;
mod loss;
mod measurement;
mod published;
mod random_reads;
mod reads;
mod risk;
mod row;
#[cfg(test)]
mod schema;
mod seed;
mod sentences;
mod shown;
mod speed;
pub mod statistics;
mod stored;
pub mod summary;
mod timings;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use band::{BandFigure, BandRow, CombinationRatio, CombinationRow};
pub(crate) use cell::bytes;
pub use cell::{Cell, Unit};
pub use copies::CopyRow;
pub use files::{FilesRow, place};
pub use fio::FioRow;
pub use grids::{GridCell, GridRow};
pub use info::{
    ClockKind, ConfigurationInfo, MachineLoad, Path, PeerRow, VariantInfo, VariantTime,
};
pub use legs::LegRow;
pub use loss::{LossRow, SteadyLoss};
pub use measurement::{Measurement, MeasurementRow};
pub use published::PublishedRow;
pub use random_reads::RandomReadRow;
pub use reads::{QueueSeries, ReadRow};
pub use risk::{AgeSeries, ControlRow, JudgedScope, NotJudged, Point, RiskRow, points};
pub use seed::SeedResults;
pub use sentences::{SentenceRow, Verdict, checked};
pub use shown::{PlantedBug, PlantedRun, PlantedRuns, ShownRow};
pub use speed::{Ratio, SpeedRow, ratios};
pub use statistics::{Percentiles, Rate, Spread, Tail};
pub use steadfast_bench::distribution::LatencyHistogram;
pub use stored::{FullRatio, FullSize, ResultsError};
pub use timings::TimingRow;
pub(crate) use {
    band::answer,
    column::{Column, always},
    published::published,
    row::{Order, RowContext, TableLine, distinct},
    speed::each_once,
};

pub use crate::scenario::SumKind;
use crate::scenario::{Medium, Source, Variant};

/// Version of the JSON layout.
pub const VERSION: u32 = 4;

/// Everything a run of a scenario found. Contains nothing of the machine it ran on or of the
/// wall clock (but for what is measured by it), so that the same seeds give the same document.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Always `steadfast-lab`.
    #[cfg_attr(test, schemars(extend("const" = "steadfast-lab")))]
    pub format: Cow<'static, str>,
    /// Layout version, [`VERSION`].
    #[cfg_attr(test, schemars(extend("const" = VERSION)))]
    pub version: u32,
    /// The program's version.
    pub program: Cow<'static, str>,
    /// The day on which it was run: of stored results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// The scenario's name.
    pub scenario: String,
    /// Its title, for people.
    pub title: String,
    /// Where the published figures come from.
    pub source: Option<Source>,
    /// Seeds of the random choices, one a run.
    pub seeds: Vec<u64>,
    /// Which clock the times were taken by, but for those that say it themselves; absent: virtual.
    #[serde(default, skip_serializing_if = "ClockKind::is_virtual")]
    pub clock: ClockKind,
    /// Whether the workload ran at the published size.
    pub full: bool,
    /// The ratios at the published size, beside a reduced one; `null`: not run.
    pub full_size: Option<FullSize>,
    /// It was interrupted: what had not ended by then is missing.
    pub partial: bool,
    /// The benchmark's command line as it was run.
    pub command: String,
    /// The command line of the recorded run that was cut, if any.
    pub risk_command: Option<String>,
    /// Steadfast's command line that reproduces these results, the scenario's file by its name.
    #[serde(rename = "again", default, skip_serializing_if = "Option::is_none")]
    pub reproduce: Option<String>,
    /// What the configurations of a benchmark run, if it has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<ConfigurationInfo>,
    /// What the source says that its medium is capable of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<Medium>,
    /// What the source says in words, checked over all seeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentences: Vec<SentenceRow>,
    /// What the source published in figures, against ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedRow>,
    /// The variants compared.
    pub variants: Vec<VariantInfo>,
    /// What each seed brought, in the order of `seeds`.
    #[cfg_attr(test, schemars(length(min = 1)))]
    pub runs: Vec<SeedResults>,
    /// How fast the kernel's file systems were beside ours, in real time, a row a test and variant;
    /// empty if nobody asked.
    pub peers: Vec<PeerRow>,
    /// What failed: figures are missing, or something could not be taken away after a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureRow>,
    /// What else the machine did, if something was run in real time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_load: Option<MachineLoad>,
    /// Warnings and remarks that a reader of the figures must know.
    pub notes: Vec<Note>,
}

/// What failed of a variant while the others went on.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRow {
    /// The variant.
    pub variant: String,
    /// In words.
    pub what: String,
}

impl FailureRow {
    /// What a reader of the figures must know of it.
    pub(crate) fn note(&self) -> Note {
        Note::alarm(format!("FAILED: '{}': {}", self.variant, self.what))
    }

    pub(crate) fn of(variant: &Variant, why: impl std::fmt::Display) -> FailureRow {
        FailureRow { variant: variant.name.clone(), what: why.to_string() }
    }
}

/// What a reader of the figures must know.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// In words.
    pub text: String,
    /// It takes from the figures what they seem to say: a control that did not fail, a broken
    /// promise.
    pub alarm: bool,
}

impl Note {
    /// A remark.
    pub fn remark(text: impl Into<String>) -> Note {
        Note { text: text.into(), alarm: false }
    }

    /// A warning, in red where there are colours.
    pub fn alarm(text: impl Into<String>) -> Note {
        Note { text: text.into(), alarm: true }
    }
}

impl Results {
    /// The rows of a kind, of all seeds.
    pub fn all<R: MeasurementRow>(&self) -> impl Iterator<Item = &R> + Clone {
        self.runs.iter().flat_map(SeedResults::of)
    }

    /// The first seed's figures: all there are, of a run with one seed.
    ///
    /// # Panics
    /// If there is no run: [`run`](crate::run()) makes one for each seed.
    pub fn only(&self) -> &SeedResults {
        // OK to index: see above.
        &self.runs[0]
    }

    /// The ways in which calls of the workload of files were made, each once.
    pub fn ways(&self) -> Vec<String> {
        distinct(self.all::<FilesRow>().map(FilesRow::way))
    }

    /// What a variant is.
    pub fn variant(&self, name: &str) -> Option<&VariantInfo> {
        self.variants.iter().find(|v| v.name == name)
    }
}

impl RowContext for Results {
    fn clock(&self) -> ClockKind {
        self.clock
    }

    fn size(&self) -> &'static str {
        if self.full { "published size" } else { "reduced size" }
    }

    fn test_label(&self, test: &str) -> String {
        let mut rows = self.all::<SpeedRow>();
        let parent = rows.any(|r| r.test == test && r.figure == SumKind::Parent);
        if parent { format!("{test} (parent)") } else { test.into() }
    }

    fn configuration(&self, variant: &str) -> Option<&str> {
        self.variant(variant)?.configuration.as_deref()
    }

    fn baselines(&self) -> String {
        each_once(self.all::<Ratio>().map(|r| r.baseline.as_str()))
    }

    fn full_ratio(&self, test: &str, variant: &str) -> Cell {
        let full = self.full_size.as_ref();
        let Some(there) = full.and_then(|full| full.ratio(test, variant)) else {
            return Cell::None;
        };
        let own = |r: &&Ratio| r.test == test && r.variant == variant;
        let here: Vec<f64> = self.all().filter(own).map(|r| r.ratio).collect();
        let shown = |s: Spread| Cell::of(s.median(), Unit::Times).text();
        match shown(Spread::of(&here)) == shown(there) {
            true => Cell::None,
            false => Cell::Number(there, Unit::Times),
        }
    }
}
