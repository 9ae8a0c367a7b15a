//! A recording of `crash run` as a sweep: each instant at which the power goes is a case, with all
//! its states.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;
use steadfast_lab::report::sweep::CaseFigure;
use steadfast_sweep::{CaseOutcome, SweepCase};

use super::judge_inputs::files_of;
use super::kind::{CaseRunner, SweepKind};
use crate::cli::{RunOutput, TableFormat};
use crate::commands::crash::divided::{DividedOptions, DividedResults, DividedRun, RunPart};
use crate::commands::lab::outputs::{self, Output};
use crate::{CommandEnd, Usage};

/// A recorded program under power cuts.
pub struct CrashRunSweep {
    options: DividedOptions,
    /// Until all is shown.
    divided: Option<DividedRun>,
    parts: Vec<RunPart>,
    results: DividedResults,
}

impl CrashRunSweep {
    /// As a plan calls it.
    pub const NAME: &'static str = "crash-run";

    /// From SWEEP.toml; the recording is named from its folder.
    pub fn of_file(mut file: DividedOptions, folder: &Path) -> Result<CrashRunSweep> {
        file.recording = folder.join(file.recording);
        CrashRunSweep::new(file)
    }

    /// As the plan says.
    pub fn of_settings(settings: &Value) -> Result<CrashRunSweep> {
        let settings = serde_json::from_value(settings.clone());
        CrashRunSweep::new(settings.map_err(|e| Usage(format!("the plan's settings: {e}")))?)
    }

    fn new(options: DividedOptions) -> Result<CrashRunSweep> {
        let divided = DividedRun::open(options.clone())?;
        let parts = divided.parts()?;
        let results = DividedResults::default();
        Ok(CrashRunSweep { options, divided: Some(divided), parts, results })
    }

    fn divided(&self) -> Result<&DividedRun> {
        self.divided.as_ref().context("it was shown already")
    }

    fn json(&self, output: &RunOutput) -> Result<Option<Output>, Usage> {
        let wanted = [("--json", outputs::unless_stdout(output.json.as_ref()))];
        let [json] = outputs::tried(wanted, [&self.options.recording])?;
        Ok(json)
    }
}

fn part_of(case: &SweepCase) -> Result<RunPart, String> {
    serde_json::from_value(case.input.clone()).map_err(|e| format!("case '{}': {e}", case.name))
}

/// How many states of an instant are wrong.
pub fn figure_of(result: &Value) -> Option<CaseFigure> {
    let value = result.get("instant")?.get("bad_states")?.as_f64()?;
    Some(CaseFigure { value, what: "states that are wrong", alarm: value > 0.0 })
}

impl SweepKind for CrashRunSweep {
    fn name(&self) -> &'static str {
        CrashRunSweep::NAME
    }

    fn settings(&self) -> Result<Value> {
        Ok(serde_json::to_value(&self.options)?)
    }

    fn inputs(&self) -> Vec<PathBuf> {
        let judge = self.options.judge.iter().flat_map(|judge| files_of(judge));
        std::iter::once(self.options.recording.clone()).chain(judge).collect()
    }

    fn cases(&self) -> Box<dyn Iterator<Item = SweepCase> + '_> {
        let case = |part: &RunPart| SweepCase {
            name: part.name(),
            input: serde_json::to_value(part).unwrap_or_default(),
        };
        Box::new(self.parts.iter().map(case))
    }

    fn with_runner(&self, user: &mut dyn FnMut(&mut CaseRunner<'_>) -> Result<()>) -> Result<()> {
        self.divided()?.with_runner(&mut |run| {
            user(&mut |case| match part_of(case).and_then(&mut *run) {
                Ok(value) => CaseOutcome::Done(value),
                Err(why) => CaseOutcome::Failed(why),
            })
        })
    }

    fn take(&mut self, case: SweepCase, outcome: CaseOutcome) -> Result<(), String> {
        let outcome = match outcome {
            CaseOutcome::Done(value) => Ok(value),
            CaseOutcome::Failed(why) => Err(why),
        };
        self.results.take(part_of(&case)?, outcome)
    }

    fn try_outputs(&self, output: &RunOutput) -> Result<(), Usage> {
        let RunOutput { looks, report, chart, .. } = output;
        if report.is_some() || chart.is_some() || looks.format != TableFormat::Text {
            let what =
                "a crash run has a report in words (--wide: all of it), and --json; no other form";
            return Err(Usage(what.into()));
        }
        self.json(output).map(drop)
    }

    fn finish(&mut self, output: &RunOutput, out: &mut dyn Write) -> Result<CommandEnd> {
        let json = self.json(output)?;
        let divided = self.divided.take().context("it was shown already")?;
        let results = std::mem::take(&mut self.results);
        if output.json.is_some() && json.is_none() {
            return divided.finish(results, None, Some(out));
        }
        let mut document = Vec::new();
        let for_programs = json.as_ref().map(|_| &mut document as &mut dyn Write);
        let end = divided.finish(results, Some((output.looks.wide, out)), for_programs);
        json.map_or(Ok(()), |json| json.write(&document))?;
        end
    }
}
