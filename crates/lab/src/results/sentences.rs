//! What the source says in words, against the figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cell::{Cell, Unit};
use super::column::{always, wide};
use super::published::yes_or_no;
use super::row::{Order, TableLine};
use super::seed::SeedResults;
use super::{GridRow, SpeedRow, Spread};
use crate::scenario::{Check, Medium, Scenario, Sentence, sized};

/// A sentence of the source that was checked over all seeds.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct SentenceRow {
    /// Short, for a table.
    pub name: String,
    /// The source's words.
    pub said: String,
    /// Whether the figures say the same.
    pub verdict: Verdict,
    /// What must hold, in words.
    pub criterion: String,
    /// Why so, decided before anything was measured.
    pub reason: String,
    /// Cells in which it holds. With several variants to be looked at one by one: of the one in
    /// which it holds least.
    pub cells_that_fit: u64,
    /// Of so many.
    pub cells: u64,
    /// The share of them that is needed, 0 to 1.
    pub needed: f64,
    /// The median over the cells of what is compared: fastest over slowest, one variant over
    /// another, speed over the medium's; of that variant.
    pub median: f64,
    /// Where it holds least: as `median`.
    pub worst: f64,
    /// Which cell that is.
    pub worst_at: String,
    /// Where the figures say otherwise, or it is not checked: why.
    pub explained: Option<String>,
    /// Why it could hardly be otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_construction: Option<String>,
}

/// Whether the figures say what the source says.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// They do.
    Agrees,
    /// They do not.
    Disagrees,
    /// There are no figures of what it speaks of.
    #[default]
    NotMeasured,
}

impl Verdict {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Disagrees => "DISAGREES",
            Verdict::NotMeasured => "not measured",
        }
    }
}

impl SentenceRow {
    /// The title of the sentences' table.
    pub(crate) const TITLE: &str = "what the source says";

    /// The line of a table: whether the figures bear it out.
    pub(crate) fn line(&self) -> TableLine {
        let times = |x| Cell::maybe((self.cells > 0).then_some(x), Unit::Times);
        let holds = format!("{} of {}", self.cells_that_fit, self.cells);
        let holds = if self.cells > 0 { Cell::Text(holds) } else { Cell::None };
        let needed = (self.cells > 0).then_some(self.needed * 100.0);
        let is_given = Cell::Text(yes_or_no(self.by_construction.is_some()));
        let columns = vec![
            always("figures say", Cell::Text(self.found().into())),
            always("holds in cells", holds),
            wide("needed %", Cell::maybe(needed, Unit::Plain(0))),
            always("median", times(self.median)),
            always("worst cell", times(self.worst)),
            always("by construction", is_given),
        ];
        TableLine::new(Order::Sentences, Self::TITLE, &self.name, columns)
    }

    /// Whether the figures bear it out, for people.
    pub fn found(&self) -> &'static str {
        if self.criterion.is_empty() { "not checked" } else { self.verdict.name() }
    }

    /// What was measured, in words.
    pub fn measured(&self) -> String {
        if self.verdict == Verdict::NotMeasured {
            let is_tested = !self.criterion.is_empty();
            return if is_tested { "no cells of it were run" } else { "-" }.into();
        }
        format!(
            "holds in {} of {} cells, {:.0} % are needed; median {:.2}x, worst {:.2}x ({})",
            self.cells_that_fit,
            self.cells,
            self.needed * 100.0,
            self.median,
            self.worst,
            self.worst_at
        )
    }
}

/// A cell: test, file and record in KiB.
type CellKey<'a> = (&'a str, u64, u64);

/// The speeds of a variant: of each cell the mean over the seeds, as the source averages its runs.
struct CellSpeeds<'a>(BTreeMap<CellKey<'a>, (f64, f64)>);

