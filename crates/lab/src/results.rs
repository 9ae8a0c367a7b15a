//! What a run found: the versioned JSON document and the arithmetic of its ratios.
//!
//! The layout is documented in docs/lab.md; a change that a reader could notice raises
//! [`VERSION`].

use serde::Serialize;

/// Version of the JSON layout.
pub const VERSION: u32 = 1;

/// Everything a run of a scenario found. Contains nothing of the machine it ran on or of the
/// wall clock, so that the same seed gives the same document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Results {
    /// Always `steadfast-lab`.
    pub format: &'static str,
    /// Layout version, [`VERSION`].
    pub version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Its title, for people.
    pub title: String,
    /// Where the published figures come from.
    pub source: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Whether the workload ran at the published size.
    pub full: bool,
    /// The benchmark's command line as it was run.
    pub command: String,
    /// The command line of the recorded run that was cut, if any.
    pub risk_command: Option<String>,
    /// The variants compared.
    pub variants: Vec<VariantInfo>,
    /// One speed a test and variant.
    pub rows: Vec<Row>,
    /// Speeds against the baseline's.
    pub ratios: Vec<Ratio>,
    /// How fast the workload of files was, a row a variant.
    pub files: Vec<FilesRow>,
    /// What power cuts took, a row a variant.
    pub risk: Vec<RiskRow>,
    /// Speed beside exposure, for the variants that have both.
    pub speed_and_exposure: Vec<Point>,
    /// Warnings and remarks that a reader of the figures must know.
    pub notes: Vec<String>,
}

/// A variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantInfo {
    /// Its name in the scenario.
    pub name: String,
    /// For people.
    pub label: String,
    /// The devices, in words.
    pub devices: Vec<String>,
    /// Mount options.
    pub mount: String,
    /// The kernel's file system that it is, in real time; `null`: Steadfast's own.
    pub kernel: Option<String>,
    /// Virtual seconds that the benchmark took; `null` for a variant that was only cut.
    pub virtual_seconds: Option<f64>,
}

/// The speed of one test on one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The test: "initial write", "rewrite", ...
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// `children` or `parent`: which of IOzone's two sums `kb_per_s` is.
    pub figure: Figure,
    /// Speed in kB (1024 bytes) a second.
    pub kb_per_s: f64,
    /// What the source published for this test and variant, or null.
    pub published_kb_per_s: Option<f64>,
    /// Sum over the children's own speeds.
    pub children_kb_per_s: f64,
    /// Counted bytes over the parent's time.
    pub parent_kb_per_s: f64,
    /// Latency of one record, microseconds: p50, p99, max.
    pub latency_us: Option<Percentiles>,
}

/// Which of IOzone's sums a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// "Children see throughput".
    #[default]
    Children,
    /// "Parent sees throughput".
    Parent,
}

/// One test's speed on a variant over the same on the baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ratio {
    /// The test.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// The baseline's name.
    pub baseline: String,
    /// Variant over baseline.
    pub ratio: f64,
    /// The source's ratio, or null.
    pub published_ratio: Option<f64>,
    /// `ratio` against `published_ratio` in per cent; null without one.
    pub difference_percent: Option<f64>,
}

/// Median, 99th percentile and maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
pub struct Percentiles {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

impl Percentiles {
    /// Of the given values (nearest rank); zeros if there are none.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let Some(&max) = values.last() else { return Percentiles::default() };
        let rank = |p: f64| values[((values.len() as f64 * p).ceil() as usize).max(1) - 1];
        Percentiles { p50: rank(0.50), p99: rank(0.99), max }
    }
}

/// What power cuts took from one variant: the figures that docs/risk.md defines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RiskRow {
    /// Variant's name.
    pub variant: String,
    /// Cuts made.
    pub cuts: u64,
    /// Acknowledged-durable operations whose effect was missing, over all cuts.
    pub broken_promises: u64,
    /// Cuts with at least one broken promise.
    pub cuts_with_broken_promises: u64,
    /// The same run, cut as if the devices' caches had lied: the control.
    pub control_flush_ignored: Option<ControlRow>,
    /// The same run, cut as if the file system had never asked for a flush: a control too. On
    /// devices without a volatile cache nothing can come of it, and the zeros of such a variant
    /// say nothing about flushes.
    pub control_flushes_omitted: Option<ControlRow>,
    /// Bytes of acknowledged work that a cut took.
    pub exposure_bytes: Percentiles,
    /// Operations of acknowledged work that a cut took.
    pub exposure_operations: Percentiles,
    /// Milliseconds from the oldest acknowledged operation that was lost to the cut.
    pub exposure_ms: Percentiles,
    /// Write calls found half old, half new, over all cuts.
    pub torn_writes: u64,
    /// Units of 4096 bytes of one write call found half old, half new, over all cuts.
    pub torn_units: u64,
    /// Stale data exposed: bytes found in a file that were never written to it, over all cuts.
    pub stale_bytes: u64,
    /// Writes that survived where an earlier one in the same file did not, over all cuts.
    pub order_violations: u64,
    /// Empty after rename: names that a rename gave to a file whose data, written before it, is
    /// missing; over all cuts.
    pub empty_after_rename: u64,
    /// Those of them for which a file that was there before has gone.
    pub empty_after_replace: u64,
    /// Cuts after which the file system's structure was damaged or could not be mounted.
    pub damage: u64,
    /// Cuts after which recovery needed manual repair.
    pub manual_repair: u64,
    /// Cuts whose result e2fsck -fn judged too, and how many of these it did not call clean.
    pub e2fsck_checked: u64,
    /// See `e2fsck_checked`.
    pub e2fsck_damage: u64,
    /// Virtual milliseconds from power on to mounted.
    pub recovery_ms: Percentiles,
    /// The first findings, in words.
    pub findings: Vec<String>,
}

