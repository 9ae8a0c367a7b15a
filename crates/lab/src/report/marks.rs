//! Several figures a row as marks on one logarithmic axis: what would be a bar from nowhere.

use super::scale::Scale;
use super::svg::{Anchor, CHARACTER, MarkShape, Svg, compact, shortened};

/// A chart of marks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Marks {
    /// Above the chart.
    pub title: String,
    /// Of the axis.
    pub unit: String,
    /// What the marks are.
    pub marks: Vec<Mark>,
    /// Name, and a figure for each mark; what is not above zero is at the axis' lower end.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

/// One figure of each row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub name: String,
    pub shape: MarkShape,
}

const WIDTH: f64 = 740.0;
const TOP: f64 = 54.0;
const ROW: f64 = 22.0;
/// Characters of a name, at most.
const NAME: usize = 28;

/// Draws the chart as a complete `<svg>` element.
pub(super) fn svg(chart: &Marks) -> String {
    let figures = |row: &[Option<f64>]| -> String {
        let described = row.iter().map(|v| v.map_or("-".into(), compact));
        described.collect::<Vec<_>>().join(" | ")
    };
    let wide = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64 * CHARACTER;
    let names = wide(&mut chart.rows.iter().map(|(name, _)| name.chars().count().min(NAME)));
    let texts = wide(&mut chart.rows.iter().map(|(_, row)| figures(row).chars().count()));
    let (left, bottom) = (names + 12.0, TOP + ROW * chart.rows.len() as f64);
    let plot = WIDTH - left - texts - 20.0;
    let described = |(name, row): &(String, Vec<Option<f64>>)| format!("{name}: {}", figures(row));
    let marks: Vec<&str> = chart.marks.iter().map(|m| m.name.as_str()).collect();
    let all: Vec<String> = chart.rows.iter().map(described).collect();
    let description = format!("{}. {}", marks.join(" | "), all.join("; "));
    let mut svg = Svg::new(WIDTH, bottom + 38.0, &chart.title, &description);
    svg.heading(&chart.title);
    let mut x = left;
    for mark in &chart.marks {
        svg.shape((x + 6.0, 34.0), mark.shape, "c0", &mark.name);
        svg.text((x + 16.0, 38.0), "ink", Anchor::Start, &mark.name);
        x += 34.0 + mark.name.chars().count() as f64 * CHARACTER;
    }
    svg.text((WIDTH, 38.0), "dim", Anchor::End, &marks.join(" | "));
    let scale =
        Scale::of(true, chart.rows.iter().flat_map(|(_, row)| row.iter().flatten()).copied());
    let x = |v: f64| left + scale.share(v) * plot;
    for (tick, text) in scale.ticks() {
        svg.line((x(tick), TOP), (x(tick), bottom), "grid");
        svg.text((x(tick), bottom + 15.0), "dim", Anchor::Middle, &text);
    }
    svg.text((left + plot / 2.0, bottom + 33.0), "dim", Anchor::Middle, &chart.unit);
    for (i, (name, row)) in chart.rows.iter().enumerate() {
        let y = TOP + ROW * (i as f64 + 0.5);
        svg.text((left - 10.0, y + 4.0), "ink", Anchor::End, &shortened(name, NAME));
        let places: Vec<f64> = row.iter().flatten().map(|v| x(*v)).collect();
        if let (Some(first), Some(last)) = (places.first(), places.last()) {
            svg.line((*first, y), (*last, y), "axis");
        }
        for (mark, value) in chart.marks.iter().zip(row) {
            let Some(value) = value else { continue };
            let described = format!("{name}: {} {}", mark.name, compact(*value));
            svg.shape((x(*value), y), mark.shape, "c0", &described);
        }
        svg.text((WIDTH, y + 4.0), "ink", Anchor::End, &figures(row));
    }
    svg.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_its_mark_and_is_written() {
        let mark = |name: &str, shape| Mark { name: name.into(), shape };
        let chart = Marks {
            title: "lost".into(),
            unit: "KiB".into(),
            marks: vec![mark("p50", MarkShape::Circle), mark("p99", MarkShape::Diamond)],
            rows: vec![
                ("a".into(), vec![Some(0.0), None]),
                ("b".into(), vec![Some(3.0), Some(400.0)]),
            ],
        };
        let s = svg(&chart);
        // Two in the legend, three in the rows.
        assert_eq!(s.matches("<path").count(), 5);
        assert!(s.contains(">0 | -<") && s.contains(">3 | 400<"), "{s}");
    }
}
