//! A chart: title, legend and two scales, and marks where the scales put them.

use super::labels;
use super::scale::Scale;
use super::svg::{Anchor, CHARACTER, Drawing, Svg, colour, shortened};
use crate::results::Spread;

/// What is around the marks.
pub(crate) struct Frame<'a> {
    /// Above the chart.
    pub title: &'a str,
    /// What it shows, in words, for whoever does not see it.
    pub description: &'a str,
    /// The horizontal axis, and what it is of, with the unit.
    pub x: (Scale, &'a str),
    /// The vertical one. Numbers begin at the bottom, names at the top.
    pub y: (Scale, &'a str),
    /// Series by number and name, and whether they are lines.
    pub legend: (&'a [(usize, &'a str)], bool),
    /// Of the whole chart.
    pub width: f64,
    /// Of what is between the axes.
    pub height: f64,
    /// Beside it on the right: for [`Plot::row_text`] and labels.
    pub right: f64,
}

/// A chart that is being drawn. Its places are in the units of the scales.
pub(crate) struct Plot {
    svg: Svg,
    x: Scale,
    y: Scale,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
    whole_width: f64,
}

/// Left of numbers on the vertical axis.
const LEFT: f64 = 52.0;
/// From the title to the first line of the legend, and of one line.
const LEGEND: (f64, f64) = (32.0, 18.0);
/// Characters of a name on the vertical axis, at most.
const NAME: usize = 26;
/// How high a bar is.
const BAR: f64 = 14.0;
/// Marks of a line whose points are too many for one each.
const MARKS: usize = 6;

/// How high a row is, of names on the vertical axis.
pub(crate) const ROW: f64 = 24.0;

/// How wide these texts are, at most.
pub(crate) fn widest<'t>(texts: impl IntoIterator<Item = &'t str>) -> f64 {
    texts.into_iter().map(|t| t.chars().count()).max().unwrap_or(0) as f64 * CHARACTER
}

impl Plot {
    /// With its axes, and no marks yet.
    pub(crate) fn new(frame: Frame<'_>) -> Plot {
        let Frame { title, description, x: (x, x_name), y: (y, y_name), legend, .. } = frame;
        let left = match &y {
            Scale::Names { names, .. } => {
                widest(names.iter().map(|(_, name)| name.as_str())).min(NAME as f64 * CHARACTER)
                    + 16.0
            }
            _ => LEFT,
        };
        let (places, lines) = legend_places(legend.0, left, frame.width);
        let top = LEGEND.0 + LEGEND.1 * lines as f64 + 22.0;
        let bottom = top + frame.height;
        let mut svg = Svg::new(frame.width, bottom + 50.0, title, description);
        svg.heading(&shortened(title, (frame.width / 8.0) as usize));
        for ((series, name), (x, y)) in legend.0.iter().zip(places) {
            if legend.1 {
                svg.path(&[(x, y), (x + 26.0, y)], *series, name);
            }
            svg.mark((x + 13.0, y), *series, name);
            svg.text((x + 32.0, y + 4.0), "ink", Anchor::Start, name);
        }
        let width = frame.width - left - frame.right;
        let (height, whole_width) = (frame.height, frame.width);
        let mut plot = Plot { svg, x, y, left, top, width, height, whole_width };
        plot.axes(x_name, y_name);
        plot
    }

    fn axes(&mut self, x_name: &str, y_name: &str) {
        let (left, top, right, bottom) =
            (self.left, self.top, self.left + self.width, self.top + self.height);
        for (tick, text) in self.x.ticks() {
            let x = self.x(tick);
            self.svg.line((x, top), (x, bottom), "grid");
            self.svg.text((x, bottom + 16.0), "dim", Anchor::Middle, &text);
        }
        let class = if self.y.is_of_names() { "ink" } else { "dim" };
        for (tick, text) in self.y.ticks() {
            let y = self.y(tick);
            self.svg.line((left, y), (right, y), "grid");
            self.svg.text((left - 6.0, y + 4.0), class, Anchor::End, &shortened(&text, NAME));
        }
        self.svg.text((left + self.width / 2.0, bottom + 38.0), "ink", Anchor::Middle, x_name);
        self.svg.text((0.0, top - 10.0), "ink", Anchor::Start, y_name);
        // Where zero is, if it is on the axis.
        if self.x.is_from_zero() {
            self.svg.line((left, top), (left, bottom), "axis");
        }
        if self.y.is_from_zero() {
            self.svg.line((left, bottom), (right, bottom), "axis");
        }
    }

