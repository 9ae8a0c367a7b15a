//! Points with labels: each beside its point, where it covers no other.

use std::ops::Range;

use super::svg::{Anchor, CHARACTER, Svg};

/// From one label to the one below it.
const LINE: f64 = 14.0;
/// Radius of a point.
const REACH: f64 = 5.0;
/// Of points at one place so many names are in their label.
const NAMED: usize = 3;

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
fn place(
    at: (f64, f64),
    name: &str,
    points: &[(f64, f64)],
    placed: &[PointLabel],
    room: &(f64, Range<f64>),
) -> PointLabel {
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
        let inside =
            label.left > 0.0 && label.left + label.width < room.0 && room.1.contains(&label.y);
        let covered = points.iter().any(|p| *p != at && label.covers(*p));
        inside && !covered && !placed.iter().any(|other| label.meets(other))
    };
    let beside = PointLabel { left: at.0 + 9.0, width, y: at.1 };
    candidates.find(free).unwrap_or(beside)
}

/// Draws points, one a series, with their names and tooltips; `room`: how far the labels may be
/// to the right, and from where to where down.
pub(super) fn draw(
    svg: &mut Svg,
    points: &[(f64, f64)],
    labels: &[(&str, String)],
    room: (f64, Range<f64>),
) {
    let mut placed: Vec<PointLabel> = Vec::new();
    let is_same =
        |a: &(f64, f64), b: &(f64, f64)| (a.0 - b.0).abs() < 1.0 && (a.1 - b.1).abs() < 1.0;
    for (i, (at, (_, tooltip))) in points.iter().zip(labels).enumerate() {
        if points[..i].iter().any(|other| is_same(other, at)) {
            svg.mark(*at, i, tooltip);
            continue;
        }
        let here = points.iter().zip(labels).filter(|(other, _)| is_same(other, at));
        let name = &listed(here.map(|(_, (name, _))| *name).collect());
        let label = place(*at, name, points, &placed, &room);
        placed.push(label);
        if (label.y - at.1).abs() >= LINE {
            // From the point to the end of the label that is nearer.
            let right = label.left > at.0;
            let end = if right { label.left - 2.0 } else { label.left + label.width };
            svg.line(*at, (end, label.y), "axis");
        }
        svg.mark(*at, i, tooltip);
        svg.text((label.left, label.y + 4.0), "ink", Anchor::Start, name);
    }
}

/// The names of points at one place.
fn listed(names: Vec<&str>) -> String {
    match names.len() {
        n if n > NAMED => format!("{} and {} more", names[..NAMED].join(", "), n - NAMED),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_has_a_label_of_its_own_place() {
        let mut svg = Svg::new(300.0, 200.0, "", "");
        let labels = ["one", "two", "<3>", "four"].map(|name| (name, String::new()));
        let points = [(50.0, 50.0), (52.0, 50.0), (0.0, 100.0), (50.0, 50.0)];
        draw(&mut svg, &points, &labels, (300.0, 0.0..200.0));
        let s = svg.end().svg;
        assert_eq!(s.matches("<path").count(), 4);
        assert!(s.contains("&lt;3&gt;"));
        let place_of = |name: &str| {
            let end = s.find(&format!("\" class=\"ink\">{name}</text>")).unwrap();
            s[..end].rsplit("<text x=\"").next().unwrap().to_owned()
        };
        // Points at one spot have one label.
        assert_ne!(place_of("one, four"), place_of("two"));
        assert_eq!(listed(vec!["a", "b", "c", "d", "e"]), "a, b, c and 2 more");
    }
}
