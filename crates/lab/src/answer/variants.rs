//! The one table: the variants, with the figures that the sentences use.

use crate::results::{
    Cell, FilesRow, LegRow, Path, Rate, Ratio, ReadRow, Results, RiskRow, Spread, Unit, distinct,
};

/// Tests of a benchmark that have a column.
const TESTS: usize = 3;

/// A column: what stands above it, and a variant's cell.
type Column<'r> = (String, Box<dyn Fn(&str) -> (Cell, bool) + 'r>);

/// What the sentences use, variant by variant.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerTable {
    /// Above the names.
    pub title: &'static str,
    /// Above the figures.
    pub headings: Vec<String>,
    /// The lines.
    pub lines: Vec<AnswerLine>,
}

/// Variants with the same figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerLine {
    /// Their names.
    pub variants: Vec<String>,
    /// It is shown also where not all have room.
    pub keep: bool,
    /// A figure for each heading, and whether it is an alarm. Ranges and bounds are in the tables.
    pub figures: Vec<(String, bool)>,
}

/// The table; variants with the same figures are one line. `None`: there are no figures.
pub(super) fn table(results: &Results) -> Option<AnswerTable> {
    let columns = columns(results);
    let mut lines: Vec<(AnswerLine, Vec<bool>)> = Vec::new();
    for variant in &results.variants {
        let cells: Vec<(Cell, bool)> =
            columns.iter().map(|(_, cell)| cell(&variant.name)).collect();
        let filled: Vec<bool> = cells.iter().map(|(cell, _)| *cell != Cell::None).collect();
        if !filled.contains(&true) {
            continue;
        }
        let figures: Vec<(String, bool)> =
            cells.into_iter().map(|(cell, alarm)| (cell.text().0, alarm)).collect();
        match lines.iter_mut().find(|(line, _)| line.figures == figures) {
            Some((line, _)) => line.variants.push(variant.name.clone()),
            None => {
                let variants = vec![variant.name.clone()];
                lines.push((AnswerLine { variants, keep: false, figures }, filled));
            }
        }
    }
    let is_filled = |i: usize| lines.iter().any(|(_, filled)| filled[i]);
    let kept: Vec<usize> = (0..columns.len()).filter(|i| is_filled(*i)).collect();
    let headings = kept.iter().map(|i| columns[*i].0.clone()).collect();
    let line = |(line, _): &(AnswerLine, Vec<bool>)| AnswerLine {
        figures: kept.iter().map(|i| line.figures[*i].clone()).collect(),
        ..line.clone()
    };
    let title = match (results.all::<Ratio>().next(), results.full) {
        (Some(_), false) => "REDUCED SIZE",
        _ => "",
    };
    (!lines.is_empty()).then(|| AnswerTable {
        title,
        headings,
        lines: lines.iter().map(line).collect(),
    })
}

fn columns(results: &Results) -> Vec<Column<'_>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for test in telling_tests(results) {
        let cell = move |variant: &str| {
            let of = results.all::<Ratio>().filter(|r| r.test == test && r.variant == variant);
            (spread(of.map(|r| r.ratio), Unit::Times), false)
        };
        columns.push((format!("{test}, x"), Box::new(cell)));
    }
    let mounted = results.all::<FilesRow>().any(|r| r.path.is_system_call());
    let files = move |variant: &str| {
        let way = |path: Path| !mounted || path.is_system_call();
        let of = results.all::<FilesRow>().filter(|r| r.variant == variant && way(r.path));
        let of: Vec<Spread> = of.map(|r| r.operations_per_s).collect();
        let cell = (!of.is_empty()).then(|| Cell::Number(Spread::over(&of), Unit::Plain(0)));
        (cell.unwrap_or(Cell::None), false)
    };
    columns.push(("calls/s".into(), Box::new(files)));
    let reads = |variant: &str| {
        let of = results.all::<ReadRow>().filter(|r| r.variant == variant);
        let first = results.all::<ReadRow>().next().map(|r| r.test.as_str());
        let of = of.filter(|r| Some(r.test.as_str()) == first);
        (spread(of.map(|r| r.seconds.p50()), Unit::Plain(1)), false)
    };
    columns.push(("read, s".into(), Box::new(reads)));
    let legs = |variant: &str| {
        let of = || results.all::<LegRow>().filter(|r| r.variant == variant);
        let rates: Vec<Rate> = of().map(|r| r.lost_flushed).collect();
        let rate = Rate::of_all(&rates);
        let cell = if rates.is_empty() { Cell::None } else { Cell::Rate(rate) };
        (cell, rate.events > 0 && of().all(|r| !r.model))
    };
    columns.push(("flushed data lost, cuts".into(), Box::new(legs)));
    let broken = |variant: &str| {
        let of = results.all::<RiskRow>().filter(|r| r.variant == variant);
        let rates: Vec<Rate> = of.map(|r| r.cuts_with_broken_promises).collect();
        let info = results.variant(variant);
        let is_ours = info.is_none_or(|v| v.kernel.is_none() && !v.control);
        let rate = Rate::of_all(&rates);
        let cell = if rates.is_empty() { Cell::None } else { Cell::Rate(rate) };
        (cell, is_ours && rate.events > 0)
    };
    columns.push(("synced data lost, cuts".into(), Box::new(broken)));
    let most = |f: fn(&RiskRow) -> f64, unit: Unit| {
        move |variant: &str| {
            let of = results.all::<RiskRow>().filter(|r| r.variant == variant).map(f);
            let most = of.fold(None, |most: Option<f64>, x| Some(most.map_or(x, |m| m.max(x))));
            (most.map_or(Cell::None, |x| Cell::of(x, unit)), false)
        }
    };
    let bytes = most(|r| r.comparable_bytes().max(), Unit::Bytes);
    columns.push(("unsynced lost, most".into(), Box::new(bytes)));
    let age = most(|r| r.comparable_ms().max() / 1e3, Unit::Plain(1));
    columns.push(("its age, s".into(), Box::new(age)));
    columns
}

fn spread(of: impl Iterator<Item = f64>, unit: Unit) -> Cell {
    let all: Vec<f64> = of.collect();
    if all.is_empty() { Cell::None } else { Cell::Number(Spread::of(&all), unit) }
}

/// The tests in which the variants differ most, and the one in which they differ least, in the
/// scenario's order.
fn telling_tests(results: &Results) -> Vec<&str> {
    let all = distinct(results.all::<Ratio>().map(|r| r.test.as_str()));
    if all.len() <= TESTS {
        return all;
    }
    let width = |test: &str| {
        let logs = results.all::<Ratio>().filter(|r| r.test == test).map(|r| r.ratio.ln().abs());
        logs.fold(0.0, f64::max)
    };
    let mut by_width = all.clone();
    by_width.sort_by(|a, b| width(b).total_cmp(&width(a)));
    let mut chosen: Vec<&str> = by_width[..TESTS - 1].to_vec();
    chosen.extend(by_width.last());
    all.into_iter().filter(|test| chosen.contains(test)).collect()
}
