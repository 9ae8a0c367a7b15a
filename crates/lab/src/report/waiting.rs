//! What waited in the request scheduler's queue over time: a chart a variant, all on one scale.

use super::lines::{Lines, panels};
use super::svg::Drawing;
use crate::results::{QueueSeries, Results};

/// A chart a variant; of several seeds the first's.
pub(super) fn all(results: &Results) -> Vec<Drawing> {
    let axis = format!("seconds since the writer began ({})", results.clock);
    panels(&results.only().of().map(|series| chart(series, &axis)).collect::<Vec<_>>())
}

fn chart<'a>(series: &'a QueueSeries, axis: &'a str) -> Lines<'a> {
    let points = |kb: &[f64]| {
        let at = |i: usize| i as f64 * series.every_ms / 1e3;
        kb.iter().enumerate().map(|(i, kb)| (at(i), kb / 1024.0)).collect()
    };
    let both = series.write_kb.iter().chain(&series.read_kb);
    let deepest = both.copied().fold(0.0, f64::max) / 1024.0;
    Lines {
        title: &series.variant,
        description: format!("{}: at most {deepest:.2} MiB waited in the queue", series.variant),
        axes: (axis, "MiB waiting"),
        series: vec![("writes", points(&series.write_kb)), ("reads", points(&series.read_kb))],
        instant: Some((series.reads_from_s, "first file is read")),
    }
}
