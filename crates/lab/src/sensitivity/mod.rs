//! Which figure depends on what: each parameter of machine, devices and choices is changed alone,
//! and the benchmark measured again.
//!
//! What is reported are ratios, variant over baseline, since those are what a scenario compares.
//! Every measurement is a simulation with the same seed, so what moves a ratio is the change and
//! the few per cent that another run of the same drive's luck moves it by: `--seed` shows them.

mod change;
mod changes;
mod conclusions;
mod costs;
mod drives;
mod text;
mod tornado;
mod unknown;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use steadfast_setup::form::did_you_mean;
use steadfast_vfs::options::choose;

use crate::results::{Ratio, SpeedRow, ratios};
use crate::run::{CaseEnd, Cases, EachRun, RunOptions, ScenarioRows, Watch};
use crate::scenario::{Scenario, iozone_options};
use crate::{LabError, OptionError};

pub use change::Change;
pub use drives::{DriveSpec, drive, drives};
pub use text::text;
pub use tornado::svg;
pub(crate) use unknown::alternatives;

/// Version of the JSON layout.
pub const VERSION: u32 = 2;

/// How to ask.
#[derive(Debug, Clone)]
pub struct Options {
    /// At the published size.
    pub full: bool,
    /// Size of a file instead of the scenario's quick size, as `-s` takes it.
    pub size: Option<String>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Only changes of this part (`card`) or this parameter (`disk.drive`).
    pub only: Option<String>,
}

/// What a change did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeEffect {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// All ratios of this run.
    pub ratios: Vec<Ratio>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Always `steadfast-sensitivity`.
    pub format: &'static str,
    /// Layout version, [`VERSION`].
    pub version: u32,
    /// The scenario's name.
    pub scenario: String,
    /// Size of each file, as the command line of the benchmark has it.
    pub size: String,
    /// Whether that is the published size.
    pub full: bool,
    /// The seed of every run.
    pub seed: u64,
    /// What the others are compared with.
    pub baseline: String,
    /// The ratios of the scenario as it is.
    pub ratios: Vec<Ratio>,
    /// Those of each change.
    pub effects: Vec<ChangeEffect>,
    /// Changes that a model refuses at this size, as a drive whose seeks no curve fits when it is
    /// scaled down to few cylinders.
    pub refused: Vec<Change>,
    /// Changes whose measurement failed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// What holds over all of it, in words.
    pub conclusions: Vec<String>,
    /// Whether somebody stopped it before its end.
    pub partial: bool,
}

