//! A chart of points, one a variant, on two logarithmic axes: SVG drawn by hand, as the bars.

use std::fmt::Write as _;

use super::chart::{PALETTE, compact, escape};

/// Named points.
#[derive(Debug, Clone, PartialEq)]
pub struct Scatter {
    /// Above the chart.
    pub title: String,
    /// What the horizontal axis is.
    pub x: String,
    /// What the vertical axis is.
    pub y: String,
    /// Name, x, y. What is not above zero is drawn at the axis' lower end.
    pub points: Vec<(String, f64, f64)>,
}

const LEFT: f64 = 80.0;
const TOP: f64 = 48.0;
const PLOT_WIDTH: f64 = 760.0;
const PLOT_HEIGHT: f64 = 360.0;
const WIDTH: f64 = LEFT + PLOT_WIDTH + 130.0;
const HEIGHT: f64 = TOP + PLOT_HEIGHT + 56.0;
/// From one label to the one below it.
const LINE: f64 = 14.0;
/// Radius of a point.
const REACH: f64 = 5.0;

/// Whole decades around what is above zero.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Decades {
    first: i32,
    last: i32,
}

impl Decades {
    fn of(values: impl Iterator<Item = f64>) -> Decades {
        let logs: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).map(f64::log10).collect();
        let least = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if logs.is_empty() {
            return Decades { first: 0, last: 1 };
        }
        // OK to cast: logarithms of finite numbers are small.
        let first = least.floor() as i32;
        Decades { first, last: (most.ceil() as i32).max(first + 1) }
    }

    /// Where a value is, from 0 to 1.
    fn share(self, value: f64) -> f64 {
        if value <= 0.0 {
            return 0.0;
        }
        let width = f64::from(self.last - self.first);
        ((value.log10() - f64::from(self.first)) / width).clamp(0.0, 1.0)
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        (self.first..=self.last).map(|d| 10f64.powi(d))
    }
}

/// Draws the chart as a complete `<svg>` element.
pub fn svg(chart: &Scatter) -> String {
    let mut s = String::new();
    // Writing to a String cannot fail, so the results are dropped here and below.
    let _ = write!(
        s,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\
         <title>{t}</title><rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"15\" font-weight=\"600\" fill=\"#222\">{t}</text>",
        t = escape(&chart.title)
    );
    let x = Decades::of(chart.points.iter().map(|(_, x, _)| *x));
    let y = Decades::of(chart.points.iter().map(|(_, _, y)| *y));
    axes(&mut s, chart, x, y);
    points(&mut s, chart, x, y);
    s.push_str("</svg>");
    s
}

fn axes(s: &mut String, chart: &Scatter, x: Decades, y: Decades) {
    let bottom = TOP + PLOT_HEIGHT;
    for tick in x.ticks() {
        let at = LEFT + x.share(tick) * PLOT_WIDTH;
        let _ = write!(
            s,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            bottom + 16.0,
            compact(tick)
        );
    }
    for tick in y.ticks() {
        let at = bottom - y.share(tick) * PLOT_HEIGHT;
        let _ = write!(
            s,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
            LEFT + PLOT_WIDTH,
            LEFT - 6.0,
            at + 4.0,
            compact(tick)
        );
    }
    let _ = write!(
        s,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#222\">{}</text>\
         <text x=\"{LEFT}\" y=\"{}\" text-anchor=\"end\" fill=\"#222\">{}</text>",
        LEFT + PLOT_WIDTH / 2.0,
        bottom + 40.0,
        escape(&chart.x),
        TOP - 10.0,
        escape(&chart.y)
    );
}

/// A label: its box, and where its point is.
#[derive(Debug, Clone, Copy)]
struct Label {
    left: f64,
    width: f64,
    /// Of the text's middle.
    y: f64,
}

impl Label {
    fn meets(&self, other: &Label) -> bool {
        let apart = self.left + self.width < other.left || other.left + other.width < self.left;
        !apart && (self.y - other.y).abs() < LINE
    }

    fn covers(&self, (x, y): (f64, f64)) -> bool {
        let beside = x < self.left - REACH || x > self.left + self.width + REACH;
        !beside && (self.y - y).abs() < LINE / 2.0 + REACH
    }
}

/// The place next to a point, right or left, as high as it, above or below, that is free.
fn place(at: (f64, f64), name: &str, points: &[(f64, f64)], placed: &[Label]) -> Label {
    let width = name.chars().count() as f64 * 6.6;
    let lines = [0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0, -4.0, 4.0, -5.0, 5.0];
    let mut candidates = lines.iter().flat_map(|line| {
        [at.0 + 9.0, at.0 - 9.0 - width].map(|left| Label { left, width, y: at.1 + line * LINE })
    });
    let free = |label: &Label| {
        let inside = label.left > 0.0
            && label.left + label.width < WIDTH
            && (TOP..TOP + PLOT_HEIGHT).contains(&label.y);
        let covered = points.iter().any(|p| *p != at && label.covers(*p));
        inside && !covered && !placed.iter().any(|other| label.meets(other))
    };
    let beside = Label { left: at.0 + 9.0, width, y: at.1 };
    candidates.find(free).unwrap_or(beside)
}

fn points(s: &mut String, chart: &Scatter, x: Decades, y: Decades) {
    let at = |px: f64, py: f64| {
        (LEFT + x.share(px) * PLOT_WIDTH, TOP + (1.0 - y.share(py)) * PLOT_HEIGHT)
    };
    let places: Vec<(f64, f64)> = chart.points.iter().map(|(_, px, py)| at(*px, *py)).collect();
    let mut placed: Vec<Label> = Vec::new();
    for (i, ((name, px, py), at)) in chart.points.iter().zip(&places).enumerate() {
        let label = place(*at, name, &places, &placed);
        placed.push(label);
        let colour = PALETTE[i % PALETTE.len()];
        if (label.y - at.1).abs() >= LINE {
            // From the point to the end of the label that is nearer.
            let right = label.left > at.0;
            let end = if right { label.left - 2.0 } else { label.left + label.width };
            let _ = write!(
                s,
                "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{end:.1}\" y2=\"{:.1}\" stroke=\"#999\" \
                 stroke-width=\"0.7\"/>",
                at.0, at.1, label.y
            );
        }
        let _ = write!(
            s,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{REACH}\" fill=\"{colour}\" stroke=\"#333\" \
             stroke-width=\"0.5\"><title>{}: {} {}, {} {}</title></circle>\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#222\">{}</text>",
            at.0,
            at.1,
            escape(name),
            compact(*py),
            escape(&chart.y),
            compact(*px),
            escape(&chart.x),
            label.left,
            label.y + 4.0,
            escape(name)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_whole_decades_and_zero_is_at_the_end() {
        let d = Decades::of([0.0, 3.0, 420.0].into_iter());
        assert_eq!(d, Decades { first: 0, last: 3 });
        assert_eq!((d.share(0.0), d.share(1.0), d.share(1000.0)), (0.0, 0.0, 1.0));
        assert_eq!(Decades::of([0.0].into_iter()), Decades { first: 0, last: 1 });
        assert_eq!(Decades::of([10.0].into_iter()), Decades { first: 1, last: 2 });
    }

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
        assert_eq!(s.matches("<circle").count(), 3);
        let place_of = |name: &str| {
            let end = s.find(&format!("\" fill=\"#222\">{name}</text>")).unwrap();
            s[..end].rsplit("<text x=\"").next().unwrap().to_owned()
        };
        assert_ne!(place_of("one"), place_of("two"));
    }
}
