//! The answer as text: at most a terminal of 24 lines.

use steadfast_vfs::foreign::lines as harmless;

use super::layout::fitting;
use super::{Layout, grids};
use crate::answer::{Answer, AnswerLine, AnswerTable, answer};
use crate::results::{Results, VariantInfo};
use crate::wrap::lines as wrapped;

/// Lines that all of it takes.
const LINES: usize = 24;
/// Columns of the names, at most.
const NAME: usize = 26;
/// Columns of a heading, if its words allow: as many as all have room for.
const HEADINGS: std::ops::RangeInclusive<usize> = 10..=16;
/// Lines of figures that what the variants are leaves, if there are so many.
const ROWS: usize = 4;
/// Between two columns.
const GAP: &str = "  ";

/// What was found, in a few sentences and one table, what the variants are, and what has the rest.
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
        Some(table) => {
            let about = about(results, &answer, layout);
            let high = headings(table, layout).iter().map(Vec::len).max().unwrap_or(0);
            let rows = high + table.lines.len().min(ROWS);
            let about = &about[..about.len().min(left.saturating_sub(rows))];
            lines.extend_from_slice(about);
            drawn(table, left - about.len(), layout)
        }
        None => first(results, left, layout),
    };
    if !table.is_empty() {
        lines.push(String::new());
        lines.extend(table);
    }
    lines.push("All tables, notes and findings: --wide; a page: --report FILE.html".into());
    lines.join("\n") + "\n"
}

/// Lines of a table that a screen has at least: what stands above it, and some lines.
const TABLE: usize = 8;

/// Sentences, a table as far as both fit a terminal, and a last line that says where the rest is.
pub fn screen(said: &[String], table: &AnswerTable, rest: &str, layout: Layout) -> String {
    let said = said.iter().flat_map(|text| wrapped(&harmless(text), layout.width - 2));
    let mut out: Vec<String> = said.take(LINES - TABLE - 2).collect();
    let left = LINES - 2 - out.len();
    out.push(String::new());
    out.extend(drawn(table, left, layout));
    out.push(rest.to_owned());
    out.join("\n") + "\n"
}

/// What the variants are, each in one line: first those that the sentences name, in their order,
/// then those of the table.
fn about(results: &Results, answer: &Answer, layout: Layout) -> Vec<String> {
    let said: String = answer.sentences.iter().map(|s| format!("{} ", s.text)).collect();
    let place = |info: &VariantInfo| said.find(&format!("'{}'", info.name));
    let in_table = |info: &VariantInfo| {
        let lines = answer.table.iter().flat_map(|table| &table.lines);
        lines.flat_map(|line| &line.variants).any(|name| *name == info.name)
    };
    let mut named: Vec<(usize, &VariantInfo)> = (results.variants.iter())
        .filter_map(|info| {
            let last = in_table(info).then_some(usize::MAX);
            Some((place(info).or(last)?, info))
        })
        .collect();
    named.sort_by_key(|(place, _)| *place);
    let chars = |(_, info): &(usize, &VariantInfo)| info.name.chars().count();
    let width = named.iter().map(chars).max().unwrap_or(0).min(NAME);
    let line = |(_, info): &(usize, &VariantInfo)| {
        let name = clipped(&harmless(&info.name), width);
        clipped(&format!(" {name:width$}{GAP}{}", harmless(&info.label)), layout.width)
    };
    named.iter().map(line).collect()
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

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// What stands above the figures, in lines: as few as have room.
fn headings(table: &AnswerTable, layout: Layout) -> Vec<Vec<String>> {
    let of = |width: usize| -> Vec<Vec<String>> {
        table.headings.iter().map(|heading| wrapped(&harmless(heading), width)).collect()
    };
    let taken = |headings: &[Vec<String>]| -> usize {
        let each = (0..headings.len()).map(|i| GAP.len() + width(table, headings, i));
        1 + name_width(table) + each.sum::<usize>()
    };
    let fitting = HEADINGS.rev().map(of).find(|headings| taken(headings) <= layout.width);
    fitting.unwrap_or_else(|| of(*HEADINGS.start()))
}

/// Columns of the names.
fn name_width(table: &AnswerTable) -> usize {
    let names = table.lines.iter().map(|line| chars(&name(line)));
    names.chain([chars(table.title)]).max().unwrap_or(0)
}

/// Of a column's figures.
fn width(table: &AnswerTable, headings: &[Vec<String>], i: usize) -> usize {
    let figures = table.lines.iter().map(|line| chars(&line.figures[i].0));
    figures.chain(headings[i].iter().map(|line| chars(line))).max().unwrap_or(0)
}

/// Which lines of a table are shown of so many that fit: the first, and those that must be.
fn shown(table: &AnswerTable, fit: usize) -> Vec<&AnswerLine> {
    if table.lines.len() <= fit {
        return table.lines.iter().collect();
    }
    let kept = table.lines.iter().filter(|line| line.keep).count();
    // One line says how many are left out.
    let mut others = fit.saturating_sub(1 + kept).max(usize::from(kept == 0));
    let is_shown = |line: &&AnswerLine| {
        let is_shown = line.keep || others > 0;
        others -= usize::from(!line.keep && others > 0);
        is_shown
    };
    table.lines.iter().filter(is_shown).collect()
}

/// The table in at most so many lines, three at least; what does not fit is left out, and said.
fn drawn(table: &AnswerTable, most: usize, layout: Layout) -> Vec<String> {
    let name_width = name_width(table);
    let headings = headings(table, layout);
    let width = |i: usize| width(table, &headings, i);
    let mut widths: Vec<usize> = Vec::new();
    let mut taken = 1 + name_width;
    for i in 0..headings.len() {
        if taken + GAP.len() + width(i) > layout.width {
            break;
        }
        taken += GAP.len() + width(i);
        widths.push(width(i));
    }
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
    let shown = shown(table, most.saturating_sub(lines.len()).max(1));
    for line in &shown {
        let mut text = format!(" {:name_width$}", harmless(&name(line)));
        for ((figure, alarm), width) in line.figures.iter().zip(&widths) {
            text += GAP;
            text += &coloured(format!("{figure:>width$}"), *alarm, layout);
        }
        lines.push(text);
    }
    if shown.len() < table.lines.len() {
        lines.push(format!(" and {} more", table.lines.len() - shown.len()));
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