impl<'a> CellSpeeds<'a> {
    fn of(runs: &'a [SeedResults], variant: &str) -> CellSpeeds<'a> {
        let mut cells: BTreeMap<CellKey<'a>, (f64, f64)> = BTreeMap::new();
        let mut add = |place, kb_per_s| {
            let (sum, n) = cells.entry(place).or_default();
            *sum += kb_per_s;
            *n += 1.0;
        };
        let grids = || runs.iter().flat_map(SeedResults::of::<GridRow>);
        for row in grids().filter(|row| row.variant == variant) {
            for cell in &row.cells {
                add((row.test.as_str(), cell.file_kb, cell.record_kb), cell.kb_per_s);
            }
        }
        // A test without sizes is one cell.
        let speeds = runs.iter().flat_map(SeedResults::of::<SpeedRow>);
        for row in speeds.filter(|row| row.variant == variant && grids().next().is_none()) {
            add((row.test.as_str(), 0, 0), row.kb_per_s);
        }
        CellSpeeds(cells)
    }

    fn at(&self, place: &CellKey<'_>) -> Option<f64> {
        self.0.get(place).map(|(sum, n)| sum / n)
    }
}

/// Checks every sentence of a scenario.
pub fn checked(scenario: &Scenario, runs: &[SeedResults]) -> Vec<SentenceRow> {
    scenario.sentences.iter().map(|s| check(s, scenario.medium.as_ref(), runs)).collect()
}

/// Something that is compared in one cell, and where.
struct CellFigure<'a> {
    place: CellKey<'a>,
    ratio: f64,
}

fn check(sentence: &Sentence, medium: Option<&Medium>, runs: &[SeedResults]) -> SentenceRow {
    let speeds = |names: &[String]| -> Vec<CellSpeeds<'_>> {
        names.iter().map(|name| CellSpeeds::of(runs, name)).collect()
    };
    let (all, over) = (speeds(&sentence.variants), speeds(&sentence.over));
    // What is looked at one by one: all together, each variant over each other, each variant.
    let lists: Vec<Vec<CellFigure<'_>>> = match sentence.check {
        None => Vec::new(),
        Some(Check::Comparable) => vec![spread(sentence, &all)],
        Some(Check::Ahead) => all
            .iter()
            .flat_map(|ahead| over.iter().map(move |behind| ratios(sentence, ahead, behind)))
            .collect(),
        Some(Check::Above | Check::Below) => {
            all.iter().map(|of| over_medium(sentence, of, medium)).collect()
        }
    };
    let worst = lists.iter().filter(|list| !list.is_empty()).min_by(|a, b| {
        let share = |list: &[CellFigure<'_>]| fitting(sentence, list) as f64 / list.len() as f64;
        share(a).total_cmp(&share(b))
    });
    let missing = lists.is_empty() || lists.iter().any(Vec::is_empty);
    let mut row = SentenceRow {
        name: sentence.name.clone(),
        said: sentence.said.clone(),
        criterion: sentence.criterion(),
        reason: sentence.reason.clone(),
        needed: sentence.share,
        explained: sentence.explained.clone().filter(|_| sentence.check.is_none()),
        by_construction: sentence.by_construction.clone(),
        ..SentenceRow::default()
    };
    if let Some(list) = worst.filter(|_| !missing) {
        note_cells(sentence, list, &mut row);
    }
    row
}

