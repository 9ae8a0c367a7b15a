//! What can be swept: a table of SWEEP.toml each, and one trait.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;
use steadfast_lab::report::sweep::CaseFigure;
use steadfast_sweep::{CaseOutcome, PlanFile, PlanHead, PlanInput, SweepCase};
use steadfast_vfs::bounded;

use super::crash_run::CrashRunSweep;
use super::lab_compare::{LabCompareSettings, LabCompareSweep};
use super::lab_run::{LabRunFile, LabRunSweep};
use super::lab_sensitivity::{LabSensitivitySettings, LabSensitivitySweep};
use super::{crash_run, lab_cases, program};
use crate::cli::RunOutput;
use crate::commands::crash::divided::DividedOptions;
use crate::{CommandEnd, Usage};

/// Computes a case.
pub type CaseRunner<'a> = dyn FnMut(&SweepCase) -> CaseOutcome + 'a;

/// Cases of one kind: how they are made, run, and shown once all are there.
pub trait SweepKind {
    /// What is said in the plan of it.
    fn name(&self) -> &'static str;

    /// What it needs to know to be the same on another machine.
    fn settings(&self) -> Result<serde_json::Value>;

    /// The files that its cases read.
    fn inputs(&self) -> Vec<std::path::PathBuf>;

    /// All cases, always in the same order.
    fn cases(&self) -> Box<dyn Iterator<Item = SweepCase> + '_>;

    /// Gives `user` what computes one case after the other, or says why none can be here.
    fn with_runner(&self, user: &mut dyn FnMut(&mut CaseRunner<'_>) -> Result<()>) -> Result<()>;

    /// Takes a result in; they come in the order of the cases.
    fn take(&mut self, case: SweepCase, outcome: CaseOutcome) -> Result<(), String>;

    /// Tries the files that are asked for, before the work.
    fn try_outputs(&self, output: &RunOutput) -> Result<(), Usage>;

    /// Shows what all results together say: what one machine would have shown.
    fn finish(&mut self, output: &RunOutput, out: &mut dyn Write) -> Result<CommandEnd>;
}

/// SWEEP.toml.
#[derive(Deserialize)]
enum SweepFile {
    #[serde(rename = "lab-run")]
    Run(LabRunFile),
    #[serde(rename = "lab-compare")]
    Compare(LabCompareSettings),
    #[serde(rename = "lab-sensitivity")]
    Sensitivity(LabSensitivitySettings),
    #[serde(rename = "crash-run")]
    Crash(DividedOptions),
}

/// Reads SWEEP.toml.
pub fn of_file(path: &Path) -> Result<Box<dyn SweepKind>> {
    let shown = path.display();
    let text = bounded::text(path, bounded::SETTINGS_MAX);
    let text = text.map_err(|e| Usage(format!("{shown}: {e}")))?;
    let file: SweepFile = toml::from_str(&text).map_err(|e| {
        let e = e.to_string();
        Usage(format!("{shown}: {}\n(steadfast sweep plan --help has an example)", e.trim_end()))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(match file {
        SweepFile::Run(file) => Box::new(LabRunSweep::of_file(&file, folder)?),
        SweepFile::Compare(file) => Box::new(LabCompareSweep::of_file(file, folder)?),
        SweepFile::Sensitivity(file) => Box::new(LabSensitivitySweep::of_file(file, folder)?),
        SweepFile::Crash(file) => Box::new(CrashRunSweep::of_file(file, folder)?),
    })
}

/// The kind of a plan, once its program and its inputs are those of this machine.
pub fn of_plan(plan: &PlanFile) -> Result<Box<dyn SweepKind>> {
    let head = plan.head();
    program::verify(plan)?;
    match head.kind.as_str() {
        LabRunSweep::NAME => Ok(Box::new(LabRunSweep::of_settings(&head.settings)?)),
        LabSensitivitySweep::NAME => {
            Ok(Box::new(LabSensitivitySweep::of_settings(&head.settings)?))
        }
        LabCompareSweep::NAME => Ok(Box::new(LabCompareSweep::of_settings(&head.settings)?)),
        CrashRunSweep::NAME => Ok(Box::new(CrashRunSweep::of_settings(&head.settings)?)),
        kind => usage!("{}: its kind is '{kind}', which is not known here", plan.path().display()),
    }
}

/// A result of a plan's kind in one figure, where it has one.
pub fn figure_of(plan: &PlanFile, result: &serde_json::Value) -> Option<CaseFigure> {
    match plan.head().kind.as_str() {
        CrashRunSweep::NAME => crash_run::figure_of(result),
        _ => lab_cases::figure_of(result),
    }
}

/// The head of a plan with so many shards.
pub fn head(kind: &dyn SweepKind, shards: u32) -> Result<PlanHead> {
    let inputs = kind.inputs().into_iter().map(|path| {
        let sha256 = program::hash_of(&path)?;
        Ok(PlanInput { path, sha256 })
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let mut head = PlanHead::new(kind.name(), program::own()?, shards);
    (head.inputs, head.settings) = (inputs, kind.settings()?);
    Ok(head)
}
