//! `lab compare` as a sweep: a recorded program on each stack, with each seed.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadfast_sweep::{CaseOutcome, SweepCase};

use super::kind::{CaseRunner, SweepKind};
use super::lab_cases::LabCases;
use crate::cli::{LabCompare, RunOutput, TableFormat};
use crate::commands::compare::ComparedTrace;
use crate::commands::lab::run::seeds;
use crate::{CommandEnd, Usage};

/// `[lab-compare]` of SWEEP.toml, and what a plan says of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabCompareSettings {
    trace: PathBuf,
    #[serde(default)]
    stacks: Option<PathBuf>,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    budget: Option<f64>,
    #[serde(default)]
    flat_out: bool,
    #[serde(default = "two")]
    seeds: u64,
    #[serde(default)]
    cuts: Option<u64>,
}

/// As the command has it.
fn two() -> u64 {
    2
}

/// A recorded program on the stacks of a catalogue.
pub struct LabCompareSweep {
    settings: LabCompareSettings,
    compared: ComparedTrace,
    cases: LabCases,
}

impl LabCompareSweep {
    /// As a plan calls it.
    pub const NAME: &'static str = "lab-compare";

    /// From SWEEP.toml; files are named from its folder.
    pub fn of_file(mut file: LabCompareSettings, folder: &Path) -> Result<LabCompareSweep> {
        file.trace = folder.join(file.trace);
        file.stacks = file.stacks.map(|stacks| folder.join(stacks));
        LabCompareSweep::new(file)
    }

    /// As the plan says.
    pub fn of_settings(settings: &Value) -> Result<LabCompareSweep> {
        let settings = serde_json::from_value(settings.clone());
        LabCompareSweep::new(settings.map_err(|e| Usage(format!("the plan's settings: {e}")))?)
    }

    fn new(settings: LabCompareSettings) -> Result<LabCompareSweep> {
        seeds(1, settings.seeds)?;
        let args = settings.args(None);
        let compared = ComparedTrace::of(&args)?;
        let cases = LabCases::new(&compared.stacks.scenario, &compared.runs(&args))?;
        Ok(LabCompareSweep { settings, compared, cases })
    }
}

impl LabCompareSettings {
    /// As the command line of `lab compare` would have it.
    fn args(&self, output: Option<&RunOutput>) -> LabCompare {
        let LabCompareSettings { trace, stacks, only, budget, flat_out, seeds, cuts } = self;
        LabCompare {
            trace: Some(trace.clone()),
            catalogue: false,
            stacks: stacks.clone(),
            only: only.clone(),
            budget: *budget,
            flat_out: *flat_out,
            seeds: *seeds,
            cuts: *cuts,
            check: None,
            wide: output.is_some_and(|output| output.looks.wide),
            report: output.and_then(|output| output.report.clone()),
            json: output.and_then(|output| output.json.clone()),
        }
    }
}

impl SweepKind for LabCompareSweep {
    fn name(&self) -> &'static str {
        LabCompareSweep::NAME
    }

    fn settings(&self) -> Result<Value> {
        Ok(serde_json::to_value(&self.settings)?)
    }

    fn inputs(&self) -> Vec<PathBuf> {
        std::iter::once(&self.settings.trace).chain(&self.settings.stacks).cloned().collect()
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
        if output.chart.is_some() || output.looks.format != TableFormat::Text {
            let what =
                "a comparison has --wide, --json and --report, as lab compare; no other form";
            return Err(Usage(what.into()));
        }
        self.compared.tried(&self.settings.args(Some(output))).map(drop)
    }

    fn finish(&mut self, output: &RunOutput, out: &mut dyn Write) -> Result<CommandEnd> {
        let all = self.cases.results()?;
        let results = all.first().context("a comparison has a run")?;
        let args = self.settings.args(Some(output));
        let files = self.compared.tried(&args)?;
        self.compared.show(&args, (results, all.get(1)), None, files, out)
    }
}
