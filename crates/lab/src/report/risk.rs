//! What power cuts take, beside the speed.

use std::collections::BTreeSet;

use super::marks::{self, Mark, Marks};
use super::scatter::{self, Scatter};
use super::svg::MarkShape;
use crate::results::{Percentiles, Point, Results, RiskRow, Spread};

/// What a cut takes of acknowledged work; of several seeds the median. Beside the kernel's variants
/// of as many cuts of each.
pub(super) fn exposure(results: &Results) -> Option<String> {
    let risk = || results.all::<RiskRow>();
    let few = risk().any(|r| r.comparable_bytes().p99().is_none());
    let of = |variant: &str, value: fn(&Percentiles) -> Option<f64>| {
        let rows = risk().filter(|r| r.variant == variant);
        let values: Vec<f64> = rows.filter_map(|r: &RiskRow| value(r.comparable_bytes())).collect();
        (!values.is_empty()).then(|| Spread::of(&values).median() / 1024.0)
    };
    let names = results.variants.iter().map(|v| v.name.as_str());
    let cuts: BTreeSet<u64> = risk().map(|r| r.comparable_bytes().n()).collect();
    let most = match cuts.first() {
        Some(n) if cuts.len() == 1 => format!("most of {n} cuts"),
        _ => "most".to_owned(),
    };
    let row = |name: &str| {
        let p50 = of(name, |p| Some(p.p50()))?;
        Some((name.to_owned(), vec![Some(p50), of(name, Percentiles::p99), of(name, max)]))
    };
    let mark = |name: &str, shape| Mark { name: name.into(), shape };
    let chart = Marks {
        title: "acknowledged work lost at power failure".into(),
        unit: "KiB, logarithmic; at the left end: nothing".into(),
        marks: vec![
            mark("p50", MarkShape::Circle),
            mark(if few { "p99: too few cuts" } else { "p99" }, MarkShape::Diamond),
            mark(&most, MarkShape::Down),
        ],
        rows: names.filter_map(row).collect(),
    };
    (!chart.rows.is_empty()).then(|| marks::svg(&chart))
}

fn max(p: &Percentiles) -> Option<f64> {
    Some(p.max())
}

/// One point a variant: what it does in a second, and what a cut takes; the medians of the seeds.
pub(super) fn against_speed(results: &Results) -> Option<String> {
    let all = || results.all::<Point>();
    let first = all().next()?;
    let same = all().all(|p| p.exposure_is == first.exposure_is);
    let which = if same { &first.exposure_is } else { "p99, of few cuts the greatest" };
    let of = |name: &str| {
        let own = || all().filter(|p| p.variant == name);
        own().next()?;
        let median = |f: fn(&Point) -> f64| Spread::of(&own().map(f).collect::<Vec<_>>()).median();
        let (lost, speed) = (median(|p| p.exposure_bytes / 1024.0), median(|p| p.speed.median()));
        Some((name.to_owned(), lost, speed))
    };
    Some(scatter::svg(&Scatter {
        title: "speed against exposure".into(),
        x: format!("KiB of acknowledged work lost at power failure, {which}"),
        y: first.speed_unit.clone(),
        points: results.variants.iter().filter_map(|v| of(&v.name)).collect(),
    }))
}
