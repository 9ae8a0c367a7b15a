//! What a run of IOzone's tests has found, for a terminal of 24 lines of 80 columns. What is no
//! terminal, and `--wide`, get IOzone's own layout, which other programs read.

use steadfast_bench::iozone::matrix::{Cell, Column, MatrixResults};
use steadfast_bench::iozone::{IozoneResults, Options, TestResult};
use steadfast_lab::answer::{AnswerLine, AnswerTable};
use steadfast_lab::table::{Layout, screen};
use steadfast_vfs::size;

use crate::terminal::counted;

/// Notes that are said.
const NOTES: usize = 2;
/// Numbers of children that have a column.
const RUNS: usize = 5;
const REST: &str = "IOzone's own layout: --wide; every figure, percentiles: --json FILE";

/// A figure in its unit: MiB a second of IOzone's kB, which have 1024 bytes.
fn figure(value: f64, options: &Options) -> String {
    match in_mib(options) {
        true => format!("{:.1}", value / 1024.0),
        false => format!("{value:.0}"),
    }
}

fn in_mib(options: &Options) -> bool {
    !options.ops && !options.matrix.as_ref().is_some_and(|m| m.microseconds)
}

/// What figures are in.
fn unit(options: &Options) -> &'static str {
    match (options.ops, in_mib(options)) {
        (_, true) => "MiB/s",
        (true, _) => "calls/s",
        _ => "us a call",
    }
}

/// How files were opened, and what is in the time, in words.
fn how(options: &Options) -> String {
    let all = [
        (options.sync, "O_SYNC"),
        (options.dsync, "O_DSYNC"),
        (options.direct, "O_DIRECT"),
        (options.include_fsync, "fsync in the time"),
    ];
    let said: Vec<&str> = all.iter().filter(|(given, _)| *given).map(|(_, said)| *said).collect();
    if said.is_empty() { String::new() } else { format!(", {}", said.join(", ")) }
}

/// The sum of the children's rates.
fn see(test: &TestResult) -> f64 {
    test.summary.children_see
}

fn line(name: &str, figures: Vec<String>) -> AnswerLine {
    let figures = figures.into_iter().map(|figure| (figure, false)).collect();
    AnswerLine { variants: vec![name.to_owned()], keep: false, figures }
}

fn shown(mut said: Vec<String>, notes: &[String], table: &AnswerTable) -> String {
    said.extend(notes.iter().take(NOTES).map(|note| format!("Note: {note}.")));
    if notes.len() > NOTES {
        let more = counted((notes.len() - NOTES) as u64, "more note");
        said.push(format!("And {more}: --json FILE."));
    }
    screen(&said, table, REST, Layout::default())
}

/// Of many children.
pub fn of_runs(results: &IozoneResults) -> String {
    let options = &results.options;
    let child = if options.threads { "threads" } else { "processes" };
    let Some(last) = results.runs.last() else { return String::new() };
    let counts: Vec<String> = results.runs.iter().map(|run| run.children.to_string()).collect();
    let mut said = vec![format!(
        "IOzone's tests by {} {child}, each in a file of its own: {} in records of {}{}.",
        counts.join(" and "),
        size::shown(options.file_bytes),
        size::shown(options.record_bytes),
        how(options)
    )];
    let by_rate = |a: &&TestResult, b: &&TestResult| see(a).total_cmp(&see(b));
    let (fastest, slowest) = (last.tests.iter().max_by(by_rate), last.tests.iter().min_by(by_rate));
    if let (Some(most), Some(least)) = (fastest, slowest) {
        let of = |test: &TestResult| {
            format!("{} ({} {})", test.label, figure(see(test), options), unit(options))
        };
        said.push(match last.tests.len() {
            1 => format!("{}.", of(most)),
            n => format!("Of {n} tests the fastest are {}, the slowest {}.", of(most), of(least)),
        });
    }
    said.extend(growth(results, child));
    shown(said, &results.notes, &table_of_runs(results, child))
}

/// Of one number of children IOzone's sums, of several what the children see.
fn table_of_runs(results: &IozoneResults, child: &str) -> AnswerTable {
    let options = &results.options;
    let last = results.runs.last().map(|run| &run.tests[..]).unwrap_or_default();
    match &results.runs[..] {
        [run] => {
            let names = ["children see", "parent sees", "least of a child", "most of a child"];
            let figures = |test: &TestResult| {
                let s = &test.summary;
                let of = [s.children_see, s.parent_sees, s.min, s.max];
                of.map(|value| figure(value, options)).to_vec()
            };
            AnswerTable {
                title: unit(options),
                headings: names.map(str::to_owned).to_vec(),
                lines: run.tests.iter().map(|test| line(test.label, figures(test))).collect(),
            }
        }
        runs => {
            let runs = &runs[runs.len().saturating_sub(RUNS)..];
            let figures = |test: &TestResult| {
                let of = runs.iter().map(|run| {
                    let same = run.tests.iter().find(|other| other.test == test.test);
                    same.map_or("-".to_owned(), |test| figure(see(test), options))
                });
                of.collect()
            };
            AnswerTable {
                title: unit(options),
                headings: runs.iter().map(|run| format!("{} {child}", run.children)).collect(),
                lines: last.iter().map(|test| line(test.label, figures(test))).collect(),
            }
        }
    }
}