/// Measures a scenario and every change of it, as many at a time as the machine has processors.
///
/// # Errors
/// If the scenario runs no benchmark, or a variant cannot be built or fails.
pub fn run(
    scenario: &Scenario,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Sensitivity, LabError> {
    let runs = SensitivityRuns::new(scenario, options)?;
    let count = runs.runs.len();
    let progress =
        |share: f64, _: &str| (watch.progress)(share, &format!("{count} values of parameters"));
    let measured = runs.each.measure(&Watch { progress: &progress, stop: watch.stop })?;
    runs.gathered(measured)
}

/// The runs that a sensitivity is made of: the scenario as it is, and each change of it.
pub struct SensitivityRuns {
    options: Options,
    scenario: Scenario,
    changes: Vec<(Change, Scenario)>,
    runs: Vec<(Scenario, Vec<usize>)>,
    each: EachRun,
}

impl SensitivityRuns {
    /// Those of a scenario.
    ///
    /// # Errors
    /// If the scenario runs no benchmark, or what is asked of it cannot be.
    pub fn new(scenario: &Scenario, options: &Options) -> Result<SensitivityRuns, LabError> {
        let mut scenario = scenario.clone();
        if let Some(text) = &options.size {
            let line = scenario.workload.iozone.as_deref().unwrap_or_default();
            if scenario.variants.iter().any(|v| scenario.workload.lines_of(v).is_some()) {
                let why = "the benchmark is a matrix of sizes, and has no one size";
                return Err(OptionError::NoSize(why).of("--size"));
            }
            iozone_options(line, Some(text)).map_err(|e| OptionError::from(e).of("--size"))?;
            scenario.workload.quick_size = Some(text.clone());
        }
        let mut changes = changes::all(&scenario, options.full);
        if let Some(only) = &options.only {
            let known: Vec<String> = changes.iter().map(|(c, _)| c.name()).collect();
            changes.retain(|(c, _)| c.part == *only || c.name() == *only);
            if changes.is_empty() {
                let parts = changes::all(&scenario, options.full).into_iter().map(|(c, _)| c.part);
                let words: Vec<String> =
                    parts.chain(known).collect::<BTreeSet<_>>().into_iter().collect();
                let near = did_you_mean(only, words.iter().map(String::as_str));
                let near =
                    if near.starts_with("choose") { String::new() } else { format!(" {near}") };
                let what = format!("'{only}' is unknown:{near} {}", choose(&words));
                return Err(OptionError::Unknown(what).of("--only"));
            }
        }
        let variants = |part: &str| {
            let measured = scenario.variants.iter().enumerate().filter(|(_, v)| v.run.speed());
            let concerned =
                measured.filter(|(_, v)| part == "machine" || changes::uses(&scenario, v, part));
            concerned.map(|(number, _)| number).collect::<Vec<_>>()
        };
        let mut runs = vec![(scenario.clone(), variants("machine"))];
        runs.extend(changes.iter().map(|(change, s)| (s.clone(), variants(&change.part))));
        let lab = RunOptions { full: options.full, seed: options.seed, ..RunOptions::default() };
        let labels = std::iter::once("as-given".to_owned())
            .chain(changes.iter().map(|(change, _)| format!("{}={}", change.name(), change.to)))
            .collect();
        let each = EachRun::new(&runs, &lab)?.named(labels);
        Ok(SensitivityRuns { options: options.clone(), scenario, changes, runs, each })
    }

    /// Their cases.
    pub fn cases(&self) -> &Cases {
        &self.each.cases
    }

    /// What was found, of what all cases brought, each in its place.
    ///
    /// # Errors
    /// If the scenario as it is could not be measured.
    pub fn found(&self, ends: Vec<Option<CaseEnd>>) -> Result<Sensitivity, LabError> {
        self.gathered(self.each.rows(ends.into_iter().map(|end| end.map(Into::into)).collect()))
    }

    fn gathered(&self, measured: ScenarioRows) -> Result<Sensitivity, LabError> {
        let SensitivityRuns { options, scenario, changes, runs, .. } = self;
        let (mut rows, mut failures) = (measured.rows.into_iter(), BTreeMap::new());
        for (number, e) in measured.failures {
            // Without the scenario as it is there is nothing to compare with.
            let Some(change) = number.checked_sub(1) else { return Err(e) };
            failures.entry(number).or_insert_with(|| format!("{}: {e}", changes[change].0.name()));
        }
        let Some(base) = rows.next().flatten() else {
            let why = "the models refuse the scenario as it is at this size; take a larger one";
            return Err(OptionError::NoSize(why).of("--size"));
        };
        let baseline = scenario.baseline().to_owned();
        let baseline_of = |variant: &str| scenario.baseline_of(variant);
        let named =
            |number: usize| runs[number].1.iter().map(|v| scenario.variants[*v].name.as_str());
        // Whoever is interrupted has no rows at all.
        let mut partial = !named(0).all(|name| base.iter().any(|r| r.variant == name));
        let whole = |rows: &[SpeedRow], number: usize| {
            rows.len()
                == base.iter().filter(|r| named(number).any(|name| name == r.variant)).count()
        };
        let mut effects = Vec::new();
        let mut refused = Vec::new();
        for (number, ((change, _), rows)) in (1..).zip(changes.iter().zip(rows)) {
            let Some(mut rows) = rows else {
                refused.push(change.clone());
                continue;
            };
            if !whole(&rows, number) {
                partial |= !failures.contains_key(&number);
                continue;
            }
            // Of a variant that the change does not concern the figures are those without it.
            let others = base.iter().filter(|b| !rows.iter().any(|r| r.variant == b.variant));
            let others: Vec<SpeedRow> = others.cloned().collect();
            rows.extend(others);
            effects.push(ChangeEffect {
                change: change.clone(),
                ratios: ratios(rows.iter(), baseline_of),
            });
        }
        let size = if options.full { None } else { scenario.workload.quick_size.clone() };
        let mut found = Sensitivity {
            format: "steadfast-sensitivity",
            version: VERSION,
            scenario: scenario.name.clone(),
            size: size.unwrap_or_else(|| "published".into()),
            full: options.full,
            seed: options.seed,
            ratios: ratios(base.iter(), baseline_of),
            baseline,
            effects,
            refused,
            failures: failures.into_values().collect(),
            conclusions: Vec::new(),
            partial,
        };
        found.conclusions = conclusions::of(&found);
        Ok(found)
    }
}

impl ChangeEffect {
    /// The ratio of a test and variant.
    pub fn ratio(&self, test: &str, variant: &str) -> Option<f64> {
        self.ratios.iter().find(|r| r.test == test && r.variant == variant).map(|r| r.ratio)
    }

    /// By how much a ratio moved, as a share of what it was: 0.1 is 10 % more.
    pub fn moved(&self, from: &Ratio) -> Option<f64> {
        self.ratio(&from.test, &from.variant).map(|ratio| ratio / from.ratio - 1.0)
    }

    /// The ratio that moved most, and by how much.
    pub fn most<'a>(&self, before: &'a [Ratio]) -> Option<(&'a Ratio, f64)> {
        let moved = before.iter().filter_map(|r| Some((r, self.moved(r)?)));
        moved.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
    }
}

#[cfg(test)]
mod tests;
