//! Measures variants of several scenarios: what a sensitivity asks for.

use std::sync::Arc;

use super::cases::Cases;
use super::jobs;
use super::setting::{Part, RunOptions, Setting, Watch};
use crate::results::{Measurement, SpeedRow};
use crate::scenario::Scenario;
use crate::{LabError, ScenarioError};

/// What was measured of several scenarios.
pub(crate) struct ScenarioRows {
    /// By scenario; those of a variant that had not ended when somebody wanted to stop are missing.
    /// `None`: a model refuses the scenario's parameters, perhaps only at the size of the run.
    pub rows: Vec<Option<Vec<SpeedRow>>>,
    /// What failed after something was measured, with the place of its scenario.
    pub failures: Vec<(usize, LabError)>,
}

/// The benchmarks of variants of several scenarios.
pub(crate) struct EachRun {
    /// All of them, one scenario after the other.
    pub cases: Cases,
    /// By scenario: a model refuses it.
    refused: Vec<bool>,
}

impl EachRun {
    /// Those of the named variants (by their places) of each scenario.
    ///
    /// # Errors
    /// If a scenario runs no benchmark or asks for what cannot be.
    pub fn new(
        scenarios: &[(Scenario, Vec<usize>)],
        options: &RunOptions,
    ) -> Result<EachRun, LabError> {
        let options = RunOptions { cuts: Some(0), ..options.clone() };
        let mut settings = Vec::with_capacity(scenarios.len());
        let mut list = Vec::new();
        let mut refused = Vec::new();
        for (number, (scenario, variants)) in scenarios.iter().enumerate() {
            let setting = Setting::new(scenario, &options)?;
            let parts = setting.parts();
            let of_speed = |(_, _, part): &&(usize, usize, Part)| *part == Part::Speed;
            if !parts.iter().any(|part| of_speed(&part)) {
                return Err(ScenarioError::NothingMeasured.of(scenario));
            }
            let can_be = setting.refused().is_none();
            settings.push(Arc::new(setting));
            refused.push(!can_be);
            if can_be {
                let wanted = parts.iter().filter(of_speed).filter(|(v, ..)| variants.contains(v));
                list.extend(wanted.map(|(v, load, part)| jobs::Job {
                    seed: number,
                    variant: *v,
                    load: *load,
                    part: *part,
                }));
            }
        }
        Ok(EachRun { cases: Cases { settings, jobs: list, labels: Vec::new() }, refused })
    }

    /// With words that the names of each scenario's cases begin with.
    pub fn named(mut self, labels: Vec<String>) -> EachRun {
        self.cases.labels = labels;
        self
    }

    /// Runs all of them here.
    ///
    /// # Errors
    /// A variant fails before anything is measured.
    pub fn measure(&self, watch: &Watch<'_>) -> Result<ScenarioRows, LabError> {
        let Cases { settings, jobs, .. } = &self.cases;
        Ok(self.rows(jobs::run(settings, jobs, false, watch)?))
    }

    /// What they brought, here or elsewhere, each in its place.
    pub fn rows(&self, outcomes: Vec<Option<jobs::JobEnd>>) -> ScenarioRows {
        let none = |refused: &bool| (!refused).then(Vec::new);
        let mut rows: Vec<Option<Vec<SpeedRow>>> = self.refused.iter().map(none).collect();
        let mut failures = Vec::new();
        for (job, outcome) in self.cases.jobs.iter().zip(outcomes) {
            match (outcome, &mut rows[job.seed]) {
                (Some(Ok(outcome)), Some(rows)) => {
                    let rows_of = outcome.measurements.iter();
                    rows.extend(rows_of.filter_map(Measurement::row::<SpeedRow>).cloned());
                }
                (Some(Err(e)), _) => {
                    let setting = &self.cases.settings[job.seed];
                    let variant = &setting.scenario.variants[job.variant];
                    failures.push((job.seed, e.of(variant)));
                }
                _ => {}
            }
        }
        ScenarioRows { rows, failures }
    }
}

/// Runs the benchmark of the named variants (by their places) of each scenario.
///
/// # Errors
/// As [`EachRun::new`] and [`EachRun::measure`].
pub(crate) fn measure_each(
    scenarios: &[(Scenario, Vec<usize>)],
    options: &RunOptions,
    watch: &Watch<'_>,
) -> Result<ScenarioRows, LabError> {
    EachRun::new(scenarios, options)?.measure(watch)
}
