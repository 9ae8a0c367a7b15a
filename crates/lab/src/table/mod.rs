//! The tables of a run: grids of figures, laid out as text for a width, Markdown or CSV.

mod layout;
mod matrix;
mod plain;

use crate::results::{
    Cell, Column, Order, PeerRow, Percentiles, Ratio, Results, SeedResults, SpeedRow, Spread,
    SumKind, TableLine, Unit,
};

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
    let by_test = [
        (Order::Sentences, matrix::sentences(results)),
        (Order::Speed, ratios(results)),
        (Order::Speed, speeds(results)),
        (Order::Peers, peer_speeds(results)),
        (Order::Peers, peer_ratios(results)),
    ];
    let mut grids = of_lines(results);
    grids.extend(by_test.into_iter().filter_map(|(order, grid)| Some((order, grid?))));
    grids.extend(matrix::by_file(results).into_iter().map(|grid| (Order::Sizes, grid)));
    grids.sort_by_key(|(order, _)| *order);
    let grids = grids.into_iter().map(|(_, grid)| grid);
    grids.filter(|grid| !grid.lines.is_empty()).collect()
}

/// The tables whose lines the measurements make themselves.
fn of_lines(results: &Results) -> Vec<(Order, Grid)> {
    let measurements = results.runs.iter().flat_map(|run| &run.measurements);
    let mut tables: Vec<(Order, String, Vec<TableLine>)> = Vec::new();
    for line in measurements.flat_map(|m| m.lines()) {
        match tables.iter_mut().find(|(_, title, _)| *title == line.title) {
            Some((_, _, lines)) => lines.push(line),
            None => tables.push((line.order, line.title.clone(), vec![line])),
        }
    }
    let grid = |(order, title, lines)| (order, of_table(results, title, lines));
    tables.into_iter().map(grid).collect()
}

