//! What a run found: the versioned JSON document and the arithmetic of its ratios.
//!
//! Each seed's figures stand by themselves ([`Run`]); what is reported of several is their median
//! and range ([`summary`]). The layout is documented in docs/lab.md; a change that a reader could
//! notice raises [`VERSION`].

mod binomial;
mod copies;
mod grids;
mod legs;
mod random_reads;
mod reads;
mod rows;
mod sentences;
mod shown;
pub mod statistics;
mod stored;
pub mod summary;
mod timings;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use copies::CopyRow;
pub use grids::{GridCell, GridRow};
pub use legs::LegRow;
pub use random_reads::RandomReadRow;
pub use reads::{QueueSeries, ReadRow};
pub use rows::{
    AgeSeries, Clock, ConfigurationInfo, ControlRow, Figure, FilesRow, LossRow, MachineLoad,
    NotJudged, Path, PeerRow, Point, Ratio, RiskRow, Row, SteadyLoss, Took, VariantInfo, place,
};
pub use sentences::{SentenceRow, Verdict, checked};
pub use shown::{PlantedBug, PlantedRun, PlantedRuns, ShownRow};
pub use statistics::{Percentiles, Rate, Spread, Tail};
pub use steadfast_bench::distribution::Distribution;
pub use stored::{FullRatio, FullSize, ResultsError};
pub use timings::TimingRow;

use crate::scenario::{Medium, Source, Variant};

/// Version of the JSON layout.
pub const VERSION: u32 = 3;

/// Everything a run of a scenario found. Contains nothing of the machine it ran on or of the
/// wall clock (but for what is measured by it), so that the same seeds give the same document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Always `steadfast-lab`.
    pub format: Cow<'static, str>,
    /// Layout version, [`VERSION`].
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
    /// The variants compared.
    pub variants: Vec<VariantInfo>,
    /// What each seed brought, in the order of `seeds`.
    pub runs: Vec<Run>,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRow {
    /// The variant.
    pub variant: String,
    /// In words.
    pub what: String,
}

impl FailureRow {
    pub(crate) fn of(variant: &Variant, why: impl std::fmt::Display) -> FailureRow {
        FailureRow { variant: variant.name.clone(), what: why.to_string() }
    }
}

/// What one seed brought.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Seed of every random choice.
    pub seed: u64,
    /// How long the benchmarks took, a row a variant that was measured in virtual time.
    pub took: Vec<Took>,
    /// One speed a test and variant.
    pub rows: Vec<Row>,
    /// Speeds over a matrix of sizes: one row a test and variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grids: Vec<GridRow>,
    /// Speeds against the baseline's.
    pub ratios: Vec<Ratio>,
    /// How fast the workload of files was, a row a variant.
    pub files: Vec<FilesRow>,
    /// The data loss at power failure, a row a variant.
    pub risk: Vec<RiskRow>,
    /// The planted bugs that as many cuts show, a row a variant of which that is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<ShownRow>,
    /// The age of what each cut took, one a variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ages: Vec<AgeSeries>,
    /// What power cuts took from the measured runs themselves, a row a variant.
    pub loss: Vec<LossRow>,
    /// Speed beside exposure, for the variants that have both.
    pub speed_and_exposure: Vec<Point>,
    /// How long reads took beside a writer, a row a test and variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<ReadRow>,
    /// The request scheduler's queue over time, one a variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<QueueSeries>,
    /// Timings by hdparm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timings: Vec<TimingRow>,
    /// Copies by dd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<CopyRow>,
    /// Reads at random places, a row a test and variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub random_reads: Vec<RandomReadRow>,
    /// What cuts took of volumes, a row a variant and kind of cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub legs: Vec<LegRow>,
}

impl Run {
    /// Whether nothing of it had ended when it was interrupted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.files.is_empty()
            && self.risk.is_empty()
            && self.legs.is_empty()
    }
}

