//! Lines through points on two axes. Lines are distinguished by colour, stroke and mark, and named
//! in a legend that shows all three.

use super::scale::Scale;
use super::svg::{Anchor, CHARACTER, Svg, shortened};

/// A chart of lines.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lines {
    /// Above the chart.
    pub title: String,
    /// What it shows, in words.
    pub description: String,
    /// The horizontal axis: what it is of.
    pub x: AxisSpec,
    /// The vertical one.
    pub y: AxisSpec,
    /// The lines.
    pub series: Vec<LineSeries>,
    /// Straight lines across, each with its name.
    pub levels: Vec<(f64, String)>,
    /// Straight lines upright, each with its name.
    pub instants: Vec<(f64, String)>,
    /// Axes reach at least so far: charts that stand side by side share it. 0: as they need.
    pub at_least: (f64, f64),
    /// Of the whole chart.
    pub size: (f64, f64),
}

/// What an axis is of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisSpec {
    /// With the unit.
    pub name: String,
    /// By the logarithm.
    pub logarithmic: bool,
    /// Instead of numbers: names at places 0, 1, 2 ...; of so many places.
    pub steps: Option<(usize, Vec<(usize, String)>)>,
}

impl AxisSpec {
    /// A linear one.
    pub(super) fn linear(name: &str) -> AxisSpec {
        AxisSpec { name: name.into(), logarithmic: false, steps: None }
    }