/// Notes what a list of cells says.
fn note_cells(sentence: &Sentence, list: &[CellFigure<'_>], row: &mut SentenceRow) {
    let mut sorted: Vec<&CellFigure<'_>> = list.iter().collect();
    sorted.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let is_least = matches!(sentence.check, Some(Check::Ahead | Check::Above));
    let too_high = |c: &&CellFigure<'_>| sentence.factor_most.is_some_and(|most| c.ratio > most);
    let low_is_bad = is_least && !sorted.iter().any(too_high);
    // OK to index: the caller has seen that there are some.
    let worst = if low_is_bad { sorted[0] } else { sorted[sorted.len() - 1] };
    let (test, file, record) = worst.place;
    row.cells = list.len() as u64;
    row.cells_that_fit = fitting(sentence, list);
    row.median = Spread::of(&list.iter().map(|c| c.ratio).collect::<Vec<_>>()).median();
    row.worst = worst.ratio;
    row.worst_at = match file {
        0 => test.into(),
        _ => format!("{test}, file {}, records {}", sized(file << 10), sized(record << 10)),
    };
    let holds = row.cells_that_fit as f64 >= sentence.share * row.cells as f64;
    row.verdict = if holds { Verdict::Agrees } else { Verdict::Disagrees };
    row.explained = sentence.explained.clone().filter(|_| !holds);
}

fn fits(sentence: &Sentence, ratio: f64) -> bool {
    let most = sentence.factor_most.unwrap_or(f64::INFINITY);
    match sentence.check {
        Some(Check::Comparable | Check::Below) => ratio <= sentence.factor,
        _ => ratio >= sentence.factor && ratio <= most,
    }
}

fn fitting(sentence: &Sentence, list: &[CellFigure<'_>]) -> u64 {
    list.iter().filter(|c| fits(sentence, c.ratio)).count() as u64
}

/// The cells that a sentence speaks of.
fn places<'a, 's: 'a>(
    sentence: &'a Sentence,
    of: &'a CellSpeeds<'s>,
) -> impl Iterator<Item = CellKey<'s>> + 'a {
    of.0.keys().copied().filter(|(test, file, _)| {
        let bytes = file << 10;
        sentence.tests.iter().any(|t| t == test) && sentence.file_bytes().contains(&bytes)
    })
}

/// Fastest over slowest.
fn spread<'s>(sentence: &Sentence, all: &[CellSpeeds<'s>]) -> Vec<CellFigure<'s>> {
    let Some(first) = all.first() else { return Vec::new() };
    let of = |place: CellKey<'s>| {
        let speeds: Vec<f64> = all.iter().map(|s| s.at(&place)).collect::<Option<_>>()?;
        let most = speeds.iter().copied().fold(f64::MIN, f64::max);
        let least = speeds.iter().copied().fold(f64::MAX, f64::min);
        Some(CellFigure { place, ratio: most / least })
    };
    places(sentence, first).filter_map(of).collect()
}

fn ratios<'s>(
    sentence: &Sentence,
    ahead: &CellSpeeds<'s>,
    behind: &CellSpeeds<'s>,
) -> Vec<CellFigure<'s>> {
    let of = |place: CellKey<'s>| {
        Some(CellFigure { place, ratio: ahead.at(&place)? / behind.at(&place)? })
    };
    places(sentence, ahead).filter_map(of).collect()
}

