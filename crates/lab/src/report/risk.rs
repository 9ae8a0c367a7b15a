//! What power cuts take, beside the speed.

use std::collections::BTreeSet;

use super::plot::{Frame, Plot, ROW, widest};
use super::scale::Scale;
use super::svg::{Drawing, compact};
use crate::results::{Percentiles, Point, Results, RiskRow, Spread};

/// What a cut takes of acknowledged work; of several seeds the median. Beside the kernel's variants
/// of as many cuts of each.
pub(super) fn exposure(results: &Results) -> Option<Drawing> {
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
    let row = |name| {
        let p50 = of(name, |p| Some(p.p50()))?;
        Some((name, [Some(p50), of(name, Percentiles::p99), of(name, |p| Some(p.max()))]))
    };
    let rows: Vec<(&str, [Option<f64>; 3])> = names.filter_map(row).collect();
    let figures = |row: &[Option<f64>; 3]| row.map(|v| v.map_or("-".into(), compact)).join(" | ");
    let texts: Vec<String> = rows.iter().map(|(_, row)| figures(row)).collect();
    let described: Vec<_> =
        rows.iter().zip(&texts).map(|((n, _), t)| format!("{n}: {t}")).collect();
    let marks = ["p50", if few { "p99: too few cuts" } else { "p99" }, &most];
    let named = marks.join(" | ");
    let mut plot = Plot::new(Frame {
        title: "acknowledged work lost at power failure",
        description: &format!("{named}. {}", described.join("; ")),
        x: (
            Scale::of(true, rows.iter().flat_map(|(_, row)| row.iter().flatten()).copied()),
            "KiB, logarithmic; at the left end: nothing",
        ),
        y: (Scale::names(rows.iter().map(|(name, _)| *name)), ""),
        legend: (&[0, 1, 2].map(|i| (i, marks[i])), false),
        width: 742.0,
        height: ROW * rows.len() as f64,
        right: widest(texts.iter().map(String::as_str)) + 20.0,
    });
    plot.above(&named);
    for (i, ((name, row), text)) in rows.iter().zip(&texts).enumerate() {
        for (series, value) in row.iter().enumerate() {
            let Some(value) = value else { continue };
            let tooltip = format!("{name}: {} {}", marks[series], compact(*value));
            plot.mark((*value, i as f64), series, &tooltip);
        }
        plot.row_text(i, text);
    }
    (!rows.is_empty()).then(|| plot.end())
}

/// One point a variant: what it does in a second, and what a cut takes; the medians of the seeds.
pub(super) fn against_speed<'r>(results: &'r Results) -> Option<Drawing> {
    let all = || results.all::<Point>();
    let first = all().next()?;
    let same = all().all(|p| p.exposure_is == first.exposure_is);
    let which = if same { &first.exposure_is } else { "p99, of few cuts the greatest" };
    let of = |name: &'r str| {
        let own = || all().filter(|p| p.variant == name);
        own().next()?;
        let lost = Spread::of(&own().map(|p| p.exposure_bytes / 1024.0).collect::<Vec<_>>());
        Some((name, (lost, Spread::over(&own().map(|p| p.speed).collect::<Vec<_>>()))))
    };
    let points = results.variants.iter().filter_map(|v| of(&v.name));
    let (names, ranges): (Vec<&str>, Vec<(Spread, Spread)>) = points.unzip();
    let points: Vec<(f64, f64)> =
        ranges.iter().map(|(lost, speed)| (lost.median(), speed.median())).collect();
    let ends = |of: &dyn Fn(&(Spread, Spread)) -> Spread| -> Vec<f64> {
        ranges.iter().map(of).flat_map(|spread| [spread.min(), spread.max()]).collect()
    };
    let (all_lost, all_speeds) = (ends(&|range| range.0), ends(&|range| range.1));
    let (x, y) = (
        format!("KiB of acknowledged work lost at power failure, {which}"),
        first.speed_unit.as_str(),
    );
    let tooltip = |(name, at): (&&str, &(f64, f64))| {
        format!("{name}: {} {y}, {} {x}", compact(at.1), compact(at.0))
    };
    let tooltips: Vec<String> = names.iter().zip(&points).map(tooltip).collect();
    let mut plot = Plot::new(Frame {
        title: "speed against exposure",
        description: &tooltips.join("; "),
        x: (Scale::of(true, all_lost.into_iter()), &x),
        y: (Scale::of(true, all_speeds.into_iter()), y),
        legend: (&[], false),
        width: 742.0,
        height: 320.0,
        right: 130.0,
    });
    for (lost, speed) in &ranges {
        plot.upright_range(lost.median(), (speed.min(), speed.max()));
        plot.level_range(speed.median(), (lost.min(), lost.max()));
    }
    plot.labelled(&points, &names.into_iter().zip(tooltips).collect::<Vec<_>>());
    Some(plot.end())
}
