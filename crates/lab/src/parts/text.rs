//! The tables of `lab validate --parts`.

use std::fmt::Write as _;

use steadfast_devices::model::KINDS;
use steadfast_vfs::foreign::line;

use super::{ComparedFigure, ComparedPart};
use crate::calibrate::text::short;
use crate::wrap::wrapped;

/// How far all figures are off, then a table for each kind.
pub fn text(parts: &[ComparedPart]) -> String {
    let mut text = wrapped(&answer(parts), 0);
    for kind in KINDS {
        let of_kind: Vec<&ComparedPart> = parts.iter().filter(|p| p.kind == kind.name).collect();
        if !of_kind.is_empty() {
            text += "\n";
            text += &table(kind.name, &of_kind);
        }
    }
    text += "\n";
    text += &wrapped(
        "Differs: how much more the model has, in %. Input: a parameter was set by it. Sources: \
         --json.",
        0,
    );
    text
}

/// How far a figure is off, in either direction.
fn distance(figure: &ComparedFigure) -> f64 {
    (figure.model / figure.published).ln().abs()
}

fn answer(parts: &[ComparedPart]) -> String {
    let all = || parts.iter().flat_map(|part| part.figures.iter().map(move |f| (part, f)));
    let predicted = || all().filter(|(_, f)| !f.input);
    let within = |input: bool, percent: f64| {
        let near = all().filter(|(_, f)| f.input == input && f.difference_percent.abs() <= percent);
        near.count()
    };
    let (n, inputs) = (predicted().count(), all().count() - predicted().count());
    let worst = predicted().max_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
    let farthest = worst.map(|(part, f)| {
        let [model, published] = [f.model, f.published].map(short);
        let ComparedFigure { name, unit, .. } = f;
        let title = line(part.title.as_bytes());
        format!(" The farthest off: {title}, {name}: {model} for {published} {unit}.")
    });
    format!(
        "Within 10 % of what is published: {} of {n} figures that were not inputs (within 30 %: \
         {}), and {} of {inputs} inputs.{}",
        within(false, 10.0),
        within(false, 30.0),
        within(true, 10.0),
        farthest.unwrap_or_default()
    )
}

fn table(kind: &str, parts: &[&ComparedPart]) -> String {
    let names = parts.iter().flat_map(|part| &part.figures).map(|f| f.name.chars().count());
    let width = names.max().unwrap_or(0) + 2;
    let mut text = String::new();
    // OK to ignore: writing to a string does not fail.
    let _ = writeln!(
        text,
        "{kind:width$} {:>9} {:>8} {:5} {:>7}  input",
        "published", "model", "", "differs"
    );
    for part in parts {
        let _ = writeln!(text, "{}", line(part.title.as_bytes()));
        for f in &part.figures {
            let (name, unit, input) = (&f.name, f.unit, if f.input { "  yes" } else { "" });
            let (published, model) = (short(f.published), short(f.model));
            let _ = writeln!(
                text,
                "  {name:rest$} {published:>9} {model:>8} {unit:5} {:>+7.1}{input}",
                f.difference_percent,
                rest = width - 2
            );
        }
    }
    text
}
