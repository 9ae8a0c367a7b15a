//! Bars that lie, one a row, each with its name before it and its figure behind it: on a linear
//! axis from zero. What others have measured is a mark across the bar.

use super::scale::Scale;
use super::svg::{Anchor, CHARACTER, MarkShape, Svg, colour, compact, shortened};
use crate::results::Spread;

/// A chart of lying bars.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HorizontalBars {
    /// Above the chart.
    pub title: String,
    /// Unit of the axis.
    pub unit: String,
    /// From top to bottom.
    pub rows: Vec<Bar>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    /// Before it.
    pub name: String,
    /// Which colour.
    pub series: usize,
    /// The median is drawn, and the range as a line across the bar's end.
    pub value: Spread,
    /// What the source says, if it says something.
    pub published: Option<f64>,
}

impl Bar {
    /// What stands behind the bar.
    fn label(&self) -> String {
        let value = figure(self.value.median());
        self.published.map_or(value.clone(), |p| format!("{value} | {}", figure(p)))
    }
}

fn figure(v: f64) -> String {
    if (1.0..1e4).contains(&v) { format!("{v:.1}") } else { compact(v) }
}

const WIDTH: f64 = 500.0;
const TOP: f64 = 26.0;
const ROW: f64 = 24.0;
const BAR: f64 = 14.0;
/// Characters of a name, at most.
const NAME: usize = 24;

/// Draws the chart as a complete `<svg>` element.
pub(super) fn svg(chart: &HorizontalBars) -> String {
    let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64;
    let names = longest(&mut chart.rows.iter().map(|r| r.name.chars().count().min(NAME)));
    let figures = longest(&mut chart.rows.iter().map(|r| r.label().chars().count()));
    let left = names * CHARACTER + 10.0;
    let plot = WIDTH - left - figures * CHARACTER - 14.0;
    let bottom = TOP + ROW * chart.rows.len() as f64;
    let all = chart.rows.iter().flat_map(|r| r.published.into_iter().chain([r.value.max()]));
    let scale = Scale::of(false, all);
    let mut svg = Svg::new(WIDTH, bottom + 34.0, &chart.title, &description(chart));
    svg.heading(&shortened(&chart.title, 62));
    let x = |v: f64| left + scale.share(v) * plot;
    for (tick, text) in scale.ticks() {
        svg.line((x(tick), TOP), (x(tick), bottom), "grid");
        svg.text((x(tick), bottom + 14.0), "dim", Anchor::Middle, &text);
    }
    svg.text((left + plot / 2.0, bottom + 30.0), "dim", Anchor::Middle, &chart.unit);
    for (i, row) in chart.rows.iter().enumerate() {
        let middle = TOP + ROW * (i as f64 + 0.5);
        let text = middle + 4.0;
        svg.text((left - 8.0, text), "ink", Anchor::End, &shortened(&row.name, NAME));
        let (end, label) = (x(row.value.median()), in_words(chart, row));
        svg.rect((left, middle - BAR / 2.0), (end - left, BAR), &colour(row.series), &label);
        let (from, to) = (x(row.value.min()), x(row.value.max()));
        // What is narrower could be taken for another mark.
        if to - from > 3.0 {
            svg.line((from, middle), (to, middle), "edge");
            for at in [from, to] {
                svg.line((at, middle - 4.0), (at, middle + 4.0), "edge");
            }
        }
        if let Some(published) = row.published {
            svg.shape((x(published), middle), MarkShape::Bar, "ink", &label);
        }
        svg.text((WIDTH, text), "ink", Anchor::End, &row.label());
    }
    svg.line((left, TOP), (left, bottom), "axis");
    svg.end()
}

fn in_words(chart: &HorizontalBars, row: &Bar) -> String {
    let published = row.published.map_or(String::new(), |p| format!(", published {}", figure(p)));
    format!("{}: {} {}{published}", row.name, figure(row.value.median()), chart.unit)
}

/// All figures, for whoever does not see the chart.
fn description(chart: &HorizontalBars) -> String {
    let rows: Vec<String> = chart.rows.iter().map(|row| in_words(chart, row)).collect();
    rows.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_written_and_what_is_published_stands_beside_it() {
        let bar = |name: &str, value: &[f64], published| Bar {
            name: name.into(),
            series: 7,
            value: Spread::of(value),
            published,
        };
        let rows = vec![bar("<a>", &[10.0, 12.0], Some(20.0)), bar("b", &[3.0], None)];
        let s = svg(&HorizontalBars { title: "rewrite".into(), unit: "MB/s".into(), rows });
        assert!(s.contains(">11.0 | 20.0<") && s.contains(">3.0<"), "{s}");
        assert!(s.contains("&lt;a&gt;: 11.0 MB/s, published 20.0; b: 3.0 MB/s"), "{s}");
        // One mark across a bar, one range.
        assert_eq!((s.matches("<path").count(), s.matches("class=\"edge\"").count()), (1, 3));
        let none = svg(&HorizontalBars { title: String::new(), unit: String::new(), rows: vec![] });
        assert!(none.ends_with("</svg>") && !none.contains("NaN"), "{none}");
    }
}