    fn x(&self, x: f64) -> f64 {
        self.left + self.x.share(x) * self.width
    }

    fn y(&self, y: f64) -> f64 {
        let share = self.y.share(y);
        let below = if self.y.is_of_names() { share } else { 1.0 - share };
        self.top + below * self.height
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x(x), self.y(y))
    }

    /// A straight line across, and its name above the axes: beside the line others would cross it.
    pub(crate) fn level(&mut self, level: f64, name: &str) {
        let (y, right) = (self.y(level), self.left + self.width);
        self.svg.line((self.left, y), (right, y), "axis");
        self.above(&format!("line across: {name}"));
    }

    /// What stands above the axes, on the right.
    pub(crate) fn above(&mut self, text: &str) {
        self.svg.text((self.whole_width, self.top - 10.0), "ink", Anchor::End, text);
    }

    /// A straight line upright, and its name.
    pub(crate) fn instant(&mut self, at: f64, name: &str) {
        let x = self.x(at);
        self.svg.line((x, self.top), (x, self.top + self.height), "axis");
        self.svg.text((x + 4.0, self.top + 12.0), "ink", Anchor::Start, name);
    }

    /// A line through points from left to right, with a mark at each of few points.
    pub(crate) fn line(&mut self, points: &[(f64, f64)], series: usize, name: &str) {
        let places: Vec<(f64, f64)> = points.iter().map(|at| self.at(*at)).collect();
        self.svg.path(&places, series, name);
        let every = (places.len() / MARKS).max(1);
        // Not all series at the same places, or one would hide the other.
        for at in places.iter().skip(every * (series % 6) / 6).step_by(every) {
            self.svg.mark(*at, series, name);
        }
    }

    /// The mark of a series.
    pub(crate) fn mark(&mut self, at: (f64, f64), series: usize, tooltip: &str) {
        self.svg.mark(self.at(at), series, tooltip);
    }

    /// Points, one a series, each with a label beside it that covers no other.
    pub(crate) fn labelled(&mut self, points: &[(f64, f64)], labels: &[(&str, String)]) {
        let places: Vec<(f64, f64)> = points.iter().map(|at| self.at(*at)).collect();
        let free = (self.whole_width, self.top..self.top + self.height);
        labels::draw(&mut self.svg, &places, labels, free);
    }

    /// A bar that lies in a row.
    pub(crate) fn bar(&mut self, row: usize, ends: (f64, f64), series: usize, tooltip: &str) {
        let ((from, to), y) = ((self.x(ends.0), self.x(ends.1)), self.y(row as f64));
        let size = ((to - from).max(0.5), BAR);
        self.svg.rect((from, y - BAR / 2.0), size, &colour(series), tooltip);
    }

    /// From the least to the greatest value, in a row.
    pub(crate) fn range(&mut self, row: usize, spread: &Spread) {
        let (from, to, y) = (self.x(spread.min()), self.x(spread.max()), self.y(row as f64));
        // What is narrower could be taken for another mark.
        if to - from > 3.0 {
            self.svg.line((from, y), (to, y), "edge");
            for x in [from, to] {
                self.svg.line((x, y - 4.0), (x, y + 4.0), "edge");
            }
        }
    }

    /// From one value to another, upright.
    pub(crate) fn upright_range(&mut self, at: f64, (from, to): (f64, f64)) {
        let (x, from, to) = (self.x(at), self.y(from), self.y(to));
        self.svg.line((x, from), (x, to), "edge");
    }

    /// From one value to another, across.
    pub(crate) fn level_range(&mut self, at: f64, (from, to): (f64, f64)) {
        let (y, from, to) = (self.y(at), self.x(from), self.x(to));
        self.svg.line((from, y), (to, y), "edge");
    }

    /// An upright mark across a bar.
    pub(crate) fn upright(&mut self, row: usize, at: f64, tooltip: &str) {
        self.svg.upright(self.at((at, row as f64)), tooltip);
    }

    /// A square where a column and a row meet, with a colour of heat and a text.
    pub(super) fn cell(&mut self, at: (usize, usize), heat: usize, text: &str, tooltip: &str) {
        let (columns, rows) = (self.x.ticks().len() as f64, self.y.ticks().len() as f64);
        let (wide, high) = (self.width / columns, self.height / rows);
        let (x, y) = self.at((at.0 as f64, at.1 as f64));
        let corner = (x - wide / 2.0, y - high / 2.0);
        self.svg.rect(corner, (wide - 1.0, high - 1.0), &format!("h{heat}"), tooltip);
        self.svg.text((x, y + 4.0), &format!("t{heat}"), Anchor::Middle, text);
    }

    /// What stands behind a row.
    pub(crate) fn row_text(&mut self, row: usize, text: &str) {
        let y = self.y(row as f64) + 4.0;
        self.svg.text((self.whole_width, y), "ink", Anchor::End, text);
    }

    /// The whole chart.
    pub(crate) fn end(self) -> Drawing {
        self.svg.end()
    }
}

