//! Charts of lines: side by side on one scale, as the depth of a queue or an age over time, or over
//! each other, as how long calls took.

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

/// A line: its name, its number, and points.
pub(super) type NamedLine<'a> = (&'a str, usize, Vec<(f64, f64)>);

/// A line in words.
type LineWords<'a> = &'a dyn Fn(&str, &[(f64, f64)]) -> String;

/// Lines over each other.
pub(super) struct Overlay<'a> {
    pub title: &'a str,
    /// Whether the axis is logarithmic, and what it is of.
    pub x: (bool, &'a str),
    pub y: (bool, &'a str),
    pub described: LineWords<'a>,
    pub lines: Vec<NamedLine<'a>>,
}

/// Draws what has points; `None` if nothing has.
pub(super) fn overlay(of: Overlay<'_>) -> Option<Drawing> {
    let Overlay { title, x, y, described, mut lines } = of;
    lines.retain(|(_, _, points)| !points.is_empty());
    let said: Vec<_> = lines.iter().map(|(name, _, points)| described(name, points)).collect();
    let all = || lines.iter().flat_map(|(_, _, points)| points);
    let names: Vec<_> = lines.iter().map(|(name, number, _)| (*number, *name)).collect();
    let mut plot = Plot::new(Frame {
        title,
        description: &said.join("; "),
        x: (Scale::of(x.0, all().map(|p| p.0)), x.1),
        y: (Scale::of(y.0, all().map(|p| p.1)), y.1),
        legend: (&names, true),
        width: 500.0,
        height: 200.0,
        right: 22.0,
    });
    for (name, number, points) in &lines {
        plot.line(points, *number, name);
    }
    (!lines.is_empty()).then(|| plot.end())
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
