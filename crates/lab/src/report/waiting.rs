//! What waited in the request scheduler's queue over time, on the page: a chart a variant, all on
//! one scale.

use super::lines::{AxisSpec, LineSeries, Lines, svg};
use crate::results::{QueueSeries, Results};

const SIZE: (f64, f64) = (500.0, 250.0);

/// A chart a variant; of several seeds the first's.
pub(super) fn panels(results: &Results) -> Vec<String> {
    let all = || results.only().of::<QueueSeries>();
    let most = |of: fn(&QueueSeries) -> f64| all().map(of).fold(0.0, f64::max);
    let at_least = (most(length), most(deepest) / 1024.0);
    all().map(|series| svg(&chart(series, at_least))).collect()
}

/// In seconds.
fn length(series: &QueueSeries) -> f64 {
    series.write_kb.len().saturating_sub(1) as f64 * series.every_ms / 1e3
}

fn deepest(series: &QueueSeries) -> f64 {
    series.write_kb.iter().chain(&series.read_kb).copied().fold(0.0, f64::max)
}

fn chart(series: &QueueSeries, at_least: (f64, f64)) -> Lines {
    let points = |kb: &[f64]| {
        let at = |i: usize| i as f64 * series.every_ms / 1e3;
        kb.iter().enumerate().map(|(i, kb)| (at(i), kb / 1024.0)).collect()
    };
    let line = |name: &str, number, kb: &[f64]| LineSeries {
        name: name.into(),
        number,
        points: points(kb),
        marked: false,
    };
    let deepest = deepest(series) / 1024.0;
    Lines {
        title: series.variant.clone(),
        description: format!("{}: at most {deepest:.2} MiB waited in the queue", series.variant),
        x: AxisSpec::linear("seconds since the writer began (virtual clock)"),
        y: AxisSpec::linear("MiB waiting"),
        series: vec![line("writes", 0, &series.write_kb), line("reads", 1, &series.read_kb)],
        levels: vec![],
        instants: vec![(series.reads_from_s, "first file is read".into())],
        at_least,
        size: SIZE,
    }
}