/// A control of a variant: the same run without something that its promises stand on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ControlRow {
    /// Cuts made.
    pub cuts: u64,
    /// As in [`RiskRow`].
    pub broken_promises: u64,
    /// Cuts with at least one.
    pub cuts_with_broken_promises: u64,
    /// Whether promises must be broken: some device has a volatile cache.
    pub must_break: bool,
}

impl ControlRow {
    /// The control did not fail as it must: the zeros beside it prove nothing.
    pub fn is_blind(&self) -> bool {
        self.must_break && self.broken_promises == 0
    }
}

/// How fast the workload of files was on one variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FilesRow {
    /// Variant's name.
    pub variant: String,
    /// What the times below are of.
    pub clock: Clock,
    /// Where the speed is that of a run in real time and the cuts are of one in virtual time: the
    /// speed of that one.
    pub virtual_operations_per_s: Option<f64>,
    /// Calls made.
    pub operations: u64,
    /// Calls a second of the time that the programs spent in calls.
    pub operations_per_s: f64,
    /// That time, added up over the programs.
    pub in_calls_seconds: f64,
    /// From the first call to the last return, pauses included.
    pub elapsed_seconds: f64,
    /// Calls that were an fsync, an fdatasync or an fsync of a folder.
    pub fsyncs: u64,
    /// How long these took, in milliseconds.
    pub fsync_ms: Percentiles,
}

/// Which clock a speed was taken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// The machine's own: all that a run takes, its own code too, and whatever else the machine
    /// does.
    Real,
    /// The simulation's: the modelled devices, and what of the code is declared.
    Virtual,
}

impl Clock {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Real => "real",
            Clock::Virtual => "virtual",
        }
    }
}

/// A variant in the chart of speed against exposure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Variant's name.
    pub variant: String,
    /// How fast.
    pub speed: f64,
    /// Of what, in which unit: "operations/s", "initial write, kB/s".
    pub speed_unit: String,
    /// Bytes of acknowledged work that one cut in a hundred takes at least (p99).
    pub exposure_bytes: f64,
    /// Its age in milliseconds (p99).
    pub exposure_ms: f64,
}

/// The points of all variants that have a speed and were cut. The speed under IOzone is that of the
/// first test.
pub fn points(rows: &[Row], files: &[FilesRow], risk: &[RiskRow]) -> Vec<Point> {
    let headline = rows.first().map_or("", |row| &row.test);
    risk.iter()
        .filter_map(|r| {
            let of_files = files.iter().find(|f| f.variant == r.variant);
            let of_test = rows.iter().find(|row| row.variant == r.variant && row.test == headline);
            let (speed, speed_unit) = match (of_files, of_test) {
                (Some(f), _) => (f.operations_per_s, "operations/s".to_owned()),
                (None, Some(row)) => (row.kb_per_s, format!("{headline}, kB/s")),
                (None, None) => return None,
            };
            Some(Point {
                variant: r.variant.clone(),
                speed,
                speed_unit,
                exposure_bytes: r.exposure_bytes.p99,
                exposure_ms: r.exposure_ms.p99,
            })
        })
        .collect()
}

/// Ratios of every variant that ran a test over `baseline`.
pub fn ratios(rows: &[Row], baseline: &str) -> Vec<Ratio> {
    let of =
        |test: &str, variant: &str| rows.iter().find(|r| r.test == test && r.variant == variant);
    rows.iter()
        .filter(|r| r.variant != baseline)
        .filter_map(|r| {
            let base = of(&r.test, baseline)?;
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
            latency_us: None,
        }
    }

    #[test]
    fn ratios_compare_with_the_published_ones() {
        let rows = [row("a", 100.0, Some(10.0)), row("b", 220.0, Some(20.0)), row("c", 50.0, None)];
        let r = ratios(&rows, "a");
        assert_eq!(r.len(), 2);
        assert_eq!((r[0].ratio, r[0].published_ratio), (2.2, Some(2.0)));
        assert!((r[0].difference_percent.unwrap() - 10.0).abs() < 1e-9);
        assert_eq!((r[1].ratio, r[1].published_ratio), (0.5, None));
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let p = Percentiles::of((1..=100).map(f64::from).collect());
        assert_eq!((p.p50, p.p99, p.max), (50.0, 99.0, 100.0));
        assert_eq!(Percentiles::of(vec![3.0]), Percentiles { p50: 3.0, p99: 3.0, max: 3.0 });
        assert_eq!(Percentiles::of(vec![]), Percentiles::default());
    }
}