/// What a reader of the figures must know.
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
    /// The first seed's figures: all there are, of a run with one seed.
    ///
    /// # Panics
    /// If there is no run: [`run`](crate::run()) makes one for each seed.
    pub fn only(&self) -> &Run {
        // OK to index: see above.
        &self.runs[0]
    }

    /// The ways in which calls of the workload of files were made, each once.
    pub fn ways(&self) -> Vec<String> {
        let mut ways: Vec<String> = Vec::new();
        for way in self.runs.iter().flat_map(|run| &run.files).map(FilesRow::way) {
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        ways
    }

    /// What a variant is.
    pub fn variant(&self, name: &str) -> Option<&VariantInfo> {
        self.variants.iter().find(|v| v.name == name)
    }
}

/// The points of all variants that have a speed and were cut. The speed under IOzone is that of the
/// first test. Beside the kernel's variants the greatest loss of as many cuts as those have.
pub fn points(rows: &[Row], files: &[FilesRow], risk: &[RiskRow]) -> Vec<Point> {
    let headline = rows.first().map_or("", |row| &row.test);
    risk.iter()
        .filter_map(|r| {
            // By system calls, where there is such a row: as the others are.
            let of_variant = files.iter().filter(|f| f.variant == r.variant);
            let of_files = of_variant.max_by_key(|f| f.path);
            let of_test = rows.iter().find(|row| row.variant == r.variant && row.test == headline);
            let (speed, speed_unit) = match (of_files, of_test) {
                (Some(f), _) => {
                    let unit = format!("calls/s {}, {} clock", f.path.name(), f.clock.name());
                    (f.operations_per_s, unit)
                }
                (None, Some(row)) => {
                    (Spread::of(&[row.kb_per_s]), format!("{headline}, kB/s, virtual clock"))
                }
                (None, None) => return None,
            };
            let (bytes, ms) = (r.comparable_bytes().tail(), r.comparable_ms().tail());
            Some(Point {
                variant: r.variant.clone(),
                speed,
                speed_unit,
                exposure_bytes: bytes.value(),
                exposure_ms: ms.value(),
                exposure_is: bytes.name(),
                exposure_clock: r.run_clock,
            })
        })
        .collect()
}

/// Ratios of every variant that ran a test over its baseline.
pub fn ratios<'b>(rows: &[Row], baseline_of: impl Fn(&str) -> &'b str) -> Vec<Ratio> {
    let of =
        |test: &str, variant: &str| rows.iter().find(|r| r.test == test && r.variant == variant);
    rows.iter()
        .filter_map(|r| {
            let baseline = baseline_of(&r.variant);
            let base = of(&r.test, baseline).filter(|base| base.variant != r.variant)?;
            let ratio = r.kb_per_s / base.kb_per_s;
            let published_ratio =
                r.published_kb_per_s.zip(base.published_kb_per_s).map(|(a, b)| a / b);
            Some(Ratio {
                test: r.test.clone(),
                variant: r.variant.clone(),
                baseline: baseline.into(),
                ratio,
                published_ratio,
                difference_percent: published_ratio.map(|p| (ratio / p - 1.0) * 100.0),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(variant: &str, kb: f64, published: Option<f64>) -> Row {
        Row {
            test: "rewrite".into(),
            variant: variant.into(),
            figure: Figure::Children,
            kb_per_s: kb,
            published_kb_per_s: published,
            children_kb_per_s: kb,
            parent_kb_per_s: kb,
            read_from_disk: None,
            written_to_disk: None,
            latency_us: None,
            distribution: None,
        }
    }

    #[test]
    fn ratios_compare_with_the_published_ones() {
        let rows = [row("a", 100.0, Some(10.0)), row("b", 220.0, Some(20.0)), row("c", 50.0, None)];
        let r = ratios(&rows, |_| "a");
        assert_eq!(r.len(), 2);
        assert_eq!((r[0].ratio, r[0].published_ratio), (2.2, Some(2.0)));
        assert!((r[0].difference_percent.unwrap() - 10.0).abs() < 1e-9);
        assert_eq!((r[1].ratio, r[1].published_ratio), (0.5, None));
    }
}
