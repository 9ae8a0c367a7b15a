//! The speed of a test, and what it is of another's.

use serde::{Deserialize, Serialize};
use steadfast_bench::distribution::LatencyHistogram;

use super::cell::{Cell, Unit};
use super::column::{always, wide};

use super::row::{Order, Row, RowContext, TableLine, distinct};
use super::{Percentiles, SumKind};

/// The speed of one test on one variant.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SpeedRow {
    /// The test: "initial write", "rewrite", ...
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// `children` or `parent`: which of IOzone's two sums `kb_per_s` is.
    pub figure: SumKind,
    /// Speed in KiB a second.
    pub kb_per_s: f64,
    /// What the source published for this test and variant, or null.
    pub published_kb_per_s: Option<f64>,
    /// Sum over the children's own speeds.
    pub children_kb_per_s: f64,
    /// Counted bytes over the parent's time.
    pub parent_kb_per_s: f64,
    /// Of what the test read, the share that the disk has read meanwhile; null: it read nothing,
    /// or nobody counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_from_disk: Option<f64>,
    /// The same of what it wrote. What goes home later is not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_to_disk: Option<f64>,
    /// Latency of one record, microseconds: p50, p99, max.
    pub latency_us: Option<Percentiles>,
    /// The same of all records, in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(with = "Option<Vec<[i64; 2]>>"))]
    pub distribution: Option<LatencyHistogram>,
}

impl Row for SpeedRow {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let variant = &self.variant;
        let mib = |kb: Option<f64>| Cell::maybe(kb.map(|kb| kb / 1024.0), Unit::Plain(1));
        let latency = |of: fn(&Percentiles) -> Option<f64>| {
            let us = self.latency_us.as_ref().and_then(of);
            Cell::maybe(us.map(|us| us / 1e3), Unit::Plain(2))
        };
        // MiB/s, and how long a record took.
        let columns = vec![
            always(variant, mib(Some(self.kb_per_s))),
            always(format!("{variant}, published"), mib(self.published_kb_per_s)),
            wide(format!("{variant}, record ms p50"), latency(|l| Some(l.p50()))),
            wide(format!("{variant}, record ms p99"), latency(Percentiles::p99)),
            wide(format!("{variant}, record ms max"), latency(|l| Some(l.max()))),
        ];
        let title = format!("MiB/s, {}, {}", results.clock(), results.size());
        vec![TableLine::new(Order::Speed, title, results.test_label(&self.test), columns)]
    }
}

/// One test's speed on a variant over the same on the baseline.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

impl Row for Ratio {
    fn lines(&self, results: &dyn RowContext) -> Vec<TableLine> {
        let variant = &self.variant;
        let difference = Cell::maybe(self.difference_percent, Unit::Difference);
        let columns = vec![
            always(variant, Cell::of(self.ratio, Unit::Times)),
            always(format!("{variant}, full size"), results.full_ratio(&self.test, variant)),
            always(format!("{variant}, published"), Cell::maybe(self.published_ratio, Unit::Times)),
            always(format!("{variant}, difference"), difference),
        ];
        let title = format!("speed over {}, {}", results.baselines(), results.size());
        vec![TableLine::new(Order::Ratio, title, results.test_label(&self.test), columns)]
    }
}

/// Names in quotes, each once.
pub(crate) fn each_once<'n>(names: impl Iterator<Item = &'n str>) -> String {
    distinct(names).into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(" and ")
}

/// Ratios of every variant that ran a test over its baseline.
pub fn ratios<'r, 'b>(
    rows: impl Iterator<Item = &'r SpeedRow> + Clone,
    baseline_of: impl Fn(&str) -> &'b str,
) -> Vec<Ratio> {
    let all = rows.clone();
    let of =
        |test: &str, variant: &str| all.clone().find(|r| r.test == test && r.variant == variant);
    rows.filter_map(|r| {
        let baseline = baseline_of(&r.variant);
        let base = of(&r.test, baseline).filter(|base| base.variant != r.variant)?;
        let ratio = r.kb_per_s / base.kb_per_s;
        let published_ratio = r.published_kb_per_s.zip(base.published_kb_per_s).map(|(a, b)| a / b);
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

    fn row(variant: &str, kb: f64, published: Option<f64>) -> SpeedRow {
        SpeedRow {
            test: "rewrite".into(),
            variant: variant.into(),
            figure: SumKind::Children,
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
        let r = ratios(rows.iter(), |_| "a");
        assert_eq!(r.len(), 2);
        assert_eq!((r[0].ratio, r[0].published_ratio), (2.2, Some(2.0)));
        assert!((r[0].difference_percent.unwrap() - 10.0).abs() < 1e-9);
        assert_eq!((r[1].ratio, r[1].published_ratio), (0.5, None));
    }
}
