//! `lab sensitivity` as a sweep: each change of a scenario, on each variant that it concerns.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadfast_lab::CaseEnd;
use steadfast_lab::scenario::Scenario;
use steadfast_lab::sensitivity::SensitivityRuns;
use steadfast_sweep::{CaseOutcome, SweepCase};

use super::kind::{CaseRunner, SweepKind};
use super::lab_cases::{end_of, inputs_of, outcome_of};
use crate::cli::{LabSensitivity, RunOutput, TableFormat};
use crate::commands::lab::to_anyhow;
use crate::commands::sensitivity::{options, show, tried};
use crate::{CommandEnd, Usage};

/// `[lab-sensitivity]` of SWEEP.toml, and what a plan says of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabSensitivitySettings {
    scenario: String,
    /// What the scenario says: another machine need not have the file. Only in a plan.
    #[serde(default)]
    text: String,
    #[serde(default)]
    full: bool,
    #[serde(default)]
    size: Option<String>,
    #[serde(default = "one")]
    seed: u64,
    #[serde(default)]
    only: Option<String>,
}

fn one() -> u64 {
    1
}

/// Changes of a scenario, one at a time.
pub struct LabSensitivitySweep {
    settings: LabSensitivitySettings,
    scenario: Scenario,
    runs: SensitivityRuns,
    ends: Vec<Option<CaseEnd>>,
}

impl LabSensitivitySweep {
    /// As a plan calls it.
    pub const NAME: &'static str = "lab-sensitivity";

    /// From SWEEP.toml; a scenario's file is named from its folder.
    pub fn of_file(mut file: LabSensitivitySettings, folder: &Path) -> Result<LabSensitivitySweep> {
        let in_folder = folder.join(&file.scenario);
        if in_folder.is_file() {
            file.scenario = in_folder.to_string_lossy().into_owned();
        }
        file.text = Scenario::text_of(&file.scenario).map_err(|e| Usage(e.to_string()))?;
        LabSensitivitySweep::new(file)
    }

    /// As the plan says.
    pub fn of_settings(settings: &Value) -> Result<LabSensitivitySweep> {
        let settings = serde_json::from_value(settings.clone());
        LabSensitivitySweep::new(settings.map_err(|e| Usage(format!("the plan's settings: {e}")))?)
    }

    fn new(settings: LabSensitivitySettings) -> Result<LabSensitivitySweep> {
        let scenario = Scenario::parse(&settings.text, &settings.scenario).map_err(to_anyhow)?;
        let runs = SensitivityRuns::new(&scenario, &options(&settings.args(None)));
        let runs = runs.map_err(to_anyhow)?;
        Ok(LabSensitivitySweep { settings, scenario, runs, ends: Vec::new() })
    }
}

impl LabSensitivitySettings {
    /// As the command line of `lab sensitivity` would have it.
    fn args(&self, output: Option<&RunOutput>) -> LabSensitivity {
        LabSensitivity {
            scenario: self.scenario.clone(),
            full: self.full,
            size: self.size.clone(),
            seed: self.seed,
            only: self.only.clone(),
            figure: None,
            json: output.and_then(|output| output.json.clone()),
            svg: output.and_then(|output| output.chart.clone()),
        }
    }
}

impl SweepKind for LabSensitivitySweep {
    fn name(&self) -> &'static str {
        LabSensitivitySweep::NAME
    }

    fn settings(&self) -> Result<Value> {
        Ok(serde_json::to_value(&self.settings)?)
    }

    fn inputs(&self) -> Vec<PathBuf> {
        inputs_of(&self.scenario)
    }

    fn cases(&self) -> Box<dyn Iterator<Item = SweepCase> + '_> {
        let numbered = self.runs.cases().names().enumerate();
        Box::new(numbered.map(|(number, name)| SweepCase { name, input: number.into() }))
    }

    fn with_runner(&self, user: &mut dyn FnMut(&mut CaseRunner<'_>) -> Result<()>) -> Result<()> {
        user(&mut |case| {
            let number = case.input.as_u64().and_then(|number| usize::try_from(number).ok());
            outcome_of(number.and_then(|number| self.runs.cases().run(number)), case)
        })
    }

    fn take(&mut self, _: SweepCase, outcome: CaseOutcome) -> Result<(), String> {
        self.ends.push(Some(end_of(outcome).map_err(|e| e.to_string())?));
        Ok(())
    }

    fn try_outputs(&self, output: &RunOutput) -> Result<(), Usage> {
        if output.report.is_some() || output.looks.wide || output.looks.format != TableFormat::Text
        {
            let what = "a sensitivity has --json and --chart (its tornado); no other form";
            return Err(Usage(what.into()));
        }
        tried(&self.settings.args(Some(output))).map(drop)
    }

    fn finish(&mut self, output: &RunOutput, out: &mut dyn Write) -> Result<CommandEnd> {
        let found = self.runs.found(std::mem::take(&mut self.ends)).map_err(to_anyhow)?;
        let args = self.settings.args(Some(output));
        show(&args, &found, tried(&args)?, out)
    }
}
