//! A chart of points, one a variant, on two logarithmic axes: SVG drawn by hand, as the bars.

use super::scale::Scale;
use super::svg::{Anchor, CHARACTER, Svg, compact};

/// Named points.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scatter {
    /// Above the chart.
    pub title: String,
    /// What the horizontal axis is.
    pub x: String,
    /// What the vertical axis is.
    pub y: String,
    /// Name, x, y. What is not above zero is drawn at the axis' lower end.
    pub points: Vec<(String, f64, f64)>,
}

const LEFT: f64 = 52.0;
const TOP: f64 = 54.0;
const PLOT_WIDTH: f64 = 560.0;
const PLOT_HEIGHT: f64 = 320.0;
const WIDTH: f64 = LEFT + PLOT_WIDTH + 130.0;
const HEIGHT: f64 = TOP + PLOT_HEIGHT + 50.0;
/// From one label to the one below it.
const LINE: f64 = 14.0;
/// Radius of a point.
const REACH: f64 = 5.0;

/// Draws the chart as a complete `<svg>` element.
pub(super) fn svg(chart: &Scatter) -> String {
    let tooltip = |(name, x, y): &(String, f64, f64)| tooltip(chart, name, *x, *y);
    let description: Vec<String> = chart.points.iter().map(tooltip).collect();
    let mut svg = Svg::new(WIDTH, HEIGHT, &chart.title, &description.join("; "));
    svg.heading(&chart.title);
    let x = Scale::of(true, chart.points.iter().map(|(_, x, _)| *x));
    let y = Scale::of(true, chart.points.iter().map(|(_, _, y)| *y));
    axes(&mut svg, chart, &x, &y);
    points(&mut svg, chart, &x, &y);
    svg.end()
}

fn tooltip(chart: &Scatter, name: &str, x: f64, y: f64) -> String {
    format!("{name}: {} {}, {} {}", compact(y), chart.y, compact(x), chart.x)
}

fn axes(svg: &mut Svg, chart: &Scatter, x: &Scale, y: &Scale) {
    let bottom = TOP + PLOT_HEIGHT;
    for (tick, text) in x.ticks() {
        let at = LEFT + x.share(tick) * PLOT_WIDTH;
        svg.line((at, TOP), (at, bottom), "grid");
        svg.text((at, bottom + 16.0), "dim", Anchor::Middle, &text);
    }
    for (tick, text) in y.ticks() {
        let at = bottom - y.share(tick) * PLOT_HEIGHT;
        svg.line((LEFT, at), (LEFT + PLOT_WIDTH, at), "grid");
        svg.text((LEFT - 6.0, at + 4.0), "dim", Anchor::End, &text);
    }
    svg.text((LEFT + PLOT_WIDTH / 2.0, bottom + 38.0), "ink", Anchor::Middle, &chart.x);
    svg.text((0.0, TOP - 10.0), "ink", Anchor::Start, &chart.y);
}

/// A label: its box, and where its point is.
#[derive(Debug, Clone, Copy)]
struct PointLabel {
    left: f64,
    width: f64,
    /// Of the text's middle.
    y: f64,
}

impl PointLabel {
    fn meets(&self, other: &PointLabel) -> bool {
        let apart = self.left + self.width < other.left || other.left + other.width < self.left;
        !apart && (self.y - other.y).abs() < LINE
    }

    fn covers(&self, (x, y): (f64, f64)) -> bool {
        let beside = x < self.left - REACH || x > self.left + self.width + REACH;
        !beside && (self.y - y).abs() < LINE / 2.0 + REACH
    }
}

/// The place next to a point, right or left, as high as it, above or below, that is free.
fn place(at: (f64, f64), name: &str, points: &[(f64, f64)], placed: &[PointLabel]) -> PointLabel {
    let width = name.chars().count() as f64 * CHARACTER;
    let lines = [0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0, -4.0, 4.0, -5.0, 5.0];
    let mut candidates = lines.iter().flat_map(|line| {
        [at.0 + 9.0, at.0 - 9.0 - width].map(|left| PointLabel {
            left,
            width,
            y: at.1 + line * LINE,
        })
    });
    let free = |label: &PointLabel| {
        let inside = label.left > 0.0
            && label.left + label.width < WIDTH
            && (TOP..TOP + PLOT_HEIGHT).contains(&label.y);
        let covered = points.iter().any(|p| *p != at && label.covers(*p));
        inside && !covered && !placed.iter().any(|other| label.meets(other))
    };
    let beside = PointLabel { left: at.0 + 9.0, width, y: at.1 };
    candidates.find(free).unwrap_or(beside)
}

fn points(svg: &mut Svg, chart: &Scatter, x: &Scale, y: &Scale) {
    let at = |px: f64, py: f64| {
        (LEFT + x.share(px) * PLOT_WIDTH, TOP + (1.0 - y.share(py)) * PLOT_HEIGHT)
    };
    let places: Vec<(f64, f64)> = chart.points.iter().map(|(_, px, py)| at(*px, *py)).collect();
    let mut placed: Vec<PointLabel> = Vec::new();
    for (i, ((name, px, py), at)) in chart.points.iter().zip(&places).enumerate() {
        let label = place(*at, name, &places, &placed);
        placed.push(label);
        if (label.y - at.1).abs() >= LINE {
            // From the point to the end of the label that is nearer.
            let right = label.left > at.0;
            let end = if right { label.left - 2.0 } else { label.left + label.width };
            svg.line(*at, (end, label.y), "axis");
        }
        svg.mark(*at, i, &tooltip(chart, name, *px, *py));
        svg.text((label.left, label.y + 4.0), "ink", Anchor::Start, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_label_of_its_own_place() {
        let point = |name: &str| (name.to_owned(), 10.0, 10.0);
        let chart = Scatter {
            title: "a & b".into(),
            x: "KiB".into(),
            y: "a second".into(),
            points: vec![point("one"), point("two"), ("<3>".into(), 0.0, 5.0)],
        };
        let s = svg(&chart);
        assert!(s.contains("a &amp; b") && s.contains("&lt;3&gt;") && s.ends_with("</svg>"));
        assert_eq!(s.matches("<path").count(), 3);
        let place_of = |name: &str| {
            let end = s.find(&format!("\" class=\"ink\">{name}</text>")).unwrap();
            s[..end].rsplit("<text x=\"").next().unwrap().to_owned()
        };
        assert_ne!(place_of("one"), place_of("two"));
    }
}
