//! Tables as text: laid out for a width, in ASCII where lines cannot be drawn.

use comfy_table::{Cell as Drawn, CellAlignment, Color, Table, presets};
use smart_default::SmartDefault;

use steadfast_vfs::foreign::lines as harmless;

use super::sentences::in_words;
use super::{Choice, Grid, Heading, Line, grids};
use crate::results::{Results, SpeedRow, answer};
use crate::wrap::lines as wrapped;

/// How text is laid out; by default for a pipe or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
pub struct Layout {
    /// Columns of the terminal.
    #[default(80)]
    pub width: usize,
    /// Lines are drawn; else ASCII.
    pub drawn: bool,
    /// What must not be is red.
    pub coloured: bool,
    /// All columns.
    pub wide: bool,
}

/// All tables of a run, and the notes.
pub fn text(results: &Results, layout: Layout) -> String {
    chosen_text(results, layout, &Choice::default())
}

/// Tables of a run; of all tables with the heading and the notes.
pub fn chosen_text(results: &Results, layout: Layout, choice: &Choice) -> String {
    let mut out = match choice.is_all() {
        true => harmless(&heading_of(results, layout.width)),
        false => String::new(),
    };
    for grid in choice.of(grids(results)) {
        for part in fitting(&grid.narrow(layout.wide), layout) {
            out.push_str(&part);
            out.push_str("\n\n");
        }
    }
    if choice.is_all() {
        out.push_str(&harmless(&in_words(results)));
    }
    for note in results.notes.iter().filter(|_| choice.is_all()) {
        let lines = wrapped(&format!("Note: {}", harmless(&note.text)), layout.width);
        let (red, plain) =
            if note.alarm && layout.coloured { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        out.push_str(&format!("{red}{}{plain}\n", lines.join("\n")));
    }
    out
}

/// What was run, how often, and how its figures are to be read.
fn heading_of(results: &Results, width: usize) -> String {
    let mut lines = vec![results.title.clone()];
    lines.extend(answer(&results.runs).iter().flat_map(|answer| wrapped(answer, width)));
    let iozone = results.risk_command.is_some() || results.all::<SpeedRow>().next().is_some();
    let size = match (iozone, results.full) {
        (false, _) => "Workload:",
        (true, true) => "Published size:",
        (true, false) => "REDUCED SIZE (--full runs the published one):",
    };
    lines.extend(wrapped(&format!("{size} {}", results.command), width));
    if iozone && !results.full {
        let full_size = match &results.full_size {
            Some(full) => format!("Published size, where it differs: {}.", full.shown()),
            None => "Published size: not run.".into(),
        };
        lines.extend(wrapped(&full_size, width));
    }
    if let Some(cut) = &results.risk_command {
        lines.extend(wrapped(&format!("Power cuts during: {cut}"), width));
    }
    let ended = results.runs.iter().filter(|run| !run.is_empty()).count();
    let seeds = match &results.seeds[..] {
        _ if results.partial && ended == 0 => "No part of the run had ended: no figures.".into(),
        [one] => format!("Seed {one}; --seeds N gives every figure its range."),
        [first, .., last] => format!(
            "Seeds {first} to {last}: the median of {ended} runs, below it the least and the \
             greatest; cuts, and what happened at how many of them, of all runs together."
        ),
        [] => String::new(),
    };
    lines.extend(wrapped(&seeds, width));
    lines.join("\n") + "\n\n"
}

/// The table in as many parts as it takes for none to be wider than the layout; each has the
/// first column and as many of the others as fit, one at least.
pub(super) fn fitting(grid: &Grid, layout: Layout) -> Vec<String> {
    let mut parts = Vec::new();
    let mut begin = 0;
    while begin < grid.headings.len() {
        let mut end = begin + 1;
        let mut part = draw(grid, begin..end, layout);
        while end < grid.headings.len() {
            let wider = draw(grid, begin..end + 1, layout);
            if width(&wider) > layout.width {
                break;
            }
            (part, end) = (wider, end + 1);
        }
        parts.push(part);
        begin = end;
    }
    parts
}

fn draw(grid: &Grid, columns: std::ops::Range<usize>, layout: Layout) -> String {
    let mut table = Table::new();
    table.load_style(if layout.drawn {
        presets::UTF8_HORIZONTAL_ONLY
    } else {
        presets::ASCII_HORIZONTAL_ONLY
    });
    if layout.coloured {
        table.enforce_styling();
    }
    let mut header = vec![Drawn::new(harmless(&wrapped(&grid.title, 20).join("\n")))];
    header.extend(columns.clone().map(|i| heading(&grid.headings[i], &grid.lines, i)));
    table.set_header(header);
    for line in &grid.lines {
        let mut cells = vec![Drawn::new(harmless(&line.name))];
        cells.extend(line.cells[columns.clone()].iter().map(|(cell, alarm)| {
            let drawn = right(below(cell.text()));
            if *alarm { drawn.fg(Color::Red) } else { drawn }
        }));
        table.add_row(cells);
    }
    // In ASCII the style draws a line between any two rows; the heading's own is enough.
    let between = |line: &&str| !line.chars().all(|c| c == '-');
    table.to_string().lines().map(str::trim_end).filter(between).collect::<Vec<_>>().join("\n")
}

/// Words of a cell are broken into lines of this.
const SENTENCE: usize = 40;
/// Headings are not broken into lines shorter than this.
const HEADING: usize = 10;

/// A heading in lines as short as its figures and its words allow.
fn heading(heading: &Heading, lines: &[Line], column: usize) -> Drawn {
    let figures = lines.iter().map(|l| width(&below(l.cells[column].0.text()))).max();
    right(wrapped(&heading.text, figures.unwrap_or(0).max(HEADING)).join("\n"))
}

/// What is said with a figure stands below it; a sentence takes several lines.
fn below((value, more): (String, Option<String>)) -> String {
    let value = wrapped(&value, SENTENCE).join("\n");
    more.map_or(value.clone(), |more| format!("{value}\n{more}"))
}

fn right(text: String) -> Drawn {
    Drawn::new(harmless(&text)).set_alignment(CellAlignment::Right)
}

/// Of the longest line, without what sets colours.
fn width(text: &str) -> usize {
    text.lines().map(visible).max().unwrap_or(0)
}

fn visible(line: &str) -> usize {
    let mut count = 0;
    let mut in_escape = false;
    for c in line.chars() {
        match c {
            '\x1b' => in_escape = true,
            'm' if in_escape => in_escape = false,
            _ if in_escape => {}
            _ => count += 1,
        }
    }
    count
}

/// How wide the terminal is, if the standard output is one.
pub fn terminal_width() -> Option<usize> {
    // The variable is what a user sets who wants it otherwise.
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    set.or_else(|| Table::new().width().map(usize::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::{RunOptions, Watch, run_seeds};

    #[test]
    fn a_run_of_which_nothing_had_ended_has_no_median() {
        let scenario = Scenario::find("nvram-journal").unwrap();
        let watch = Watch { progress: &|_, _| (), stop: &true.into() };
        let results = run_seeds(&scenario, &RunOptions::default(), &[1, 2], &watch).unwrap();
        assert!(results.partial);
        let text = text(&results, Layout::default());
        assert!(text.contains("no figures") && !text.contains("median"), "{text}");
        assert!(text.contains("PARTIAL"), "{text}");
    }
}
