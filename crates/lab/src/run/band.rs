//! Measures every combination of what a scenario's `[band]` leaves unknown.

use steadfast_setup::DeviceSpec;

use super::{RunOptions, Watch, measure_each};
use crate::results::{
    BandFigure, BandRow, CombinationRatio, CombinationRow, FailureRow, Measurement, Note, Ratio,
    SpeedRow, ratios,
};
use crate::scenario::{Band, Scenario, Variant};
use crate::sensitivity::{Change, alternatives};
use crate::{LabError, ScenarioError};

/// What was found.
pub(super) struct OverBand {
    pub measurements: Vec<Measurement>,
    pub notes: Vec<Note>,
    pub failures: Vec<FailureRow>,
}

/// A scenario with some of its unknowns otherwise.
struct Combination {
    changes: Vec<Change>,
    scenario: Scenario,
    /// Of each variant that takes part itself and the devices it stands on: nothing else of the
    /// scenario concerns it.
    bases: Vec<(Variant, Vec<DeviceSpec>)>,
}

/// What was measured of a combination.
struct MeasuredCombination {
    settings: String,
    rows: Vec<SpeedRow>,
    ratios: Vec<Ratio>,
}

/// The rows of one seed.
///
/// # Errors
/// The scenario has no band, or a variant of it fails as it is.
pub(super) fn measured(
    scenario: &Scenario,
    options: &RunOptions,
    watch: &Watch<'_>,
) -> Result<OverBand, LabError> {
    let band = scenario.band.as_ref().ok_or_else(|| ScenarioError::NoBand.of(scenario))?;
    let takes_part = |v: &Variant| v.run.speed() && v.is_among(&band.variants);
    let variants: Vec<usize> =
        (0..scenario.variants.len()).filter(|at| takes_part(&scenario.variants[*at])).collect();
    let (all, has_alike) = combinations(scenario, &variants);
    // Of each combination and variant the first combination in which the variant is the same.
    let first = |n: usize, at: usize| {
        // OK to index: `at` is one of `variants`, and `bases` is as long.
        let place = variants.iter().position(|v| *v == at).unwrap_or(0);
        all.iter().position(|other| other.bases[place] == all[n].bases[place]).unwrap_or(n)
    };
    let own = |n| variants.iter().copied().filter(move |at| first(n, *at) == n).collect();
    let runs: Vec<(Scenario, Vec<usize>)> =
        all.iter().enumerate().map(|(n, c)| (c.scenario.clone(), own(n))).collect();
    let count = all.len();
    let progress = |share: f64, _: &str| (watch.progress)(share, &format!("{count} combinations"));
    let each = measure_each(&runs, options, &Watch { progress: &progress, stop: watch.stop })?;
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for (n, combination) in all.iter().enumerate() {
        let of = |at: &usize| {
            let rows = each.rows[first(n, *at)].as_ref()?;
            let name = &scenario.variants[*at].name;
            let rows: Vec<SpeedRow> = rows.iter().filter(|r| r.variant == *name).cloned().collect();
            (!rows.is_empty()).then_some(rows)
        };
        let settings = settings(&combination.changes);
        match variants.iter().map(of).collect::<Option<Vec<_>>>() {
            Some(rows) => {
                let rows = rows.concat();
                let ratios = ratios(rows.iter(), |variant| scenario.baseline_of(variant));
                found.push(MeasuredCombination { settings, rows, ratios });
            }
            None => missing.push(settings),
        }
    }
    let failed = |(n, e): (usize, LabError)| {
        let variant = settings(&all[n].changes);
        FailureRow { variant, what: e.to_string() }
    };
    let failures: Vec<FailureRow> = each.failures.into_iter().map(failed).collect();
    let mut notes: Vec<Note> = failures.iter().map(FailureRow::note).collect();
    if !missing.is_empty() {
        notes.push(Note::remark(format!(
            "Not measured, since a model refuses it at this size, or it failed, or the run ended \
             before: {}.",
            missing.join("; ")
        )));
    }
    if has_alike {
        notes.push(Note::remark(
            "Some values of the band change nothing that is measured: combinations that differ by \
             them only are left out.",
        ));
    }
    Ok(OverBand { measurements: rows(band, &found), notes, failures })
}