/// What more children bring.
fn growth(results: &IozoneResults, child: &str) -> Option<String> {
    let (first, last) = (results.runs.first()?, results.runs.last()?);
    let ratios = last.tests.iter().filter_map(|test| {
        let before = first.tests.iter().find(|other| other.test == test.test)?;
        let ratio = see(test) / see(before);
        ratio.is_finite().then_some((test.label, ratio))
    });
    let ratios: Vec<(&str, f64)> = ratios.collect();
    let by_ratio = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
    let (least, most) = (ratios.iter().min_by(by_ratio)?, ratios.iter().max_by(by_ratio)?);
    (results.runs.len() > 1).then(|| {
        format!(
            "{} {child} are {:.2} to {:.2} times as fast as {} (most: {}).",
            last.children, least.1, most.1, first.children, most.0
        )
    })
}

/// Of one file at a time.
pub fn of_matrix(results: &MatrixResults) -> String {
    let options = &results.options;
    let ends = |of: fn(&Cell) -> u64| ends(results.cells.iter().map(of));
    let mut said = vec![format!(
        "IOzone's tests of one file at a time: {} in records of {}{}.",
        ends(|cell| cell.file_bytes),
        ends(|cell| cell.record_bytes),
        how(options)
    )];
    let is_slower_higher = options.matrix.as_ref().is_some_and(|m| m.microseconds);
    let columns: Vec<(Column, Vec<(&Cell, f64)>)> = Column::of(options)
        .into_iter()
        .map(|(column, _)| (column, figures(results, column)))
        .filter(|(_, cells)| !cells.is_empty())
        .collect();
    let best = |cells: &[(&Cell, f64)], is_best: bool| farthest(cells, is_best == is_slower_higher);
    let of = |(column, (_, _, value)): (Column, (u64, u64, f64))| {
        format!("{} ({} {})", column.name(), figure(value, options), unit(options))
    };
    let all_of = |is_best: bool| {
        let each = columns.iter().filter_map(|(c, cells)| Some((*c, best(cells, is_best)?)));
        let ordered = |x: f64| if is_best == is_slower_higher { -x } else { x };
        each.max_by(|a, b| ordered(a.1.2).total_cmp(&ordered(b.1.2)))
    };
    if let (Some(most), Some(least)) = (all_of(true), all_of(false)) {
        said.push(format!("The fastest is {}, the slowest {}.", of(most), of(least)));
    }
    let is_one = results.cells.len() == 1;
    let headings: &[&str] = match is_one {
        true => &["all"],
        false => &["slowest", "file, record", "fastest", "file, record"],
    };
    let figures = |cells: &[(&Cell, f64)]| {
        let of = |is_best: bool| {
            best(cells, is_best).map_or_else(Vec::new, |(file, record, value)| {
                let at = format!("{}, {}", size::shown(file), size::shown(record));
                if is_one { vec![figure(value, options)] } else { vec![figure(value, options), at] }
            })
        };
        if is_one { of(true) } else { [of(false), of(true)].concat() }
    };
    let table = AnswerTable {
        title: unit(options),
        headings: headings.iter().map(|name| (*name).to_owned()).collect(),
        lines: columns.iter().map(|(c, cells)| line(c.name(), figures(cells))).collect(),
    };
    shown(said, &results.notes, &table)
}

/// From the least size to the greatest.
fn ends(sizes: impl Iterator<Item = u64> + Clone) -> String {
    let (least, most) = (sizes.clone().min().unwrap_or(0), sizes.max().unwrap_or(0));
    match least == most {
        true => size::shown(least),
        false => format!("{} to {}", size::shown(least), size::shown(most)),
    }
}

/// The cell with the least figure, or with the greatest: its sizes, and the figure.
fn farthest(cells: &[(&Cell, f64)], is_least: bool) -> Option<(u64, u64, f64)> {
    let by = |a: &&(&Cell, f64), b: &&(&Cell, f64)| a.1.total_cmp(&b.1);
    let found = if is_least { cells.iter().min_by(by) } else { cells.iter().max_by(by) };
    found.map(|(cell, value)| (cell.file_bytes, cell.record_bytes, *value))
}

/// A test's figure in each cell that has it.
fn figures(results: &MatrixResults, column: Column) -> Vec<(&Cell, f64)> {
    let figure = |cell: &Cell| {
        Some(cell.measure(column)?.figure(cell.record_bytes, &results.options) as f64)
    };
    results.cells.iter().filter_map(|cell| Some((cell, figure(cell)?))).collect()
}
