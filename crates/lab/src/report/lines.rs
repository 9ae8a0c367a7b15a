//! Charts of lines, side by side on one scale: depth of a queue or age over time.

use super::plot::{Frame, Plot};
use super::scale::Scale;
use super::svg::Drawing;

/// A chart of lines on linear axes.
pub(super) struct Lines<'a> {
    pub title: &'a str,
    pub description: String,
    /// What the axes are of.
    pub axes: (&'a str, &'a str),
    /// Names and points of the lines.
    pub series: Vec<(&'a str, Vec<(f64, f64)>)>,
    /// An upright line.
    pub instant: Option<(f64, &'a str)>,
}

/// Draws them, all on one scale.
pub(super) fn panels(charts: &[Lines<'_>]) -> Vec<Drawing> {
    let points = || charts.iter().flat_map(|c| &c.series).flat_map(|(_, points)| points);
    let x = Scale::of(false, points().map(|p| p.0));
    let y = Scale::of(false, points().map(|p| p.1));
    let panel = |chart: &Lines<'_>| {
        let names: Vec<(usize, &str)> = chart.series.iter().map(|s| s.0).enumerate().collect();
        let mut plot = Plot::new(Frame {
            title: chart.title,
            description: &chart.description,
            x: (x.clone(), chart.axes.0),
            y: (y.clone(), chart.axes.1),
            legend: (&names, true),
            width: 500.0,
            height: 140.0,
            right: 22.0,
        });
        if let Some((at, name)) = chart.instant {
            plot.instant(at, name);
        }
        for (number, (name, points)) in chart.series.iter().enumerate() {
            plot.line(points, number, name);
        }
        plot.end()
    };
    charts.iter().map(panel).collect()
}
