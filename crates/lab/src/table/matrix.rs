//! The tables of a benchmark over a matrix: speeds by file size, and the sentences of the source.

use std::fmt::Write as _;

use super::{Grid, Heading, Line};
use crate::results::{Cell, GridRow, Results, SentenceRow, Spread, Unit};
use crate::scenario::sized;
use crate::wrap::wrapped;

/// Tests whose speeds are shown by file size also without `--wide`: of those a source speaks.
const ALWAYS_SHOWN: [&str; 3] = ["write", "read", "random write"];

/// A table a configuration and test: the speed by file size.
pub(super) fn by_file(results: &Results) -> Vec<Grid> {
    let mut configurations: Vec<Option<&str>> = Vec::new();
    let mut tests: Vec<&str> = Vec::new();
    for row in rows(results) {
        let of = results.variant(&row.variant).and_then(|v| v.configuration.as_deref());
        if !configurations.contains(&of) {
            configurations.push(of);
        }
        if !tests.contains(&row.test.as_str()) {
            tests.push(&row.test);
        }
    }
    let each = configurations.iter().flat_map(|c| tests.iter().map(move |test| (*c, *test)));
    each.map(|(configuration, test)| of_test(results, configuration, test)).collect()
}

fn rows(results: &Results) -> impl Iterator<Item = &GridRow> {
    results.all::<GridRow>()
}

fn of_test(results: &Results, configuration: Option<&str>, test: &str) -> Grid {
    let variants: Vec<&str> = results
        .variants
        .iter()
        .filter(|v| v.configuration.as_deref() == configuration)
        .map(|v| v.name.as_str())
        .filter(|name| rows(results).any(|r| r.variant == *name && r.test == test))
        .collect();
    let of_test = || rows(results).filter(|row| row.test == test);
    let mut files: Vec<u64> = of_test()
        .filter(|r| variants.contains(&r.variant.as_str()))
        .flat_map(|r| r.cells.iter().map(|c| c.file_kb))
        .collect();
    files.sort_unstable();
    files.dedup();
    let cell = |file: u64, variant: &str| {
        let of_variant = of_test().filter(|r| r.variant == variant);
        let means: Vec<f64> =
            of_variant.filter_map(|r| r.mean_of_file(file)).map(|kb| kb / 1024.0).collect();
        match means.is_empty() {
            true => (Cell::None, false),
            false => (Cell::Number(Spread::of(&means), Unit::Plain(1)), false),
        }
    };
    let wide = !ALWAYS_SHOWN.contains(&test);
    let heading = |name: &&str| Heading { text: (*name).into(), wide };
    let line = |file: &u64| Line {
        name: sized(file << 10),
        cells: variants.iter().map(|v| cell(*file, v)).collect(),
    };
    let of = configuration.map_or(String::new(), |name| format!(", {name}"));
    Grid {
        title: format!("{test}, MB/s by file size{of}"),
        headings: variants.iter().map(heading).collect(),
        lines: files.iter().map(line).collect(),
    }
}

/// The title of the sentences' table.
pub(super) const SENTENCES: &str = "what the source says";

/// A line a sentence: whether the figures bear it out.
pub(super) fn sentences(results: &Results) -> Option<Grid> {
    let heading = |text: &str, wide| Heading { text: text.into(), wide };
    let line = |s: &SentenceRow| {
        let has_cells = s.cells > 0;
        let number = |x: f64, unit| Cell::maybe(has_cells.then_some(x), unit);
        let cells = vec![
            Cell::Text(s.verdict.name().into()),
            Cell::Text(format!("{} of {}", s.cells_that_fit, s.cells)),
            Cell::plain(s.needed * 100.0, 0),
            number(s.median, Unit::Times),
            number(s.worst, Unit::Times),
        ];
        Line { name: s.name.clone(), cells: cells.into_iter().map(|c| (c, false)).collect() }
    };
    (!results.sentences.is_empty()).then(|| Grid {
        title: SENTENCES.into(),
        headings: vec![
            heading("figures say", false),
            heading("holds in cells", false),
            heading("needed %", true),
            heading("median", false),
            heading("worst cell", false),
        ],
        lines: results.sentences.iter().map(line).collect(),
    })
}

/// Each sentence in full, for a terminal.
pub(super) fn sentences_in_words(results: &Results) -> String {
    let mut out = String::new();
    for s in &results.sentences {
        // Writing to a String cannot fail, so the results are dropped here and below.
        let _ = writeln!(out, "{}: {}", s.name, s.verdict.name());
        out += &wrapped(&format!("Said: \"{}\"", s.said), 2);
        out += &wrapped(&format!("Measured: {}.", s.measured()), 2);
        out += &wrapped(&format!("Needed: {} ({}).", s.criterion, s.reason), 2);
        if let Some(why) = &s.explained {
            out += &wrapped(&format!("Why: {why}"), 2);
        }
        out.push('\n');
    }
    out
}

/// The same as a table in Markdown.
pub(super) fn sentences_as_markdown(results: &Results) -> String {
    let mut out = String::new();
    if results.sentences.is_empty() {
        return out;
    }
    out += "| said | measured | figures say | needed, and why so |\n|---|---|---|---|\n";
    for s in &results.sentences {
        let verdict = match &s.explained {
            Some(why) => format!("{}: {why}", s.verdict.name()),
            None => s.verdict.name().into(),
        };
        let cells = [
            format!("\"{}\"", s.said),
            s.measured(),
            verdict,
            format!("{} ({})", s.criterion, s.reason),
        ];
        let _ = writeln!(out, "| {} |", cells.map(|c| c.replace('|', "\\|")).join(" | "));
    }
    out.push('\n');
    out
}
