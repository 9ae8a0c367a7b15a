//! The answer as text: at most a terminal of 24 lines.

use steadfast_vfs::foreign::lines as harmless;

use super::layout::fitting;
use super::{Layout, grids};
use crate::answer::{AnswerLine, AnswerTable, answer};
use crate::results::Results;
use crate::wrap::lines as wrapped;

/// Lines that all of it takes.
const LINES: usize = 24;
/// Columns of the names, at most.
const NAME: usize = 26;
/// Columns of a heading, if its words allow.
const HEADING: usize = 10;
/// What a variant is stands behind its figures where so many columns are left.
const LABEL: usize = 24;
/// Between two columns.
const GAP: &str = "  ";

/// What was found, in a few sentences and one table, and what has the rest.
pub fn answer_text(results: &Results, layout: Layout) -> String {
    let answer = answer(results);
    let title = format!("{} ({} clock)", results.title, results.clock.name());
    let mut lines = wrapped(&harmless(&title), layout.width);
    for sentence in &answer.sentences {
        let text = wrapped(&harmless(&sentence.text), layout.width);
        lines.extend(text.into_iter().map(|line| coloured(line, sentence.alarm, layout)));
    }
    let left = LINES.saturating_sub(lines.len() + 2);
    let table = match &answer.table {
        Some(table) => drawn(table, left, layout),
        None => first(results, left, layout),
    };
    if !table.is_empty() {
        lines.push(String::new());
        lines.extend(table);
    }
    lines.push("All tables, notes and findings: --wide; a page: --report FILE.html".into());
    lines.join("\n") + "\n"
}

/// The first table that there is, where the figures are not of variants.
fn first(results: &Results, most: usize, layout: Layout) -> Vec<String> {
    let Some(grid) = grids(results).into_iter().find(|grid| !grid.lines.is_empty()) else {
        return Vec::new();
    };
    let text = fitting(&grid.narrow(false), layout).into_iter().next().unwrap_or_default();
    text.lines().take(most).map(str::to_owned).collect()
}

fn coloured(text: String, alarm: bool, layout: Layout) -> String {
    match alarm && layout.coloured {
        true => format!("\x1b[1;31m{text}\x1b[0m"),
        false => text,
    }
}

/// The table in at most so many lines, three at least; what does not fit is left out, and said.
fn drawn(table: &AnswerTable, most: usize, layout: Layout) -> Vec<String> {
    let names: Vec<String> = table.lines.iter().map(name).collect();
    let chars = |text: &str| text.chars().count();
    let name_width = names.iter().map(|n| chars(n)).chain([chars(table.title)]).max().unwrap_or(0);
    let headings: Vec<Vec<String>> =
        table.headings.iter().map(|heading| wrapped(&harmless(heading), HEADING)).collect();
    let width = |i: usize| {
        let figures = table.lines.iter().map(|line| chars(&line.figures[i].0));
        figures.chain(headings[i].iter().map(|line| chars(line))).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = Vec::new();
    let mut taken = 1 + name_width;
    for i in 0..headings.len() {
        if taken + GAP.len() + width(i) > layout.width {
            break;
        }
        taken += GAP.len() + width(i);
        widths.push(width(i));
    }
    let label_width = layout.width.saturating_sub(taken + GAP.len());
    let high = headings[..widths.len()].iter().map(Vec::len).max().unwrap_or(0);
    let mut lines = Vec::new();
    for row in 0..high {
        let mut line = match row + 1 == high {
            true => format!(" {:name_width$}", table.title),
            false => format!(" {:name_width$}", ""),
        };
        for (heading, width) in headings.iter().zip(&widths) {
            // The last lines of all stand beside each other.
            let text = (row + heading.len()).checked_sub(high).map_or("", |at| &heading[at]);
            line += &format!("{GAP}{text:>width$}");
        }
        lines.push(line.trim_end().to_owned());
    }
    let fit = most.saturating_sub(lines.len()).max(1);
    let shown =
        if table.lines.len() > fit { fit.saturating_sub(1).max(1) } else { table.lines.len() };
    for (line, name) in table.lines.iter().zip(&names).take(shown) {
        let mut text = format!(" {:name_width$}", harmless(name));
        for ((figure, alarm), width) in line.figures.iter().zip(&widths) {
            text += GAP;
            text += &coloured(format!("{figure:>width$}"), *alarm, layout);
        }
        if label_width >= LABEL {
            text += GAP;
            text += &clipped(&harmless(&line.label), label_width);
        }
        lines.push(text);
    }
    if shown < table.lines.len() {
        lines.push(format!(" and {} more", table.lines.len() - shown));
    }
    lines
}

/// The names of a line, as many as there is room for.
fn name(line: &AnswerLine) -> String {
    let all = line.variants.join(", ");
    if all.chars().count() <= NAME {
        return all;
    }
    for shown in (1..line.variants.len()).rev() {
        let more = line.variants.len() - shown;
        let text = format!("{} and {more} more", line.variants[..shown].join(", "));
        if text.chars().count() <= NAME || shown == 1 {
            return clipped(&text, NAME);
        }
    }
    clipped(&all, NAME)
}

fn clipped(text: &str, width: usize) -> String {
    match text.chars().count() {
        n if n <= width => text.to_owned(),
        _ => text.chars().take(width.saturating_sub(1)).chain(['~']).collect(),
    }
}