/// A table of lines: those of variants in the scenario's order, those of one name merged. A column
/// that only some have is empty in the others.
fn of_table(results: &Results, title: String, mut all: Vec<TableLine>) -> Grid {
    let place = |name: &str| results.variants.iter().position(|v| v.name == name);
    all.sort_by_key(|line| place(&line.name));
    let mut headings: Vec<Heading> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for line in &all {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
        for column in &line.columns {
            if !headings.iter().any(|h| h.text == column.heading) {
                headings.push(Heading { text: column.heading.clone(), wide: column.wide });
            }
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
    let lines = names.iter().map(line).collect();
    Grid { title, headings: headings.clone(), lines }
}

/// Test names in the order in which they first appear.
pub(crate) fn tests(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in results.all::<SpeedRow>() {
        if !names.contains(&row.test.as_str()) {
            names.push(&row.test);
        }
    }
    names
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

/// The test's name, with the figure where it is not the children's sum.
pub(crate) fn label(results: &Results, test: &str) -> String {
    let mut rows = results.all::<SpeedRow>();
    let parent = rows.any(|r| r.test == test && r.figure == SumKind::Parent);
    if parent { format!("{test} (parent)") } else { test.into() }
}

/// Says at what size the benchmark ran.
fn size(results: &Results) -> &'static str {
    if results.full { "published size" } else { "reduced size" }
}

/// A column of the tables with a line a test: heading, whether it is wide, and a figure of a run.
struct OfTest<'a> {
    heading: String,
    wide: bool,
    figure: OfRun<'a>,
}

/// The figure of a test in a run.
type OfRun<'a> = Box<dyn Fn(&SeedResults, &str) -> Cell + 'a>;

/// A table with a line a test.
fn by_test(title: String, results: &Results, columns: &[OfTest<'_>]) -> Grid {
    let cell = |column: &OfTest<'_>, test: &str| {
        let cells: Vec<Cell> = results.runs.iter().map(|run| (column.figure)(run, test)).collect();
        (Cell::merged(&cells.iter().collect::<Vec<_>>()), false)
    };
    let line = |test: &&str| Line {
        name: label(results, test),
        cells: columns.iter().map(|column| cell(column, test)).collect(),
    };
    let heading = |c: &OfTest<'_>| Heading { text: c.heading.clone(), wide: c.wide };
    Grid {
        title,
        headings: columns.iter().map(heading).collect(),
        lines: tests(results).iter().map(line).collect(),
    }
}

/// MB/s (1 MB = 1024 kB) of each test and variant.
fn speeds(results: &Results) -> Option<Grid> {
    let mb = |kb: Option<f64>| Cell::maybe(kb.map(|kb| kb / 1024.0), Unit::Plain(1));
    let find =
        |run: &SeedResults, test: &str, variant: &str, figure: fn(&SpeedRow) -> Option<f64>| {
            let row = run.of::<SpeedRow>().find(|r| r.test == test && r.variant == variant);
            mb(row.and_then(figure))
        };
    let mut columns = Vec::new();
    for variant in measured(results) {
        let column = |heading: String, figure: fn(&SpeedRow) -> Option<f64>| OfTest {
            heading,
            wide: false,
            figure: Box::new(move |run, test| find(run, test, variant, figure)),
        };
        columns.push(column(variant.into(), |r| Some(r.kb_per_s)));
        columns.push(column(format!("{variant}, published"), |r| r.published_kb_per_s));
        columns.extend(latency(variant));
    }
    let title = format!("MB/s, virtual clock, {}", size(results));
    (!columns.is_empty()).then(|| by_test(title, results, &columns))
}

/// How long a record took on a variant, in milliseconds.
fn latency(variant: &str) -> [OfTest<'_>; 3] {
    type OfRecord = fn(&Percentiles) -> Option<f64>;
    let figures: [(&str, OfRecord); 3] =
        [("p50", |l| Some(l.p50())), ("p99", |l| l.p99()), ("max", |l| Some(l.max()))];
    figures.map(|(name, of)| OfTest {
        heading: format!("{variant}, record ms {name}"),
        wide: true,
        figure: Box::new(move |run, test| {
            let row = run.of::<SpeedRow>().find(|r| r.test == test && r.variant == variant);
            let us = row.and_then(|r| r.latency_us.as_ref()).and_then(of);
            Cell::maybe(us.map(|us| us / 1e3), Unit::Plain(2))
        }),
    })
}

/// Each test's speed over the baseline's.
fn ratios(results: &Results) -> Option<Grid> {
    let mut baselines: Vec<String> = Vec::new();
    for ratio in results.all::<Ratio>() {
        let name = format!("'{}'", ratio.baseline);
        if !baselines.contains(&name) {
            baselines.push(name);
        }
    }
    if baselines.is_empty() {
        return None;
    }
    let baseline = baselines.join(" and ");
    let find = |run: &SeedResults, test: &str, variant: &str, figure: fn(&Ratio) -> Cell| {
        let ratio = run.of::<Ratio>().find(|r| r.test == test && r.variant == variant);
        ratio.map_or(Cell::None, figure)
    };
    let mut columns = Vec::new();
    for variant in measured(results) {
        let column = |heading: String, figure: fn(&Ratio) -> Cell| OfTest {
            heading,
            wide: false,
            figure: Box::new(move |run, test| find(run, test, variant, figure)),
        };
        columns.push(column(variant.into(), |r| Cell::of(r.ratio, Unit::Times)));
        columns.extend(full_size(results, variant));
        let published = |r: &Ratio| Cell::maybe(r.published_ratio, Unit::Times);
        columns.push(column(format!("{variant}, published"), published));
        columns.push(column(format!("{variant}, difference"), |r| {
            Cell::maybe(r.difference_percent, Unit::Difference)
        }));
    }
    let title = format!("speed over {baseline}, {}", size(results));
    Some(by_test(title, results, &columns))
}

/// A table with a line a test of the runs in real time beside the kernel's; its columns are the
/// variants of which there is a figure.
fn of_peers(
    title: String,
    results: &Results,
    figure: fn(&PeerRow) -> Option<Cell>,
) -> Option<Grid> {
    let mut tests: Vec<&PeerRow> = Vec::new();
    let mut headings: Vec<Heading> = Vec::new();
    for row in &results.peers {
        if !tests.iter().any(|t| t.test == row.test) {
            tests.push(row);
        }
        let heading = Heading { text: row.variant.clone(), wide: false };
        if figure(row).is_some() && !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    let cell = |test: &str, variant: &str| {
        let row = results.peers.iter().find(|r| r.test == test && r.variant == variant);
        (row.and_then(figure).unwrap_or(Cell::None), false)
    };
    let line = |row: &&PeerRow| Line {
        name: label(results, &row.test),
        cells: headings.iter().map(|h| cell(&row.test, &h.text)).collect(),
    };
    let lines: Vec<Line> = tests.iter().map(line).collect();
    (!headings.is_empty()).then(|| Grid { title, headings: headings.clone(), lines })
}

/// MB/s by system calls, beside the kernel's file systems.
fn peer_speeds(results: &Results) -> Option<Grid> {
    of_peers("peers: MB/s by system calls, wall clock".into(), results, |r| {
        Some(Cell::Number(r.kb_per_s.map(|kb| kb / 1024.0), Unit::Plain(1)))
    })
}

/// Their ratios.
fn peer_ratios(results: &Results) -> Option<Grid> {
    let mut baselines: Vec<String> = Vec::new();
    for row in results.peers.iter().filter(|row| row.ratio.is_some()) {
        let name = format!("'{}'", row.baseline);
        if !baselines.contains(&name) {
            baselines.push(name);
        }
    }
    let title = format!("peers: speed over {}, wall clock", baselines.join(" and "));
    of_peers(title, results, |r| Some(Cell::Number(r.ratio?, Unit::Times)))
}

/// The ratios at the published size, where they are others than here at a reduced one.
fn full_size<'a>(results: &'a Results, variant: &'a str) -> Option<OfTest<'a>> {
    let full = results.full_size.as_ref()?;
    let here = move |test: &str| {
        let ratios = results.all::<Ratio>();
        let of_test = ratios.filter(|r| r.test == test && r.variant == variant);
        Spread::of(&of_test.map(|r| r.ratio).collect::<Vec<_>>())
    };
    let other = move |test: &str| {
        let (here, there) = (here(test), full.ratio(test, variant)?);
        let shown = |s: Spread| Cell::of(s.median(), Unit::Times).text();
        (shown(here) != shown(there)).then_some(Cell::Number(there, Unit::Times))
    };
    let figure: OfRun<'a> = Box::new(move |_, test| other(test).unwrap_or(Cell::None));
    Some(OfTest { heading: format!("{variant}, full size"), wide: false, figure })
}
