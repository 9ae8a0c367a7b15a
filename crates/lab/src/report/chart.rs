//! Bar charts as SVG, drawn by hand: no script, no font and no other file.

use std::fmt::Write as _;

use super::scale::nice_step;
pub(super) use super::svg::escape;

/// One series of bars: its name and colour class (0..=5).
#[derive(Debug, Clone)]
pub struct Series {
    /// For the legend.
    pub name: String,
    /// Which colour of the palette.
    pub colour: usize,
    /// Drawn hatched: figures that are somebody else's.
    pub hatched: bool,
    /// One value a group; `None` leaves a gap.
    pub values: Vec<Option<f64>>,
}

/// A grouped bar chart.
#[derive(Debug, Clone)]
pub struct Bars {
    /// Above the chart.
    pub title: String,
    /// Unit on the value axis.
    pub unit: String,
    /// Group names.
    pub groups: Vec<String>,
    /// The bars.
    pub series: Vec<Series>,
    /// Values are spread by their logarithm; for exposures from bytes to megabytes.
    pub logarithmic: bool,
}

/// Readable on white and on dark, and distinguished by the colour-blind (Okabe and Ito).
pub(super) const PALETTE: [&str; 6] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

const LEFT: f64 = 70.0;
const TOP: f64 = 64.0;
const PLOT_WIDTH: f64 = 860.0;
const PLOT_HEIGHT: f64 = 280.0;
const WIDTH: f64 = LEFT + PLOT_WIDTH + 20.0;
const HEIGHT: f64 = TOP + PLOT_HEIGHT + 46.0;

/// Draws the chart as a complete `<svg>` element.
pub fn svg(chart: &Bars) -> String {
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
    patterns(&mut s);
    legend(&mut s, chart);
    let axis = Axis::of(chart);
    grid(&mut s, chart, &axis);
    bars(&mut s, chart, &axis);
    s.push_str("</svg>");
    s
}

fn patterns(s: &mut String) {
    for (i, colour) in PALETTE.iter().enumerate() {
        let _ = write!(
            s,
            "<pattern id=\"h{i}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fff\"/>\
             <rect width=\"3\" height=\"6\" fill=\"{colour}\"/></pattern>"
        );
    }
}

fn paint(series: &Series) -> String {
    let i = series.colour % PALETTE.len();
    if series.hatched { format!("url(#h{i})") } else { PALETTE[i].into() }
}

fn legend(s: &mut String, chart: &Bars) {
    let mut x = LEFT;
    for series in &chart.series {
        let _ = write!(
            s,
            "<rect x=\"{x}\" y=\"32\" width=\"12\" height=\"12\" fill=\"{}\" stroke=\"#555\" \
             stroke-width=\"0.5\"/><text x=\"{}\" y=\"42\" fill=\"#222\">{}</text>",
            paint(series),
            x + 17.0,
            escape(&series.name)
        );
        x += 34.0 + series.name.chars().count() as f64 * 6.6;
    }
}

/// Maps values to heights.
struct Axis {
    ticks: Vec<f64>,
    max: f64,
    logarithmic: bool,
}

impl Axis {
    fn of(chart: &Bars) -> Axis {
        let values = chart.series.iter().flat_map(|s| s.values.iter().flatten());
        let max = values.copied().fold(0.0, f64::max);
        if chart.logarithmic {
            let decades = max.max(10.0).log10().ceil() as i32;
            let ticks: Vec<f64> = (0..=decades).map(|d| 10f64.powi(d)).collect();
            return Axis { max: 10f64.powi(decades), ticks, logarithmic: true };
        }
        let step = nice_step(max / 5.0);
        let count = (max / step).ceil().max(1.0) as u32;
        let ticks = (0..=count).map(|i| f64::from(i) * step).collect();
        Axis { max: f64::from(count) * step, ticks, logarithmic: false }
    }

    fn height(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            value.max(1.0).log10() / self.max.log10()
        } else {
            value / self.max
        };
        share.clamp(0.0, 1.0) * PLOT_HEIGHT
    }
}

fn grid(s: &mut String, chart: &Bars, axis: &Axis) {
    for tick in &axis.ticks {
        let y = TOP + PLOT_HEIGHT - axis.height(*tick);
        let _ = write!(
            s,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
            LEFT + PLOT_WIDTH,
            LEFT - 6.0,
            y + 4.0,
            compact(*tick)
        );
    }
    let _ = write!(
        s,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
        LEFT - 6.0,
        TOP - 10.0,
        escape(&chart.unit)
    );
}

fn bars(s: &mut String, chart: &Bars, axis: &Axis) {
    let group_width = PLOT_WIDTH / chart.groups.len().max(1) as f64;
    let bar_width = group_width * 0.8 / chart.series.len().max(1) as f64;
    for (g, name) in chart.groups.iter().enumerate() {
        let left = LEFT + g as f64 * group_width + group_width * 0.1;
        for (i, series) in chart.series.iter().enumerate() {
            let Some(value) = series.values.get(g).copied().flatten() else { continue };
            let h = axis.height(value);
            let (x, y) = (left + i as f64 * bar_width, TOP + PLOT_HEIGHT - h);
            let _ = write!(
                s,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{h:.1}\" fill=\"{}\" \
                 stroke=\"#555\" stroke-width=\"0.5\"><title>{}: {} {}</title></rect>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"8\" \
                 fill=\"#222\">{}</text>",
                bar_width * 0.92,
                paint(series),
                escape(&series.name),
                compact(value),
                escape(&chart.unit),
                x + bar_width * 0.46,
                y - 3.0,
                compact(value)
            );
        }
        // Names of many groups stand close to each other.
        let size = (group_width / (name.chars().count().max(1) as f64 * 0.56)).min(12.0);
        let _ = write!(
            s,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\" font-size=\"{size:.1}\" \
             fill=\"#222\">{}</text>",
            left + group_width * 0.4,
            TOP + PLOT_HEIGHT + 18.0,
            escape(name)
        );
    }
    let y = TOP + PLOT_HEIGHT;
    let _ = write!(
        s,
        "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#555\"/>",
        LEFT + PLOT_WIDTH
    );
}

/// A number with about three digits.
pub(super) fn compact(v: f64) -> String {
    match v {
        v if v >= 1e6 => format!("{:.3}M", v / 1e6).replace(".000M", "M"),
        v if v >= 1e4 => format!("{:.0}k", v / 1e3),
        // Labels of neighbouring bars must not run into each other.
        v if v >= 10.0 || v.fract() == 0.0 => format!("{v:.0}"),
        v => format!("{v:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_gaps_are_left() {
        let chart = Bars {
            title: "a < b".into(),
            unit: "MB/s".into(),
            groups: vec!["x".into()],
            series: vec![Series {
                name: "n & m".into(),
                colour: 9,
                hatched: true,
                values: vec![None],
            }],
            logarithmic: true,
        };
        let s = svg(&chart);
        assert!(s.contains("a &lt; b") && s.contains("n &amp; m") && s.ends_with("</svg>"));
    }
}
