//! Heat maps: a square a pair of sizes, darker where there is more, with the figure in it.

use super::svg::{Anchor, Svg, compact, shortened};
use super::theme::HEATS;

/// A table of figures as squares.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Heat {
    /// Above the chart.
    pub title: String,
    /// Unit of the figures.
    pub unit: String,
    /// What the columns are, and each of them.
    pub columns: (String, Vec<String>),
    /// What the rows are, and each of them.
    pub rows: (String, Vec<String>),
    /// Row by row; `None`: not measured.
    pub values: Vec<Vec<Option<f64>>>,
    /// Least and most of the colours, if they go beyond this chart's own: charts that stand side
    /// by side share them.
    pub span: Option<(f64, f64)>,
}

const LEFT: f64 = 64.0;
const TOP: f64 = 58.0;
const CELL: (f64, f64) = (37.0, 20.0);

/// The least and the most of figures above zero.
pub(super) fn span(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|v| *v > 0.0 && v.is_finite()).fold(None, |span, v| {
        let (least, most) = span.unwrap_or((v, v));
        Some((v.min(least), v.max(most)))
    })
}

/// Which of the colours a figure has: by its logarithm, as speeds differ by their ratio.
fn step(value: f64, span: Option<(f64, f64)>) -> usize {
    let Some((least, most)) = span.filter(|(least, most)| least < most) else { return 0 };
    let share = (value.max(least) / least).ln() / (most / least).ln();
    // OK to cast: from 0 to 1, but for the very last.
    ((share.clamp(0.0, 1.0) * HEATS as f64) as usize).min(HEATS - 1)
}

/// Draws the chart as a complete `<svg>` element.
pub(super) fn svg(chart: &Heat) -> String {
    let ((across, columns), (down, rows)) = (&chart.columns, &chart.rows);
    let width = (LEFT + CELL.0 * columns.len() as f64 + 4.0).max(240.0);
    let height = TOP + CELL.1 * rows.len() as f64 + 22.0;
    let own = span(chart.values.iter().flatten().flatten().copied());
    let colours = chart.span.or(own);
    let description = match own {
        Some((least, most)) => {
            format!("From {} to {} {}", compact(least), compact(most), chart.unit)
        }
        None => "Nothing was measured".into(),
    };
    let mut svg = Svg::new(width, height, &chart.title, &description);
    svg.heading(&shortened(&chart.title, (width / 8.0) as usize));
    svg.text((LEFT, 34.0), "dim", Anchor::Start, across);
    svg.text((LEFT - 6.0, TOP - 6.0), "dim", Anchor::End, down);
    for (i, name) in columns.iter().enumerate() {
        let x = LEFT + CELL.0 * (i as f64 + 0.5);
        svg.text((x, TOP - 6.0), "dim", Anchor::Middle, name);
    }
    for (j, name) in rows.iter().enumerate() {
        let y = TOP + CELL.1 * (j as f64 + 0.5);
        svg.text((LEFT - 6.0, y + 4.0), "dim", Anchor::End, name);
        for (i, column) in columns.iter().enumerate() {
            let Some(value) = chart.values.get(j).and_then(|r| r.get(i)).copied().flatten() else {
                continue;
            };
            let (heat, x) = (step(value, colours), LEFT + CELL.0 * i as f64);
            let tooltip = format!("{name}, {column}: {value:.0} {}", chart.unit);
            let size = (CELL.0 - 1.0, CELL.1 - 1.0);
            svg.rect((x, y - CELL.1 / 2.0), size, &format!("h{heat}"), &tooltip);
            let middle = (x + CELL.0 / 2.0 - 0.5, y + 4.0);
            svg.text(middle, &format!("t{heat}"), Anchor::Middle, &compact(value));
        }
    }
    svg.text((LEFT, height - 6.0), "dim", Anchor::Start, &format!("{description}."));
    svg.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_darker_and_every_figure_is_written() {
        let chart = Heat {
            title: "write".into(),
            unit: "kB/s".into(),
            columns: ("record".into(), vec!["4k".into(), "<8k>".into()]),
            rows: ("file".into(), vec!["64k".into(), "128k".into()]),
            values: vec![vec![Some(10.0), None], vec![Some(100.0), Some(10_000.0)]],
            span: None,
        };
        let s = svg(&chart);
        assert_eq!(s.matches("class=\"h").count(), 3, "one is not measured");
        assert!(s.contains("class=\"h0\"") && s.contains("class=\"h7\"") && s.contains(">10k<"));
        assert!(s.contains("128k, &lt;8k&gt;: 10000 kB/s") && s.contains("From 10 to 10k kB/s"));
        assert_eq!(
            (step(5.0, None), step(5.0, Some((5.0, 5.0))), step(1.0, Some((5.0, 9.0)))),
            (0, 0, 0)
        );
        assert_eq!(span([0.0, f64::NAN].into_iter()), None);
        let none = Heat { values: vec![], ..chart };
        assert!(svg(&none).contains("Nothing was measured"));
    }
}
