//! What came out, in IOzone's layout: the table, the -R report.

use std::fmt::Write;

use super::column::Column;
use super::results::{Cell, MatrixResults, Measure};
use crate::iozone::options::Options;
use crate::iozone::report::header;
use crate::iozone::results::Surroundings;

/// What is known before the first cell: the header, and the headings of the columns.
pub fn head(options: &Options, surroundings: &Surroundings) -> String {
    let mut out = header(options, surroundings);
    let mapped = options.matrix.as_ref().is_some_and(|m| m.mapped.is_some());
    let (mut top, mut names) = (" ".repeat(24), "              kB  reclen".to_owned());
    for (column, _) in Column::of(options) {
        let (above, name) = column.heading();
        top += above;
        match mapped && column.is_stdio() {
            true => names += &" ".repeat(column.width()),
            false => names += name,
        }
    }
    out += &format!("{top}\n{names}\n");
    out
}

/// A line of the table.
pub fn row(options: &Options, cell: &Cell) -> String {
    let mut line = format!("{:16}{:8}", cell.file_bytes >> 10, cell.record_bytes >> 10);
    let mapped = options.matrix.as_ref().is_some_and(|m| m.mapped.is_some());
    let columns = Column::of(options);
    let last = columns.last().map(|(column, _)| *column);
    for (column, runs) in columns {
        // A mapped file's line ends before the stdio tests.
        if mapped && column.is_stdio() {
            continue;
        }
        // IOzone's line is a blank short where it left out fread at the end.
        let short = !runs && column == Column::Freread && last == Some(column);
        let width = column.width() - usize::from(short);
        let figure = match cell.measure(column) {
            Some(measure) => measure.figure(cell.record_bytes, options).to_string(),
            // What -+n left out.
            None if runs => "0".into(),
            None => String::new(),
        };
        // A blank is always between two figures.
        if figure.len() >= width {
            line.push(' ');
        }
        let _ = write!(line, "{figure:>width$}");
    }
    line + "\n"
}

/// What follows the last cell: the closing line, intervals, the -R report.
pub fn end(results: &MatrixResults) -> String {
    let mut out = String::from("\niozone test complete.\n");
    out += &intervals(results);
    if results.options.report {
        out += "Excel output is below:\n";
        for (title, cpu, lines) in reports(results) {
            let _ = write!(out, "\n\"{title}\"\n{}", heading(results));
            for (file, cells) in lines {
                let _ = write!(out, "\"{}\"  ", file >> 10);
                for figure in cells {
                    let _ = match cpu {
                        true => write!(out, " {figure:6.2}"),
                        false => write!(out, " {figure} "),
                    };
                }
                out.push('\n');
            }
        }
    }
    out
}

/// 95 % intervals of repeated cells, in per cent of the table's figures.
fn intervals(results: &MatrixResults) -> String {
    if results.options.matrix.as_ref().is_none_or(|m| m.repeat < 2) {
        return String::new();
    }
    let mut out = String::from("\n95 % confidence intervals, +- per cent of the figures above:\n");
    for cell in &results.cells {
        let _ = write!(out, "{:16}{:8}", cell.file_bytes >> 10, cell.record_bytes >> 10);
        for (column, _) in Column::of(&results.options) {
            let width = column.width();
            let interval = cell.measure(column).and_then(Measure::interval_percent);
            let text = interval.map(|i| format!("{i:.1}")).unwrap_or_default();
            let _ = write!(out, "{text:>width$}");
        }
        out.push('\n');
    }
    out
}

/// A file size, in bytes, with its figures, by record: those of the table, or per cent.
pub(super) type Line = (u64, Vec<f64>);

/// The records of the run, in kB.
pub(super) fn records(results: &MatrixResults) -> Vec<u64> {
    let o = &results.options;
    o.matrix.as_ref().map(|m| m.columns(o.record_bytes)).unwrap_or_default()
}

fn heading(results: &MatrixResults) -> String {
    let records = records(results);
    let names: String = records.iter().map(|r| format!("  \"{}\"", r >> 10)).collect();
    format!("      {names}\n")
}

/// The tests of the report with their lines; with -+u processor use behind them, and that it is.
pub(super) fn reports(results: &MatrixResults) -> Vec<(String, bool, Vec<Line>)> {
    let mut files: Vec<u64> = results.cells.iter().map(|c| c.file_bytes).collect();
    files.dedup();
    let shown: Vec<Column> = Column::of(&results.options)
        .into_iter()
        .filter(|(column, _)| results.cells.iter().any(|c| c.measure(*column).is_some()))
        .map(|(column, _)| column)
        .collect();
    let lines = |column: Column, cpu: bool| -> Vec<Line> {
        files.iter().map(|file| (*file, figures(results, column, *file, cpu))).collect()
    };
    let rates = shown.iter().map(|c| (format!("{} report", c.title()), false, lines(*c, false)));
    let mut reports: Vec<_> = rates.collect();
    if results.options.cpu_use {
        reports.extend(shown.iter().map(|c| {
            let what = "CPU utilization report (Zero values should be ignored)";
            (format!("{} {what}", c.title()), true, lines(*c, true))
        }));
    }
    reports
}

/// Of each record up to the file's size; 0 where the cutoff left it out.
fn figures(results: &MatrixResults, column: Column, file: u64, cpu: bool) -> Vec<f64> {
    let records = records(results).into_iter().filter(|record| *record <= file);
    let figure = |record: u64| {
        let cell = results.cells.iter().find(|c| (c.file_bytes, c.record_bytes) == (file, record));
        let measure = cell.and_then(|c| c.measure(column));
        match cpu {
            true => measure.and_then(Measure::cpu_percent).unwrap_or(0.0),
            false => measure.map_or(0, |m| m.figure(record, &results.options)) as f64,
        }
    };
    records.map(figure).collect()
}
