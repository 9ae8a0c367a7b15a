//! What waited in the request scheduler's queue over time: a panel a variant, all on one scale.

use std::fmt::Write as _;

use super::chart::{PALETTE, compact, escape};
use crate::results::QueueSeries;

/// The chart.
#[derive(Debug, Clone)]
pub struct Queues<'a> {
    /// Above the panels.
    pub title: String,
    /// One panel each.
    pub series: Vec<&'a QueueSeries>,
}

const WIDTH: f64 = 950.0;
const TOP: f64 = 56.0;
const COLUMNS: usize = 2;
const PANEL_WIDTH: f64 = 380.0;
const PANEL_HEIGHT: f64 = 90.0;
const LEFT: f64 = 60.0;
const STEP_X: f64 = 460.0;
const STEP_Y: f64 = 146.0;

/// Draws the chart as a complete `<svg>` element.
pub fn svg(chart: &Queues<'_>) -> String {
    let rows = chart.series.len().div_ceil(COLUMNS);
    let height = TOP + rows as f64 * STEP_Y;
    let most = |of: fn(&QueueSeries) -> f64| chart.series.iter().map(|s| of(s)).fold(0.0, f64::max);
    let deepest = |s: &QueueSeries| s.write_kb.iter().copied().fold(0.0, f64::max);
    // Whole megabytes; seconds of the longest.
    let mib = (most(deepest) / 1024.0).ceil().max(1.0);
    let seconds = most(|s| s.write_kb.len() as f64 * s.every_ms / 1e3).max(1.0);
    let mut s = String::new();
    // Writing to a String cannot fail, so the results are dropped here and below.
    let _ = write!(
        s,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\"><title>{t}</title>\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"15\" font-weight=\"600\" fill=\"#222\">{t}</text>\
         <text x=\"{LEFT}\" y=\"38\" fill=\"#555\">MiB of writes waiting, against seconds since \
         the writer began; dashed: the first file is read from here</text>",
        t = escape(&chart.title)
    );
    for (i, series) in chart.series.iter().enumerate() {
        let x = LEFT + (i % COLUMNS) as f64 * STEP_X;
        let y = TOP + (i / COLUMNS) as f64 * STEP_Y + 24.0;
        panel(&mut s, series, (x, y), (seconds, mib));
    }
    s.push_str("</svg>");
    s
}

fn panel(s: &mut String, series: &QueueSeries, (x, y): (f64, f64), (seconds, mib): (f64, f64)) {
    let across = |t: f64| x + t / seconds * PANEL_WIDTH;
    let up = |kb: f64| y + PANEL_HEIGHT - kb / 1024.0 / mib * PANEL_HEIGHT;
    let _ = write!(
        s,
        "<text x=\"{x}\" y=\"{:.1}\" font-weight=\"600\" fill=\"#222\">{}</text>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{PANEL_WIDTH}\" height=\"{PANEL_HEIGHT}\" \
         fill=\"none\" stroke=\"#ccc\"/>",
        y - 6.0,
        escape(&series.variant)
    );
    for (kb, anchor) in [(0.0, 0.0), (mib * 1024.0, 8.0)] {
        let _ = write!(
            s,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
            x - 6.0,
            up(kb) + anchor,
            compact(kb / 1024.0)
        );
    }
    for t in [0.0, seconds / 2.0, seconds] {
        let _ = write!(
            s,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            across(t),
            y + PANEL_HEIGHT + 15.0,
            compact(t)
        );
    }
    if series.reads_from_s < seconds {
        let at = across(series.reads_from_s);
        let _ = write!(
            s,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{y}\" y2=\"{:.1}\" stroke=\"#888\" \
             stroke-dasharray=\"3 3\"/>",
            y + PANEL_HEIGHT
        );
    }
    let points =
        series.write_kb.iter().enumerate().map(|(i, kb)| {
            format!("{:.1},{:.1}", across(i as f64 * series.every_ms / 1e3), up(*kb))
        });
    let _ = write!(
        s,
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"><title>{}: at \
         most {} KiB of writes</title></polyline>",
        PALETTE[0],
        points.collect::<Vec<_>>().join(" "),
        escape(&series.variant),
        compact(series.write_kb.iter().copied().fold(0.0, f64::max))
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panel_a_variant_on_one_scale() {
        let series = |name: &str, kb: f64| QueueSeries {
            variant: name.into(),
            every_ms: 100.0,
            reads_from_s: 0.1,
            write_kb: vec![0.0, kb, kb],
            read_kb: vec![0.0; 3],
        };
        let (a, b) = (series("a<b", 30_720.0), series("b", 256.0));
        let s = svg(&Queues { title: "t".into(), series: vec![&a, &b] });
        assert!(s.contains("a&lt;b") && s.ends_with("</svg>"), "{s}");
        assert_eq!((s.matches("<polyline").count(), s.matches(">30<").count()), (2, 2), "{s}");
    }
}
