//! The tornado chart as SVG: for one figure the parameters that move it most, widest first.

use super::Sensitivity;
use super::text::{chosen, ends, widest};
use crate::report::plot::{Frame, Plot, ROW};
use crate::report::scale::Scale;
use crate::report::svg::alone;

const BARS: usize = 24;

/// A complete `<svg>` element; `figure` is the test and the variant. `None` if there is no such
/// figure.
pub fn svg(found: &Sensitivity, figure: Option<(&str, &str)>) -> Option<String> {
    let r = chosen(found, figure)?;
    let mut groups = widest(found, r);
    groups.truncate(BARS);
    let (least, most) = ends(r, groups.iter().flat_map(|(_, list)| list).map(|(_, x)| *x));
    let title = format!(
        "{}: {} of {} over {}, one parameter changed at a time",
        found.scenario, r.test, r.variant, found.baseline
    );
    let mut plot = Plot::new(Frame {
        title: &title,
        description: &format!("As given: {:.2}x; from {least:.2}x to {most:.2}x", r.ratio),
        x: (Scale::between(least, most), "times as fast"),
        y: (Scale::names(groups.iter().map(|(name, _)| name.as_str())), ""),
        legend: (&[(0, "slower"), (1, "faster")], false),
        width: 870.0,
        height: ROW * groups.len() as f64,
        right: 22.0,
    });
    plot.above(&format!("upright line: {:.2}x, as given", r.ratio));
    for (row, (name, list)) in groups.iter().enumerate() {
        let (least, most) = ends(r, list.iter().map(|(_, x)| *x));
        for (series, ends) in [(least, r.ratio), (r.ratio, most)].into_iter().enumerate() {
            plot.bar(row, ends, series, &format!("{name}: {least:.2}x to {most:.2}x"));
        }
        for (effect, ratio) in list {
            plot.upright(row, *ratio, &format!("{name} = {}: {ratio:.2}x", effect.change.to));
        }
    }
    plot.instant(r.ratio, "");
    Some(alone(&title, &[plot.end()]))
}