/// Speed over the medium's: of tests that read, its reading.
fn over_medium<'s>(
    sentence: &Sentence,
    speeds: &CellSpeeds<'s>,
    medium: Option<&Medium>,
) -> Vec<CellFigure<'s>> {
    let Some(medium) = medium else { return Vec::new() };
    let of = |place: CellKey<'s>| {
        let reads = steadfast_bench::iozone::matrix::Column::all()
            .find(|column| column.name() == place.0)
            .is_some_and(|column| column.reads());
        let mb = if reads { medium.read_mb_per_s } else { medium.write_mb_per_s };
        Some(CellFigure { place, ratio: speeds.at(&place)? * 1024.0 / (mb * 1e6) })
    };
    places(sentence, speeds).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use steadfast_devices::model::parameters::Size;

    use super::*;
    use crate::results::{GridCell, GridRow};

    const MEDIUM: Medium = Medium { read_mb_per_s: 1.024, write_mb_per_s: 2.048 };

    /// Variant, test, and speeds by file size in KiB.
    type CellSpeeds<'a> = (&'a str, &'a str, &'a [(u64, f64)]);

    /// A run with these speeds.
    fn run(rows: &[CellSpeeds<'_>]) -> SeedResults {
        let row = |(variant, test, speeds): &CellSpeeds<'_>| GridRow {
            variant: (*variant).into(),
            test: (*test).into(),
            cells: speeds
                .iter()
                .map(|(file_kb, kb_per_s)| GridCell {
                    file_kb: *file_kb,
                    record_kb: 4,
                    kb_per_s: *kb_per_s,
                    only_the_cache: false,
                })
                .collect(),
        };
        SeedResults { seed: 1, measurements: rows.iter().map(|r| row(r).into()).collect() }
    }

    fn sentence(check: Check, variants: &[&str], over: &[&str]) -> Sentence {
        let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect();
        Sentence {
            name: "it".into(),
            said: "so".into(),
            check: Some(check),
            variants: words(variants),
            over: words(over),
            tests: words(&["read", "write"]),
            file_min: None,
            file_max: None,
            factor: 1.25,
            factor_most: None,
            share: 0.75,
            reason: "why".into(),
            explained: Some("because".into()),
            by_construction: None,
        }
    }

    fn judged(sentence: &Sentence, runs: &[SeedResults]) -> (Verdict, u64, u64, String) {
        let row = check(sentence, Some(&MEDIUM), runs);
        assert_eq!(row.explained.is_some(), row.verdict == Verdict::Disagrees);
        (row.verdict, row.cells_that_fit, row.cells, format!("{:.2}", row.worst))
    }

    #[test]
    fn what_is_comparable_lies_within_the_factor_in_most_cells() {
        let same: &[(u64, f64)] = &[(64, 100.0), (128, 100.0), (256, 100.0), (512, 100.0)];
        let near: &[(u64, f64)] = &[(64, 80.0), (128, 120.0), (256, 100.0), (512, 300.0)];
        let far: &[(u64, f64)] = &[(64, 79.0), (128, 120.0), (256, 100.0), (512, 300.0)];
        let both = sentence(Check::Comparable, &["a", "b"], &[]);
        let of = |other| judged(&both, &[run(&[("a", "read", same), ("b", "read", other)])]);
        assert_eq!(of(near), (Verdict::Agrees, 3, 4, "3.00".into()));
        assert_eq!(of(far), (Verdict::Disagrees, 2, 4, "3.00".into()));
        // Tests and files that it does not speak of do not count.
        let large = Sentence { file_min: Some(Size(512 << 10)), ..both.clone() };
        let runs = [run(&[("a", "read", same), ("b", "read", near)])];
        assert_eq!(judged(&large, &runs), (Verdict::Disagrees, 0, 1, "3.00".into()));
        let runs = [run(&[("a", "reread", same), ("b", "reread", near)])];
        assert_eq!(judged(&both, &runs).0, Verdict::NotMeasured);
        let runs = [run(&[("a", "read", same)])];
        assert_eq!(judged(&both, &runs).0, Verdict::NotMeasured);
    }

    #[test]
    fn who_is_ahead_is_so_of_each_of_the_others() {
        let a: &[(u64, f64)] = &[(64, 125.0), (128, 200.0)];
        let b: &[(u64, f64)] = &[(64, 100.0), (128, 100.0)];
        let c: &[(u64, f64)] = &[(64, 100.0), (128, 190.0)];
        let runs = [run(&[("a", "write", a), ("b", "write", b), ("c", "write", c)])];
        let over = |over: &[&str]| judged(&sentence(Check::Ahead, &["a"], over), &runs);
        assert_eq!(over(&["b"]), (Verdict::Agrees, 2, 2, "1.25".into()));
        // Of the one where it holds least.
        assert_eq!(over(&["b", "c"]), (Verdict::Disagrees, 1, 2, "1.05".into()));
        assert_eq!(over(&["b", "nobody"]).0, Verdict::NotMeasured);
    }

    #[test]
    fn the_medium_is_that_of_the_test_and_seeds_are_averaged() {
        // The medium reads 1000 KiB/s and writes 2000.
        let speeds: &[(u64, f64)] = &[(64, 1000.0)];
        let faster: &[(u64, f64)] = &[(64, 1500.0)];
        let of = |check, test, runs: &[&[(u64, f64)]]| {
            let runs: Vec<SeedResults> =
                runs.iter().map(|cells| run(&[("a", test, cells)])).collect();
            judged(&sentence(check, &["a"], &[]), &runs)
        };
        assert_eq!(of(Check::Below, "read", &[speeds]), (Verdict::Agrees, 1, 1, "1.00".into()));
        assert_eq!(of(Check::Below, "read", &[faster]), (Verdict::Disagrees, 0, 1, "1.50".into()));
        assert_eq!(
            of(Check::Above, "read", &[speeds, faster]),
            (Verdict::Agrees, 1, 1, "1.25".into())
        );
        assert_eq!(of(Check::Below, "write", &[faster]), (Verdict::Agrees, 1, 1, "0.75".into()));
    }
}
