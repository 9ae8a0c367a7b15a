//! Tables for other programs: Markdown and CSV.

use std::fmt::Write as _;

use steadfast_vfs::foreign::lines;

use super::sentences::as_markdown;
use super::{Choice, grids};
use crate::results::{Cell, Results, SentenceRow};

/// Tables as Markdown, the range of a figure behind it; of all tables with the notes.
pub fn markdown(results: &Results, wide: bool, choice: &Choice) -> String {
    let mut out = String::new();
    let narrow = choice.of(grids(results)).into_iter().map(|g| g.narrow(wide));
    for grid in narrow.filter(|g| !g.headings.is_empty()) {
        let headings = grid.headings.iter().map(|h| escaped(&h.text));
        let _ = write!(out, "| {} |", escaped(&grid.title));
        headings.for_each(|h| {
            // Writing to a String cannot fail, so the results are dropped here and below.
            let _ = write!(out, " {h} |");
        });
        let _ = write!(out, "\n|---|{}\n", "--:|".repeat(grid.headings.len()));
        for line in &grid.lines {
            let _ = write!(out, "| {} |", escaped(&line.name));
            for (cell, alarm) in &line.cells {
                let (value, more) = cell.text();
                let text = more.map_or(value.clone(), |more| format!("{value} ({more})"));
                let mark = if *alarm { "**" } else { "" };
                let _ = write!(out, " {mark}{}{mark} |", escaped(&text));
            }
            out.push('\n');
        }
        out.push('\n');
    }
    if choice.is_all()
        || choice.tables.iter().any(|part| SentenceRow::TITLE.contains(part.as_str()))
    {
        out.push_str(&as_markdown(results));
    }
    for note in results.notes.iter().filter(|_| choice.is_all()) {
        let mark = if note.alarm { "**" } else { "" };
        let _ = writeln!(out, "* {mark}{}{mark}", note.text);
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Tables as one CSV table with a line a figure (RFC 4180): table, line, column, median, min,
/// max, runs, unit, and the words of what is no number.
pub fn csv(results: &Results, choice: &Choice) -> String {
    let mut out = String::from("table,row,column,median,min,max,runs,unit,text\r\n");
    for grid in &choice.of(grids(results)) {
        for line in &grid.lines {
            for (heading, (cell, _)) in grid.headings.iter().zip(&line.cells) {
                let figure = match cell {
                    Cell::None => continue,
                    Cell::Text(text) => format!(",,,,,{}", quoted(text)),
                    Cell::Number(s, unit) => {
                        let (median, min, max) = (s.median(), s.min(), s.max());
                        format!("{median},{min},{max},{},{},", s.runs(), unit.name())
                    }
                    Cell::Total(n) => format!("{n},,,,,of all runs"),
                    Cell::Places(rate) => format!("{},,,,,of all runs", rate.places),
                    Cell::Rate(rate) => {
                        let bound = rate.at_most_percent();
                        let (n, of, places) = (rate.events, rate.of, rate.places);
                        format!("{n},,,,of {of} cuts,at {places} places: at most {bound} %")
                    }
                    Cell::Share(rate, why) => {
                        let (n, of, places) = (rate.events, rate.of, rate.places);
                        format!("{n},,,,of {of} cuts,at {places} places{why}")
                    }
                };
                let place = [&grid.title, &line.name, &heading.text].map(|t| quoted(t)).join(",");
                let _ = write!(out, "{place},{figure}\r\n");
            }
        }
    }
    out
}

fn quoted(text: &str) -> String {
    let text = lines(text);
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