/// Where each name of a legend begins, and how many lines it has.
fn legend_places(names: &[(usize, &str)], left: f64, width: f64) -> (Vec<(f64, f64)>, usize) {
    let (mut x, mut lines) = (left, usize::from(!names.is_empty()));
    let mut places = Vec::new();
    for (_, name) in names {
        let wide = 44.0 + widest([*name]);
        if x > left && x + wide > width {
            (x, lines) = (left, lines + 1);
        }
        places.push((x, LEGEND.0 + LEGEND.1 * (lines - 1) as f64));
        x += wide;
    }
    (places, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(x: Scale, y: Scale, legend: &'a [(usize, &'a str)]) -> Frame<'a> {
        Frame {
            title: "depth",
            description: "of the queue",
            x: (x, "seconds"),
            y: (y, "requests"),
            legend: (legend, true),
            width: 500.0,
            height: 200.0,
            right: 22.0,
        }
    }

    fn numbers(max: f64) -> Scale {
        Scale::of(false, [max].into_iter())
    }

    #[test]
    fn lines_have_their_legend_and_few_marks() {
        let points: Vec<(f64, f64)> = (0..1000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        let mut plot = Plot::new(frame(numbers(999.0), numbers(25.0), &[(0, "a"), (1, "<b>")]));
        plot.line(&points, 0, "a");
        plot.line(&points, 1, "<b>");
        plot.level(25.0, "25 MB/s");
        plot.instant(2.0, "from here");
        let s = plot.end().svg;
        assert_eq!(s.matches("<polyline").count(), 4, "two lines, and each in the legend");
        let marks = s.matches("<path").count();
        assert!((12 + 2..=14 + 2).contains(&marks), "{marks}");
        for part in ["&lt;b&gt;", "25 MB/s", "from here"] {
            assert!(s.contains(part), "{part}");
        }
        assert!(!s.contains("NaN"));
    }

    #[test]
    fn names_are_rows_from_the_top_and_what_is_around_a_bar_is_drawn() {
        let rows = Scale::names(["<a>", "b"]);
        let mut plot = Plot::new(frame(numbers(20.0), rows, &[]));
        plot.bar(0, (0.0, 11.0), 7, "eleven");
        plot.range(0, &Spread::of(&[10.0, 12.0]));
        plot.upright(0, 20.0, "published");
        plot.range(1, &Spread::of(&[3.0]));
        plot.row_text(1, "3.0");
        let s = plot.end().svg;
        let y = |text: &str| {
            let head = &s[..s.find(&format!(">{text}<")).unwrap()];
            let of = head.rsplit(" y=\"").next().unwrap();
            of[..of.find('"').unwrap()].parse::<f64>().unwrap()
        };
        assert_eq!((y("&lt;a&gt;"), y("b"), y("3.0")), (108.0, 208.0, 208.0));
        // One mark across a bar, one range.
        assert_eq!((s.matches("<path").count(), s.matches("class=\"edge\"").count()), (1, 3));
        let none = Plot::new(frame(numbers(0.0), Scale::names([]), &[])).end().svg;
        assert!(none.ends_with("</svg>") && !none.contains("NaN"), "{none}");
    }
}
