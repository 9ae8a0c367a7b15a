//! Charts of lines: side by side on one scale, as the depth of a queue or an age over time, or over
//! each other, as how long calls took.

use super::plot::{Frame, Plot};
use super::scale::Scale;
use super::svg::Drawing;
use super::theme::COLOURS;

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

/// Draws what has points: of more lines than there are colours several charts, all on one scale.
pub(super) fn overlay(of: Overlay<'_>) -> Vec<Drawing> {
    let Overlay { title, x, y, described, mut lines } = of;
    lines.retain(|(_, _, points)| !points.is_empty());
    let all = || lines.iter().flat_map(|(_, _, points)| points);
    let scales = (Scale::of(x.0, all().map(|p| p.0)), Scale::of(y.0, all().map(|p| p.1)));
    let charts = lines.len().div_ceil(COLOURS);
    let chart = |(number, part): (usize, &[NamedLine<'_>])| {
        let title = match charts {
            1 => title.to_owned(),
            n => format!("{title} ({} of {n})", number + 1),
        };
        // Of one chart a line looks as in the other charts of the page.
        let series = |place: usize, own: usize| if charts == 1 { own } else { place };
        let said: Vec<_> = part.iter().map(|(name, _, points)| described(name, points)).collect();
        let lines = || part.iter().enumerate();
        let names: Vec<_> = lines().map(|(i, (name, own, _))| (series(i, *own), *name)).collect();
        let mut plot = Plot::new(Frame {
            title: &title,
            description: &said.join("; "),
            x: (scales.0.clone(), x.1),
            y: (scales.1.clone(), y.1),
            legend: (&names, true),
            width: 500.0,
            height: 200.0,
            right: 22.0,
        });
        for (i, (name, own, points)) in lines() {
            plot.line(points, series(i, *own), name);
        }
        plot.end()
    };
    lines.chunks(COLOURS).enumerate().map(chart).collect()
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
