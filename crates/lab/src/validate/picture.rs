//! The two curves of a drive: the distribution of its response times, and of the model's.

use super::Validation;
use crate::report::plot::{Frame, Plot};
use crate::report::scale::Scale;
use crate::report::svg::{Drawing, alone};

/// Points of a curve.
const POINTS: usize = 200;
/// Share of the requests that the picture shows; beyond it lie a few very long ones.
const SHOWN: f64 = 0.999;

/// A chart for each drive, complete as a file.
pub fn svg(all: &[Validation]) -> String {
    let charts: Vec<Drawing> = all.iter().map(chart).collect();
    alone("Response times: drives and the model", &charts)
}

fn chart(v: &Validation) -> Drawing {
    let curves = [("the drive", curve(&v.times.drive)), ("the model", curve(&v.times.model))];
    let legend: Vec<(usize, &str)> = (0..).zip(curves.iter().map(|(name, _)| *name)).collect();
    let times = curves.iter().flat_map(|(_, curve)| curve.iter().map(|(x, _)| *x));
    let title = format!("{}: response times, drive and model", v.name);
    let demerit = v.times.demerits().all.unwrap_or(0.0);
    let description =
        format!("Share of requests answered within a time. The curves are {demerit:.3} ms apart.");
    let mut plot = Plot::new(Frame {
        title: &title,
        description: &description,
        x: (Scale::of(false, times), "response time in ms"),
        y: (Scale::of(false, [0.0, 100.0].into_iter()), "% of the requests"),
        legend: (&legend, true),
        width: 720.0,
        height: 320.0,
        right: 20.0,
    });
    for (series, (name, points)) in curves.iter().enumerate() {
        plot.line(points, series, name);
    }
    plot.end()
}

fn curve(times: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |i: usize| {
        let share = SHOWN * i as f64 / POINTS as f64;
        // OK to index: below the length, which is not 0 (the trace's check).
        (sorted[((sorted.len() - 1) as f64 * share) as usize], 100.0 * share)
    };
    (0..=POINTS).map(at).collect()
}
