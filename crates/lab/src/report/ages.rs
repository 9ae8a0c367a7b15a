//! The age of what cuts took, over the run: a chart a variant, all on one scale. What nobody syncs
//! grows old until a timer of the file system writes it, and that is seen once the run is longer.

use super::lines::{AxisSpec, LineSeries, Lines, svg};
use crate::results::{AgeSeries, Results};

const SIZE: (f64, f64) = (500.0, 250.0);

/// A chart a variant; of several seeds the first's.
pub(super) fn panels(results: &Results) -> Vec<String> {
    let all = || results.only().of::<AgeSeries>();
    let most = |of: fn(&AgeSeries) -> &[u64]| {
        let values = all().flat_map(of);
        values.copied().max().map_or(0.0, seconds)
    };
    let at_least = (most(|s| &s.at_ms), most(|s| &s.age_ms));
    all().map(|series| svg(&chart(series, at_least))).collect()
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

fn chart(series: &AgeSeries, at_least: (f64, f64)) -> Lines {
    let oldest = series.age_ms.iter().copied().max().map_or(0.0, seconds);
    let points = series.at_ms.iter().zip(&series.age_ms);
    let clock = series.clock.name();
    Lines {
        title: series.variant.clone(),
        description: format!("{}: at most {oldest:.2} s old was what a cut took", series.variant),
        x: AxisSpec::linear(&format!("seconds from the beginning to the cut ({clock} clock)")),
        y: AxisSpec::linear("age of the oldest that was lost, s"),
        series: vec![LineSeries {
            name: "lost".into(),
            number: 0,
            points: points.map(|(at, age)| (seconds(*at), seconds(*age))).collect(),
            marked: false,
        }],
        levels: vec![],
        instants: vec![],
        at_least,
        size: SIZE,
    }
}