/// All of them, the first being the scenario as it is; and whether there would be more, in which no
/// variant that takes part is another.
fn combinations(scenario: &Scenario, variants: &[usize]) -> (Vec<Combination>, bool) {
    let with = |changes: Vec<Change>, scenario: Scenario| {
        let base = |at: &usize| {
            let variant = &scenario.variants[*at];
            let leaves = scenario.leaves(variant).into_iter();
            let devices = leaves.map(|name| scenario.topology.devices[&name].clone());
            (variant.clone(), devices.collect())
        };
        Combination { changes, bases: variants.iter().map(base).collect(), scenario }
    };
    let mut all = vec![with(Vec::new(), scenario.clone())];
    let mut has_alike = false;
    for unknown in alternatives(scenario) {
        for known in std::mem::take(&mut all) {
            let others = unknown.iter().filter_map(|other| {
                let changes = known.changes.iter().chain([&other.change]).cloned().collect();
                Some(with(changes, other.of(&known.scenario)?))
            });
            let others: Vec<Combination> = others.collect();
            all.push(known);
            for one in others {
                match all.iter().any(|known| known.bases == one.bases) {
                    true => has_alike = true,
                    false => all.push(one),
                }
            }
        }
    }
    (all, has_alike)
}

fn settings(changes: &[Change]) -> String {
    let of = |change: &Change| format!("{} {}", change.name(), change.to);
    match changes {
        [] => "as given".to_owned(),
        changes => changes.iter().map(of).collect::<Vec<_>>().join(", "),
    }
}

fn rows(band: &Band, found: &[MeasuredCombination]) -> Vec<Measurement> {
    let Some(given) = found.first().filter(|first| first.settings == "as given") else {
        return Vec::new();
    };
    let each: Vec<CombinationRow> = found.iter().map(|one| combination(band, one)).collect();
    let fitting: Vec<&MeasuredCombination> =
        found.iter().zip(&each).filter(|(_, row)| row.fits).map(|(one, _)| one).collect();
    let row = |own: &SpeedRow| {
        let speed = |one: &&MeasuredCombination| {
            let same = |r: &&SpeedRow| r.test == own.test && r.variant == own.variant;
            one.rows.iter().find(same).map(|r| r.kb_per_s)
        };
        let ratio_of = |one: &MeasuredCombination| one.ratio(own).map(|r| r.ratio);
        let ratio = given.ratio(own).and_then(|r| {
            let all = fitting.iter().filter_map(|one| ratio_of(one));
            figure(r.published_ratio?, r.ratio, all)
        });
        let speeds = fitting.iter().filter_map(speed);
        Some(BandRow {
            test: own.test.clone(),
            variant: own.variant.clone(),
            combinations: fitting.len() as u64,
            kb_per_s: figure(own.published_kb_per_s?, own.kb_per_s, speeds)?,
            ratio,
        })
    };
    // What is compared before what it is compared with.
    let mut rows: Vec<BandRow> = given.rows.iter().filter_map(row).collect();
    rows.sort_by_key(|row| row.ratio.is_none());
    let rows = rows.into_iter().map(Measurement::from);
    rows.chain(each.into_iter().map(Measurement::from)).collect()
}

fn figure(published: f64, default: f64, all: impl Iterator<Item = f64>) -> Option<BandFigure> {
    let ends = |(low, high): (f64, f64), x: f64| (low.min(x), high.max(x));
    let (lowest, highest) = all.fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    (lowest <= highest).then_some(BandFigure { published, lowest, highest, default })
}

fn combination(band: &Band, one: &MeasuredCombination) -> CombinationRow {
    let published = || one.ratios.iter().filter(|r| r.published_ratio.is_some());
    let off: Vec<(String, f64)> = match band.fit.is_empty() {
        true => {
            let of = |r: &Ratio| Some((r.test.clone(), r.difference_percent?));
            published().filter_map(of).collect()
        }
        false => {
            let rows = one.rows.iter().filter(|r| band.fit.contains(&r.test));
            let of = |r: &SpeedRow| {
                let off = (r.kb_per_s / r.published_kb_per_s? - 1.0) * 100.0;
                Some((format!("{}, {}", r.test, r.variant), off))
            };
            rows.filter_map(of).collect()
        }
    };
    let farthest = off.into_iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let (farthest, off_percent) = farthest.unwrap_or_default();
    CombinationRow {
        settings: one.settings.clone(),
        farthest,
        off_percent,
        fits: band.fit.is_empty() || off_percent.abs() <= band.fit_percent,
        ratios: published()
            .map(|r| CombinationRatio {
                test: r.test.clone(),
                variant: r.variant.clone(),
                ratio: r.ratio,
            })
            .collect(),
    }
}

impl MeasuredCombination {
    fn ratio(&self, of: &SpeedRow) -> Option<&Ratio> {
        self.ratios.iter().find(|r| r.test == of.test && r.variant == of.variant)
    }
}
