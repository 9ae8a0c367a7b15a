//! Tables as text: laid out for a width, in ASCII where lines cannot be drawn.

use comfy_table::{Cell as Drawn, CellAlignment, Color, Table, presets};

use super::{Grid, Heading, Line, grids};
use crate::results::Results;

/// How text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns of the terminal.
    pub width: usize,
    /// Lines are drawn; else ASCII.
    pub drawn: bool,
    /// What must not be is red.
    pub coloured: bool,
    /// All columns.
    pub wide: bool,
}

impl Default for Layout {
    /// For a pipe or a file.
    fn default() -> Self {
        Layout { width: 80, drawn: false, coloured: false, wide: false }
    }
}

/// All tables of a run, and the notes.
pub fn text(results: &Results, layout: Layout) -> String {
    let mut out = String::new();
    for grid in grids(results) {
        for part in fitting(&grid.narrow(layout.wide), layout) {
            out.push_str(&part);
            out.push_str("\n\n");
        }
    }
    for note in &results.notes {
        let lines = wrapped(&format!("Note: {}", note.text), layout.width);
        let (red, plain) =
            if note.alarm && layout.coloured { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        out.push_str(&format!("{red}{}{plain}\n", lines.join("\n")));
    }
    out
}

/// The table in as many parts as it takes for none to be wider than the layout; each has the
/// first column and as many of the others as fit, one at least.
fn fitting(grid: &Grid, layout: Layout) -> Vec<String> {
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
    let mut header = vec![Drawn::new(wrapped(&grid.title, 20).join("\n"))];
    header.extend(columns.clone().map(|i| heading(&grid.headings[i], &grid.lines, i)));
    table.set_header(header);
    for line in &grid.lines {
        let mut cells = vec![Drawn::new(&line.name)];
        cells.extend(line.cells[columns.clone()].iter().map(|(cell, alarm)| {
            let drawn = right(below(cell.text()));
            if *alarm { drawn.fg(Color::Red) } else { drawn }
        }));
        table.add_row(cells);
    }
    table.to_string().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// A heading in lines as short as its figures and its words allow.
fn heading(heading: &Heading, lines: &[Line], column: usize) -> Drawn {
    let figures = lines.iter().map(|l| width(&below(l.cells[column].0.text()))).max();
    right(wrapped(&heading.text, figures.unwrap_or(0)).join("\n"))
}

/// What is said with a figure stands below it.
fn below((value, more): (String, Option<String>)) -> String {
    more.map_or(value.clone(), |more| format!("{value}\n{more}"))
}

fn right(text: String) -> Drawn {
    Drawn::new(text).set_alignment(CellAlignment::Right)
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

/// Words in lines of at most `width` characters, or of one word.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}
