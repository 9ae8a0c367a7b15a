//! `lab run` as a sweep: each part of each variant with each seed is a case.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadfast_lab::RunOptions;
use steadfast_lab::scenario::Scenario;
use steadfast_sweep::{CaseOutcome, SweepCase};

use super::kind::{CaseRunner, SweepKind};
use super::lab_cases::{LabCases, inputs_of};
use crate::cli::RunOutput;
use crate::commands::lab::run::{ShownRun, seeds};
use crate::commands::lab::to_anyhow;
use crate::{CommandEnd, Usage};

/// `[lab-run]` of SWEEP.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabRunFile {
    scenario: String,
    #[serde(default = "one")]
    seed: u64,
    #[serde(default = "one")]
    seeds: u64,
    #[serde(default)]
    cuts: Option<u64>,
    #[serde(default)]
    full: bool,
}

fn one() -> u64 {
    1
}

/// What a plan says of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LabRunSettings {
    /// As `lab run` would be given it.
    scenario: String,
    /// What it says: another machine need not have the file.
    text: String,
    seed: u64,
    seeds: u64,
    cuts: Option<u64>,
    full: bool,
}

/// Runs of a scenario.
pub struct LabRunSweep {
    settings: LabRunSettings,
    scenario: Scenario,
    cases: LabCases,
}

impl LabRunSweep {
    /// As a plan calls it.
    pub const NAME: &'static str = "lab-run";

    /// From SWEEP.toml; a scenario's file is named from its folder.
    pub fn of_file(file: &LabRunFile, folder: &Path) -> Result<LabRunSweep> {
        let LabRunFile { scenario, seed, seeds, cuts, full } = file;
        let in_folder = folder.join(scenario).to_string_lossy().into_owned();
        let is_file = Path::new(&in_folder).is_file();
        let scenario = if is_file { in_folder } else { scenario.clone() };
        let text = Scenario::text_of(&scenario).map_err(|e| Usage(e.to_string()))?;
        let (seed, seeds, cuts, full) = (*seed, *seeds, *cuts, *full);
        LabRunSweep::new(LabRunSettings { scenario, text, seed, seeds, cuts, full })
    }

    /// As the plan says.
    pub fn of_settings(settings: &Value) -> Result<LabRunSweep> {
        let settings = serde_json::from_value(settings.clone());
        LabRunSweep::new(settings.map_err(|e| Usage(format!("the plan's settings: {e}")))?)
    }

    fn new(settings: LabRunSettings) -> Result<LabRunSweep> {
        let scenario = Scenario::parse(&settings.text, &settings.scenario).map_err(to_anyhow)?;
        let options =
            RunOptions { full: settings.full, cuts: settings.cuts, ..RunOptions::default() };
        let seeds = seeds(settings.seed, settings.seeds)?;
        let cases = LabCases::new(&scenario, &[(options, seeds)])?;
        Ok(LabRunSweep { settings, scenario, cases })
    }

    fn shown<'a>(&'a self, output: &'a RunOutput) -> ShownRun<'a> {
        ShownRun { scenario: &self.settings.scenario, cuts: self.settings.cuts, output }
    }
}

impl SweepKind for LabRunSweep {
    fn name(&self) -> &'static str {
        LabRunSweep::NAME
    }

    fn settings(&self) -> Result<Value> {
        Ok(serde_json::to_value(&self.settings)?)
    }

    fn inputs(&self) -> Vec<PathBuf> {
        inputs_of(&self.scenario)
    }

    fn cases(&self) -> Box<dyn Iterator<Item = SweepCase> + '_> {
        Box::new(self.cases.cases())
    }

    fn with_runner(&self, user: &mut dyn FnMut(&mut CaseRunner<'_>) -> Result<()>) -> Result<()> {
        user(&mut |case| self.cases.run(case))
    }

    fn take(&mut self, _: SweepCase, outcome: CaseOutcome) -> Result<(), String> {
        self.cases.take(outcome).map_err(|e| e.to_string())
    }

    fn try_outputs(&self, output: &RunOutput) -> Result<(), Usage> {
        self.shown(output).tried().map(drop)
    }

    fn finish(&mut self, output: &RunOutput, out: &mut dyn Write) -> Result<CommandEnd> {
        let results = self.cases.results()?;
        let results = results.first().context("a sweep has a run")?;
        let shown = self.shown(output);
        shown.finish(&shown.tried()?, results, out)
    }
}
