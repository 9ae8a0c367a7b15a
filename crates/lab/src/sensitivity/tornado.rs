//! The tornado chart as SVG: for one figure the parameters that move it most, widest first.

use std::fmt::Write as _;

use super::Sensitivity;
use super::text::{chosen, widest};
use crate::report::escape;

const BARS: usize = 24;
const LEFT: f64 = 250.0;
const PLOT: f64 = 560.0;
const LINE: f64 = 20.0;
const TOP: f64 = 56.0;

/// A complete `<svg>` element; `figure` is the test and the variant. `None` if there is no such
/// figure.
pub fn svg(found: &Sensitivity, figure: Option<(&str, &str)>) -> Option<String> {
    let r = chosen(found, figure)?;
    let groups = widest(found, r);
    let shown = &groups[..BARS.min(groups.len())];
    let all = shown.iter().flat_map(|(_, list)| list).map(|(_, x)| *x);
    let (low, high) = all.fold((r.ratio, r.ratio), |(l, h), x| (l.min(x), h.max(x)));
    let span = (high - low).max(r.ratio * 0.01);
    let x = |ratio: f64| LEFT + (ratio - low) / span * PLOT;
    let height = TOP + LINE * shown.len() as f64 + 30.0;
    let width = LEFT + PLOT + 60.0;
    let title = format!(
        "{}: {} of {} over {}, one parameter changed at a time",
        found.scenario, r.test, r.variant, found.baseline
    );
    let mut s = String::new();
    // Writing to a String cannot fail, so the results are dropped here and below.
    let _ = write!(
        s,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\"><title>{t}</title>\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\
         <text x=\"10\" y=\"20\" font-size=\"15\" font-weight=\"600\" fill=\"#222\">{t}</text>\
         <text x=\"{LEFT}\" y=\"42\" fill=\"#555\">{low:.2}x</text>\
         <text x=\"{}\" y=\"42\" fill=\"#555\" text-anchor=\"end\">{high:.2}x</text>",
        LEFT + PLOT,
        t = escape(&title)
    );
    for (number, (name, list)) in shown.iter().enumerate() {
        let y = TOP + LINE * number as f64;
        let _ = write!(
            s,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#222\">{}</text>",
            LEFT - 8.0,
            y + 13.0,
            escape(name)
        );
        for (effect, ratio) in list {
            let (from, to) = (x(r.ratio.min(*ratio)), x(r.ratio.max(*ratio)));
            let colour = if *ratio < r.ratio { "#0072b2" } else { "#d55e00" };
            let _ = write!(
                s,
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"{colour}\" fill-opacity=\"0.6\"><title>{} = {}: {ratio:.2}x</title></rect>",
                y + 2.0,
                (to - from).max(0.5),
                LINE - 4.0,
                escape(name),
                escape(&effect.change.to)
            );
        }
    }
    let bottom = TOP + LINE * shown.len() as f64;
    let middle = x(r.ratio);
    let _ = write!(
        s,
        "<line x1=\"{middle:.1}\" x2=\"{middle:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#222\"/>\
         <text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#222\">{:.2}x as given\
         </text></svg>",
        bottom + 18.0,
        r.ratio
    );
    Some(s)
}
