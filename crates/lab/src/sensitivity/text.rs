//! As text of at most 80 columns.

use std::fmt::Write as _;

use super::conclusions::{UNMOVED, range};
use super::{ChangeEffect, Sensitivity};
use crate::results::Ratio;
use crate::wrap::lines;

const COLUMNS: usize = 80;
/// Lines of the tornado.
const BARS: usize = 12;
/// Characters of a bar to each side.
const SIDE: usize = 18;

/// Ranges of each ratio, a tornado of one of them, every change that moves a ratio, and what
/// follows. `figure` is the test and the variant of the tornado.
pub fn text(found: &Sensitivity, figure: Option<(&str, &str)>) -> String {
    let mut s = String::new();
    let size = if found.full { "published size" } else { "reduced size" };
    let (n, scenario, seed) = (found.effects.len(), &found.scenario, found.seed);
    // Writing to a String cannot fail, so the results are dropped here and below.
    let _ =
        writeln!(s, "{scenario}: {n} changes, one at a time ({size}, {}, seed {seed})", found.size);
    if found.partial {
        s += "stopped before its end: what follows is of the changes that were measured\n";
    }
    for failure in &found.failures {
        s += &wrapped(&format!("FAILED: {failure}"));
    }
    ranges(&mut s, found);
    if let Some(r) = chosen(found, figure) {
        tornado(&mut s, found, r);
    }
    table(&mut s, found);
    s += "\nWhat holds over all of it\n";
    for sentence in &found.conclusions {
        s += &wrapped(sentence);
    }
    s
}

/// The figure that a tornado shows: the one asked for, else the first.
pub(super) fn chosen<'a>(
    found: &'a Sensitivity,
    figure: Option<(&str, &str)>,
) -> Option<&'a Ratio> {
    match figure {
        Some((test, variant)) => {
            found.ratios.iter().find(|r| r.test == test && r.variant == variant)
        }
        None => found.ratios.first(),
    }
}

fn ranges(s: &mut String, found: &Sensitivity) {
    let every: Vec<&ChangeEffect> = found.effects.iter().collect();
    let _ = writeln!(s, "\nSpeed over '{}'; lowest and highest over all changes", found.baseline);
    let _ = writeln!(
        s,
        " {:16} {:16} {:>9} {:>9} {:>9} {:>9}",
        "test", "variant", "published", "as given", "lowest", "highest"
    );
    for r in &found.ratios {
        let (low, high) = range(r, &every);
        let published = r.published_ratio.map_or("-".into(), |p| format!("{p:.2}x"));
        let _ = writeln!(
            s,
            " {:16} {:16} {published:>9} {:>8.2}x {low:>8.2}x {high:>8.2}x",
            cut(&r.test, 16),
            cut(&r.variant, 16),
            r.ratio
        );
    }
}

/// A parameter, and its changes with the ratio of each.
pub(super) type ParameterEffects<'a> = (String, Vec<(&'a ChangeEffect, f64)>);

/// The least and the most of ratios, the scenario's own included.
pub(super) fn ends(r: &Ratio, ratios: impl Iterator<Item = f64>) -> (f64, f64) {
    ratios.fold((r.ratio, r.ratio), |(low, high), x| (low.min(x), high.max(x)))
}

/// The changes by how far they move a figure, widest first.
pub(super) fn widest<'a>(found: &'a Sensitivity, r: &Ratio) -> Vec<ParameterEffects<'a>> {
    let mut groups: Vec<ParameterEffects<'_>> = Vec::new();
    for effect in &found.effects {
        let Some(ratio) = effect.ratio(&r.test, &r.variant) else { continue };
        let name = effect.change.name();
        match groups.iter_mut().find(|(n, _)| *n == name) {
            Some((_, list)) => list.push((effect, ratio)),
            None => groups.push((name, vec![(effect, ratio)])),
        }
    }
    groups.sort_by(|a, b| width(&b.1, r).total_cmp(&width(&a.1, r)));
    groups
}

/// By how much changes move a ratio at most, as a share of it.
fn width(changes: &[(&ChangeEffect, f64)], r: &Ratio) -> f64 {
    changes.iter().map(|(_, x)| (x / r.ratio - 1.0).abs()).fold(0.0, f64::max)
}

fn tornado(s: &mut String, found: &Sensitivity, r: &Ratio) {
    let groups = widest(found, r);
    let most = groups.first().map_or(0.0, |(_, list)| width(list, r));
    if most == 0.0 {
        return;
    }
    let what = match BARS.min(groups.len()) {
        1 => "the parameter that moves it".to_owned(),
        n => format!("the {n} parameters that move it most"),
    };
    let _ = writeln!(s, "\n{} of '{}' ({:.2}x): {what}", r.test, r.variant, r.ratio);
    for (name, list) in groups.iter().take(BARS) {
        let (low, high) = ends(r, list.iter().map(|(_, x)| *x));
        let bar = |x: f64| (((x / r.ratio - 1.0).abs() / most) * SIDE as f64).round() as usize;
        let _ = writeln!(
            s,
            " {:29} {low:>5.2} {:>SIDE$}|{:SIDE$} {high:>5.2}",
            cut(name, 29),
            "#".repeat(bar(low)),
            "#".repeat(bar(high))
        );
    }
}

fn table(s: &mut String, found: &Sensitivity) {
    let mut moving: Vec<(&ChangeEffect, &Ratio, f64)> = Vec::new();
    let mut still = 0;
    for effect in &found.effects {
        match effect.most(&found.ratios) {
            Some((r, m)) if m.abs() > UNMOVED => moving.push((effect, r, m)),
            _ => still += 1,
        }
    }
    moving.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()));
    let _ = writeln!(s, "\nWhat each change moves most");
    let _ =
        writeln!(s, " {:25} {:>9} {:>9}  {:23} {:>8}", "parameter", "from", "to", "figure", "by");
    for (effect, r, m) in &moving {
        let c = &effect.change;
        let figure = format!("{}, {}", r.test, r.variant);
        let _ = writeln!(
            s,
            " {:25} {:>9} {:>9}  {:23} {:>+6.1} %",
            cut(&c.name(), 25),
            cut(&c.from, 9),
            cut(&c.to, 9),
            cut(&figure, 23),
            m * 100.0
        );
    }
    let percent = UNMOVED * 100.0;
    let more = match (still, moving.len()) {
        (0, _) => None,
        (1, 0) => Some("The one change moves".to_owned()),
        (1, _) => Some("One other change moves".to_owned()),
        (n, 0) => Some(format!("The {n} changes move")),
        (n, _) => Some(format!("{n} other changes move")),
    };
    if let Some(more) = more {
        let _ = writeln!(s, " {more} no ratio by more than {percent:.0} %.");
    }
    if !found.refused.is_empty() {
        let names = found.refused.iter().map(|c| format!("{} = {}", c.name(), c.to));
        let names = names.collect::<Vec<_>>().join(", ");
        *s += &wrapped(&format!("Left out, since the model refuses it at this size: {names}."));
    }
}

/// The text, at most `width` characters of it.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() {
        n if n <= width => text.to_owned(),
        _ => text.chars().take(width - 1).chain(['~']).collect(),
    }
}

/// A sentence as a point of a list.
fn wrapped(sentence: &str) -> String {
    format!("* {}\n", lines(sentence, COLUMNS - 3).join("\n  "))
}
