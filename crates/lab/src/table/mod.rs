//! The tables of a run: grids of figures, laid out as text for a width, Markdown or CSV.

mod answer;
mod layout;
mod peers;
mod plain;
mod sentences;

use crate::results::{Cell, Column, Order, Results, SpeedRow, TableLine, distinct};
use peers::peer_lines;

pub use answer::{answer_text, screen};
pub use layout::{Layout, chosen_text, terminal_width, text};
pub use plain::{csv, markdown};

/// A table: a name and a cell of each column in every line.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Above the first column: what the table is of.
    pub title: String,
    /// Above the others.
    pub headings: Vec<Heading>,
    /// The lines.
    pub lines: Vec<Line>,
}

/// What stands above a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// In words.
    pub text: String,
    /// Only with `--wide`.
    pub wide: bool,
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// A test or a variant.
    pub name: String,
    /// A cell for each heading, and whether it is an alarm.
    pub cells: Vec<(Cell, bool)>,
}

impl Grid {
    /// Without the columns that are shown with `--wide` only, and those in which nothing stands.
    #[must_use]
    pub fn narrow(&self, wide: bool) -> Grid {
        let filled = |heading: &Heading| {
            let column = self.headings.iter().position(|h| h == heading);
            column.is_some_and(|i| self.lines.iter().any(|l| l.cells[i].0 != Cell::None))
        };
        self.with(|heading| (wide || !heading.wide) && filled(heading))
    }

    /// With some of its columns.
    fn with(&self, keep: impl Fn(&Heading) -> bool) -> Grid {
        let keep: Vec<bool> = self.headings.iter().map(keep).collect();
        let of = |line: &Line| Line { name: line.name.clone(), cells: kept(&line.cells, &keep) };
        Grid {
            title: self.title.clone(),
            headings: kept(&self.headings, &keep),
            lines: self.lines.iter().map(of).collect(),
        }
    }
}

fn kept<T: Clone>(all: &[T], keep: &[bool]) -> Vec<T> {
    all.iter().zip(keep).filter(|(_, keep)| **keep).map(|(x, _)| x.clone()).collect()
}

/// Which tables and columns of a run are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Tables whose title is one of these, or else contains one; all, if there are none.
    pub tables: Vec<String>,
    /// Columns that are called so, or so and more after a comma; all, if there are none.
    pub columns: Vec<String>,
}

impl Choice {
    /// Whether it is all of them.
    pub fn is_all(&self) -> bool {
        self.tables.is_empty() && self.columns.is_empty()
    }

    /// The chosen ones of these tables.
    pub fn of(&self, grids: Vec<Grid>) -> Vec<Grid> {
        // What is a whole title means that table, also where another title begins with it.
        let titles: Vec<String> = grids.iter().map(|grid| grid.title.clone()).collect();
        let matches = |title: &str, text: &String| {
            if titles.contains(text) { title == text } else { title.contains(text) }
        };
        let wanted = |title: &str| {
            self.tables.is_empty() || self.tables.iter().any(|text| matches(title, text))
        };
        let called = |heading: &str, name: &str| {
            heading.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
        };
        let chosen = |heading: &Heading| {
            self.columns.is_empty() || self.columns.iter().any(|n| called(&heading.text, n))
        };
        let tables = grids.into_iter().filter(|grid| wanted(&grid.title));
        tables.map(|grid| grid.with(chosen)).filter(|g| !g.headings.is_empty()).collect()
    }
}

/// The tables of a run, in the order in which they are shown: first what the scenario asks.
pub fn grids(results: &Results) -> Vec<Grid> {
    let measurements = results.runs.iter().flat_map(|run| &run.measurements);
    let lines = measurements.flat_map(|m| m.lines(results));
    let mut tables: Vec<(Order, String, Vec<TableLine>)> = Vec::new();
    let said = results.published.iter().map(|row| row.line());
    let said = said.chain(results.sentences.iter().map(|s| s.line()));
    for line in lines.chain(peer_lines(results)).chain(said) {
        match tables.iter_mut().find(|(_, title, _)| *title == line.title) {
            Some((_, _, lines)) => lines.push(line),
            None => tables.push((line.order, line.title.clone(), vec![line])),
        }
    }
    tables.sort_by_key(|(order, ..)| *order);
    tables.into_iter().map(|(_, title, lines)| of_table(results, title, lines)).collect()
}

/// A table of lines: those of variants in the scenario's order, those of one name merged. A column
/// that only some have is empty in the others.
fn of_table(results: &Results, title: String, mut all: Vec<TableLine>) -> Grid {
    let place = |name: &str| results.variants.iter().position(|v| v.name == name);
    all.sort_by_key(|line| place(&line.name));
    let mut headings: Vec<Heading> = Vec::new();
    for column in all.iter().flat_map(|line| &line.columns) {
        if !headings.iter().any(|h| h.text == column.heading) {
            headings.push(Heading { text: column.heading.clone(), wide: column.wide });
        }
    }
    let line = |name: &&str| {
        let control = results.variant(name).is_some_and(|v| v.control);
        let of_line = || all.iter().filter(|l| l.name == **name).flat_map(|l| &l.columns);
        let cell = |heading: &Heading| {
            let columns: Vec<&Column> = of_line().filter(|c| c.heading == heading.text).collect();
            let cell = Cell::merged(&columns.iter().map(|c| &c.cell).collect::<Vec<_>>());
            let must_be_zero = columns.iter().any(|c| c.must_be_zero);
            let blind = columns.iter().any(|c| c.blind);
            let alarm = blind || (must_be_zero && !control && cell.is_above_zero());
            (cell, alarm)
        };
        Line { name: (*name).into(), cells: headings.iter().map(cell).collect() }
    };
    let lines = distinct(all.iter().map(|line| line.name.as_str())).iter().map(line).collect();
    Grid { title, headings: headings.clone(), lines }
}

/// Test names in the order in which they first appear.
pub(crate) fn tests(results: &Results) -> Vec<&str> {
    distinct(results.all::<SpeedRow>().map(|row| row.test.as_str()))
}

/// Names of the variants whose speed was measured by a benchmark, in the scenario's order.
pub(crate) fn measured(results: &Results) -> Vec<&str> {
    let rows = || results.all::<SpeedRow>();
    let names = results.variants.iter().map(|v| v.name.as_str());
    names.filter(|name| rows().any(|row| row.variant == *name)).collect()
}

/// The rows of a test and variant, one a seed.
pub(crate) fn find<'r>(results: &'r Results, test: &str, variant: &str) -> Vec<&'r SpeedRow> {
    let rows = results.all::<SpeedRow>();
    rows.filter(|r| r.test == test && r.variant == variant).collect()
}
