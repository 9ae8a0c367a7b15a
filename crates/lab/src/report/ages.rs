//! The age of what cuts took, over the run: a chart a variant, all on one scale. What nobody syncs
//! grows old until a timer of the file system writes it, and that is seen once the run is longer.

use super::lines::{Lines, panels};
use super::svg::Drawing;
use crate::results::{AgeSeries, Results};

/// A chart a variant; of several seeds the first's.
pub(super) fn all(results: &Results) -> Vec<Drawing> {
    let series: Vec<&AgeSeries> = results.only().of().collect();
    let clock = |s: &&AgeSeries| {
        format!("seconds from the beginning to the cut ({} clock)", s.clock.name())
    };
    let clocks: Vec<String> = series.iter().map(clock).collect();
    panels(&series.iter().zip(&clocks).map(|(s, clock)| chart(s, clock)).collect::<Vec<_>>())
}

fn chart<'a>(series: &'a AgeSeries, clock: &'a str) -> Lines<'a> {
    let seconds = |ms: u64| ms as f64 / 1e3;
    let oldest = series.age_ms.iter().copied().max().map_or(0.0, seconds);
    let points = series.at_ms.iter().zip(&series.age_ms);
    let points = points.map(|(at, age)| (seconds(*at), seconds(*age))).collect();
    Lines {
        title: &series.variant,
        description: format!("{}: at most {oldest:.2} s old was what a cut took", series.variant),
        axes: (clock, "age of the oldest that was lost, s"),
        series: vec![("lost", points)],
        instant: None,
    }
}