    /// A logarithmic one.
    pub(super) fn logarithmic(name: &str) -> AxisSpec {
        AxisSpec { name: name.into(), logarithmic: true, steps: None }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LineSeries {
    /// For the legend.
    pub name: String,
    /// Colour, stroke and mark.
    pub number: usize,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// A mark at each point; else at so many of them that the line can be recognised.
    pub marked: bool,
}

const LEFT: f64 = 56.0;
const RIGHT: f64 = 22.0;
const BELOW: f64 = 44.0;
/// A line of the legend.
const LEGEND: f64 = 18.0;
/// Marks of a line whose points are too many for one each.
const MARKS: usize = 6;

/// Where everything is.
struct PlotArea {
    x: Scale,
    y: Scale,
    top: f64,
    bottom: f64,
    width: f64,
}

impl PlotArea {
    fn x(&self, share: f64) -> f64 {
        LEFT + share * self.width
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.y.share(value) * (self.bottom - self.top)
    }
}

/// Draws the chart as a complete `<svg>` element.
pub(super) fn svg(chart: &Lines) -> String {
    let (width, height) = chart.size;
    let legend = legend_places(chart, width);
    let lines = legend.iter().map(|(_, line)| line + 1).max().unwrap_or(0);
    let points = || chart.series.iter().flat_map(|s| &s.points);
    let levels = chart.levels.iter().map(|(level, _)| *level);
    let top = 28.0 + LEGEND * lines as f64 + 22.0;
    let place = PlotArea {
        x: Scale::of(chart.x.logarithmic, points().map(|p| p.0).chain([chart.at_least.0])),
        y: Scale::of(
            chart.y.logarithmic,
            points().map(|p| p.1).chain(levels).chain([chart.at_least.1]),
        ),
        top,
        bottom: (height - BELOW).max(top + 40.0),
        width: width - LEFT - RIGHT,
    };
    let mut svg = Svg::new(width, place.bottom + BELOW, &chart.title, &chart.description);
    svg.heading(&shortened(&chart.title, (width / 8.0) as usize));
    for (series, (x, line)) in chart.series.iter().zip(&legend) {
        let y = 32.0 + LEGEND * *line as f64;
        svg.path(&[(*x, y), (x + 26.0, y)], series.number, &series.name);
        svg.mark((x + 13.0, y), series.number, &series.name);
        svg.text((x + 32.0, y + 4.0), "ink", Anchor::Start, &series.name);
    }
    axes(&mut svg, chart, &place);
    for series in &chart.series {
        draw(&mut svg, chart, series, &place);
    }
    svg.end()
}

/// Of each series: where its name begins, and in which line.
fn legend_places(chart: &Lines, width: f64) -> Vec<(f64, usize)> {
    let (mut x, mut line) = (LEFT, 0);
    let mut places = Vec::new();
    for series in &chart.series {
        let wide = 44.0 + series.name.chars().count() as f64 * CHARACTER;
        if x > LEFT && x + wide > width {
            (x, line) = (LEFT, line + 1);
        }
        places.push((x, line));
        x += wide;
    }
    places
}

fn axes(svg: &mut Svg, chart: &Lines, place: &PlotArea) {
    let (left, right) = (place.x(0.0), place.x(1.0));
    for (tick, text) in place.y.ticks() {
        let y = place.y(tick);
        svg.line((left, y), (right, y), "grid");
        svg.text((left - 6.0, y + 4.0), "dim", Anchor::End, &text);
    }
    svg.text((0.0, place.top - 8.0), "dim", Anchor::Start, &chart.y.name);
    for (share, text) in x_ticks(chart, place) {
        let x = place.x(share);
        svg.line((x, place.top), (x, place.bottom), "grid");
        svg.text((x, place.bottom + 16.0), "dim", Anchor::Middle, &text);
    }
    let middle = place.x(0.5);
    svg.text((middle, place.bottom + 36.0), "dim", Anchor::Middle, &chart.x.name);
    for (level, name) in &chart.levels {
        let y = place.y(*level);
        svg.line((left, y), (right, y), "axis");
        // Beside the line other lines would cross it.
        svg.text((right, place.top - 8.0), "ink", Anchor::End, &format!("line across: {name}"));
    }
    for (instant, name) in &chart.instants {
        let x = place.x(place.x.share(*instant));
        svg.line((x, place.top), (x, place.bottom), "axis");
        svg.text((x + 4.0, place.top + 12.0), "ink", Anchor::Start, name);
    }
    svg.line((left, place.bottom), (right, place.bottom), "axis");
    svg.line((left, place.top), (left, place.bottom), "axis");
}

fn x_ticks(chart: &Lines, place: &PlotArea) -> Vec<(f64, String)> {
    match &chart.x.steps {
        Some((count, names)) => {
            names.iter().map(|(at, name)| (step_share(*at as f64, *count), name.clone())).collect()
        }
        None => place.x.ticks().into_iter().map(|(v, text)| (place.x.share(v), text)).collect(),
    }
}

fn step_share(at: f64, count: usize) -> f64 {
    at / count.saturating_sub(1).max(1) as f64
}

fn draw(svg: &mut Svg, chart: &Lines, series: &LineSeries, place: &PlotArea) {
    let share = |x: f64| match &chart.x.steps {
        Some((count, _)) => step_share(x, *count),
        None => place.x.share(x),
    };
    let at: Vec<(f64, f64)> =
        series.points.iter().map(|(x, y)| (place.x(share(*x)), place.y(*y))).collect();
    svg.path(&at, series.number, &series.name);
    let every = if series.marked { 1 } else { (at.len() / MARKS).max(1) };
    // Not all series at the same places, or one would hide the other.
    let from = if series.marked { 0 } else { (every * (series.number % 6)) / 6 };
    for at in at.iter().skip(from).step_by(every) {
        svg.mark(*at, series.number, &series.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(x: AxisSpec, points: Vec<(f64, f64)>) -> Lines {
        let series = |name: &str, number| LineSeries {
            name: name.into(),
            number,
            points: points.clone(),
            marked: number == 0,
        };
        Lines {
            title: "depth".into(),
            description: "of the queue".into(),
            x,
            y: AxisSpec::linear("requests"),
            series: vec![series("a", 0), series("<b>", 1)],
            levels: vec![(25.0, "25 MB/s".into())],
            instants: vec![(2.0, "from here".into())],
            at_least: (0.0, 0.0),
            size: (500.0, 300.0),
        }
    }

    #[test]
    fn lines_have_their_legend_and_few_marks() {
        let points = (0..1000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        let s = svg(&chart(AxisSpec::linear("seconds"), points));
        assert_eq!(s.matches("<polyline").count(), 4, "two lines, and each in the legend");
        let marks = s.matches("<path").count();
        assert!((1000 + 6 + 2..1000 + 9 + 2).contains(&marks), "{marks}");
        assert!(
            s.contains("&lt;b&gt;")
                && s.contains("25 MB/s")
                && s.contains("from here")
                && !s.contains("NaN")
        );
    }

    #[test]
    fn steps_are_named_where_they_are() {
        let names = vec![(0, "64 KiB".into()), (2, "1 MiB".into())];
        let x = AxisSpec { steps: Some((3, names)), ..AxisSpec::linear("file") };
        let s = svg(&chart(x, vec![(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]));
        let at = |text: &str| {
            let head = &s[..s.find(&format!(">{text}<")).unwrap()];
            head.rsplit("<text x=\"").next().unwrap().split('"').next().unwrap().to_owned()
        };
        assert_eq!((at("64 KiB").as_str(), at("1 MiB").as_str()), ("56.0", "478.0"));
        let one =
            chart(AxisSpec { steps: Some((1, vec![])), ..AxisSpec::linear("") }, vec![(0.0, 0.0)]);
        assert!(!svg(&one).contains("NaN"));
    }
}
