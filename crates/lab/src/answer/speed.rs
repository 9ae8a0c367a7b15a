//! How fast the variants are.

use super::{Sentence, names, verb};
use crate::results::{CopyRow, FilesRow, LegRow, Path, Ratio, ReadRow, Results, Spread, distinct};

/// Within so much of the baseline a test is level.
const LEVEL: f64 = 0.05;
/// Groups of variants that get a sentence.
const GROUPS: usize = 2;

/// What there is to be said of speeds.
pub(super) fn sentences(results: &Results) -> Vec<Sentence> {
    let mut all = over_baseline(results);
    all.extend(of_files(results));
    all.extend(of_reads(results));
    all.extend(of_copies(results));
    all
}

/// Variants whose speeds over the baseline are the same in all tests.
struct Group<'r> {
    variants: Vec<&'r str>,
    baseline: &'r str,
    /// The test, and the median over the seeds.
    ratios: Vec<(&'r str, f64)>,
}

impl Group<'_> {
    fn mean(&self) -> f64 {
        let logs: f64 = self.ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
        logs / self.ratios.len().max(1) as f64
    }

    fn sentence(&self) -> String {
        let faster: Vec<_> = self.ratios.iter().filter(|(_, r)| *r > 1.0 + LEVEL).collect();
        let slower: Vec<_> = self.ratios.iter().filter(|(_, r)| *r < 1.0 - LEVEL).collect();
        let level = self.ratios.len() - faster.len() - slower.len();
        let ends = |of: &[&(&str, f64)]| {
            let all = Spread::of(&of.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>());
            let (least, most) = (format!("{:.2}", all.min()), format!("{:.2}", all.max()));
            if least == most { most } else { format!("{least} to {most}") }
        };
        let mut parts = Vec::new();
        if let Some((test, _)) = faster.iter().max_by(|a, b| a.1.total_cmp(&b.1)) {
            let n = faster.len();
            let of = match self.ratios.len() {
                1 => format!(" ({test})"),
                all => format!(" in {n} of {all} tests (most: {test})"),
            };
            parts.push(format!("{} times as fast as '{}'{of}", ends(&faster), self.baseline));
        }
        if let Some((test, _)) = slower.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
            let of =
                if parts.is_empty() { format!(" of '{}'", self.baseline) } else { String::new() };
            parts.push(format!(
                "slower in {}: {}{of} (least: {test})",
                slower.len(),
                ends(&slower)
            ));
        }
        if level > 0 {
            let with =
                if parts.is_empty() { format!(" with '{}'", self.baseline) } else { String::new() };
            parts.push(format!("level{with} in {level}"));
        }
        let is = verb(self.variants.len(), "is", "are");
        format!("{} {is} {}.", names(&self.variants, 3), parts.join(", "))
    }
}

fn over_baseline(results: &Results) -> Vec<Sentence> {
    let rows: Vec<&Ratio> = results.all::<Ratio>().collect();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for variant in distinct(rows.iter().map(|r| r.variant.as_str())) {
        if results.variant(variant).is_some_and(|v| v.control) {
            continue;
        }
        let of: Vec<&&Ratio> = rows.iter().filter(|r| r.variant == variant).collect();
        let median = |test: &str| {
            let all = of.iter().filter(|r| r.test == test).map(|r| r.ratio);
            Spread::of(&all.collect::<Vec<_>>()).median()
        };
        let ratios: Vec<(&str, f64)> = distinct(of.iter().map(|r| r.test.as_str()))
            .into_iter()
            .map(|t| (t, median(t)))
            .collect();
        let Some(baseline) = of.first().map(|r| r.baseline.as_str()) else { continue };
        let same = |group: &&mut Group<'_>| {
            group.baseline == baseline
                && group.ratios.len() == ratios.len()
                && group
                    .ratios
                    .iter()
                    .zip(&ratios)
                    .all(|(a, b)| a.0 == b.0 && (a.1 / b.1 - 1.0).abs() < 0.01)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.variants.push(variant),
            None => groups.push(Group { variants: vec![variant], baseline, ratios }),
        }
    }
    groups.sort_by(|a, b| b.mean().total_cmp(&a.mean()));
    groups.iter().take(GROUPS).map(|group| Sentence::plain(group.sentence())).collect()
}

/// The workload of files: the fastest and the slowest by the same way of calling.
fn of_files(results: &Results) -> Option<Sentence> {
    let rows: Vec<&FilesRow> = results.all::<FilesRow>().collect();
    let way =
        if rows.iter().any(|r| r.path.is_system_call()) { Path::is_system_call } else { |_| true };
    let rows: Vec<&&FilesRow> = rows.iter().filter(|r| way(r.path)).collect();
    let names_of = distinct(rows.iter().map(|r| r.variant.as_str()));
    if names_of.len() < 2 {
        return None;
    }
    let speed = |name: &str| {
        let of = rows.iter().filter(|r| r.variant == name).map(|r| r.operations_per_s.median());
        Spread::of(&of.collect::<Vec<_>>()).median()
    };
    let mut by_speed: Vec<(&str, f64)> = names_of.into_iter().map(|n| (n, speed(n))).collect();
    by_speed.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (first, last) = (by_speed.first()?, by_speed.last()?);
    let how = rows.first()?.way();
    if rows.iter().all(|r| r.place.is_none()) && how.contains("wall") {
        return Some(Sentence::plain(format!(
            "Speeds ({how}) are {:.0} to {:.0} calls/s and rank nobody: the notes say why.",
            last.1, first.1
        )));
    }
    Some(Sentence::plain(format!(
        "'{}' makes {:.0} calls/s ({how}), '{}' {:.0}.",
        first.0, first.1, last.0, last.1
    )))
}

/// Reading beside a writer.
fn of_reads(results: &Results) -> Option<Sentence> {
    let rows: Vec<&ReadRow> = results.all::<ReadRow>().collect();
    let test = rows.first()?.test.as_str();
    let median = |name: &str| {
        let of = rows.iter().filter(|r| r.variant == name && r.test == test);
        Spread::of(&of.map(|r| r.seconds.p50()).collect::<Vec<_>>()).median()
    };
    let bytes = rows.first()?.bytes >> 20;
    let all = distinct(rows.iter().filter(|r| r.test == test).map(|r| r.variant.as_str()));
    let mut by_time: Vec<(&str, f64)> = all.into_iter().map(|n| (n, median(n))).collect();
    by_time.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (least, most) = (by_time.first()?, by_time.last()?);
    Some(Sentence::plain(format!(
        "{bytes} MiB read beside a writer take {:.1} s on '{}' and {:.1} s on '{}' ({test}).",
        least.1, least.0, most.1, most.0
    )))
}

/// Copies by dd.
fn of_copies(results: &Results) -> Option<Sentence> {
    // What a volume's legs say is of its cuts; a ratio says the same.
    if results.all::<LegRow>().next().is_some() || results.all::<Ratio>().next().is_some() {
        return None;
    }
    let rows: Vec<&CopyRow> = results.all::<CopyRow>().collect();
    let test = rows.first()?.test.as_str();
    let of_test = || rows.iter().filter(|r| r.test == test);
    let most = of_test().max_by(|a, b| a.records_per_s.total_cmp(&b.records_per_s))?;
    let least = of_test().min_by(|a, b| a.records_per_s.total_cmp(&b.records_per_s))?;
    (most.variant != least.variant).then(|| {
        Sentence::plain(format!(
            "dd ({test}): {:.1} times as many records/s on '{}' as on '{}'.",
            most.records_per_s / least.records_per_s,
            most.variant,
            least.variant
        ))
    })
}
