//! The cases of one or several runs of a scenario, as the cases of a sweep.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};
use steadfast_lab::report::sweep::CaseFigure;
use steadfast_lab::results::{MeasurementRow, Results, RiskRow, SpeedRow};
use steadfast_lab::scenario::Scenario;
use steadfast_lab::{CaseEnd, Cases, JobResult, RunOptions};
use steadfast_sweep::{CaseOutcome, SweepCase};

use crate::commands::lab::to_anyhow;

/// The files that a scenario's cases read.
pub fn inputs_of(scenario: &Scenario) -> Vec<PathBuf> {
    let workload = &scenario.workload;
    let trace = workload.trace.as_ref().map(|trace| trace.file.clone());
    let fio = workload.fio.as_ref().and_then(|fio| fio.file.clone());
    trace.into_iter().chain(fio).map(PathBuf::from).collect()
}

/// What came of a case of the lab, as a sweep's.
pub fn outcome_of(end: Option<CaseEnd>, case: &SweepCase) -> CaseOutcome {
    let written = match end {
        None => return CaseOutcome::Failed(format!("there is no case {}", case.input)),
        Some(CaseEnd::Failed(why)) => return CaseOutcome::Failed(why),
        Some(CaseEnd::Ran(ran)) => serde_json::to_value(ran),
    };
    written.map_or_else(|e| CaseOutcome::Failed(e.to_string()), CaseOutcome::Done)
}

/// The first figure of a result: of power cuts, how much half of them take at most.
pub fn figure_of(result: &Value) -> Option<CaseFigure> {
    let result = JobResult::deserialize(result).ok()?;
    result.measurements.iter().find_map(|measurement| {
        if let Some(risk) = RiskRow::of(measurement) {
            let alarm = risk.broken_promises > 0 || risk.damage.events > 0;
            let value = risk.exposure_bytes.p50();
            return Some(CaseFigure { value, what: "bytes at risk (median of the cuts)", alarm });
        }
        let speed = SpeedRow::of(measurement)?;
        Some(CaseFigure {
            value: speed.kb_per_s,
            what: "speed of the first test, kB/s",
            alarm: false,
        })
    })
}

/// The other way.
pub fn end_of(outcome: CaseOutcome) -> serde_json::Result<CaseEnd> {
    Ok(match outcome {
        CaseOutcome::Done(value) => CaseEnd::Ran(serde_json::from_value::<JobResult>(value)?),
        CaseOutcome::Failed(why) => CaseEnd::Failed(why),
    })
}

/// Runs of a scenario, each with seeds of its own, and what has come of their cases.
pub struct LabCases {
    runs: Vec<Cases>,
    ends: Vec<Option<CaseEnd>>,
}

impl LabCases {
    /// Of these runs; one without seeds has no case.
    pub fn new(scenario: &Scenario, runs: &[(RunOptions, Vec<u64>)]) -> Result<LabCases> {
        let runs = runs.iter().filter(|(_, seeds)| !seeds.is_empty());
        let runs = runs.map(|(options, seeds)| Cases::new(scenario, options, seeds));
        let runs = runs.collect::<Result<_, _>>().map_err(to_anyhow)?;
        Ok(LabCases { runs, ends: Vec::new() })
    }

    /// All of them: a case is the number of its run, and its own in that.
    pub fn cases(&self) -> impl Iterator<Item = SweepCase> + '_ {
        self.runs.iter().enumerate().flat_map(|(run, cases)| {
            let numbered = cases.names().enumerate();
            numbered.map(move |(number, name)| SweepCase { name, input: json!([run, number]) })
        })
    }

    /// Runs one.
    pub fn run(&self, case: &SweepCase) -> CaseOutcome {
        let number = |at: usize| usize::try_from(case.input.get(at)?.as_u64()?).ok();
        let end = || self.runs.get(number(0)?)?.run(number(1)?);
        outcome_of(end(), case)
    }

    /// Takes a result in; they come in the order of the cases.
    pub fn take(&mut self, outcome: CaseOutcome) -> serde_json::Result<()> {
        self.ends.push(Some(end_of(outcome)?));
        Ok(())
    }

    /// The results of each run.
    pub fn results(&mut self) -> Result<Vec<Results>> {
        let mut ends = std::mem::take(&mut self.ends);
        // As a run whose first variant fails: there is nothing to show.
        if let Some(Some(CaseEnd::Failed(why))) = ends.first()
            && ends.iter().flatten().all(|end| matches!(end, CaseEnd::Failed(_)))
        {
            return Err(anyhow!("all {} cases failed; the first: {why}", ends.len()));
        }
        let mut all = Vec::new();
        for cases in &self.runs {
            let rest = ends.split_off(cases.len().min(ends.len()));
            all.push(cases.results(std::mem::replace(&mut ends, rest)).map_err(to_anyhow)?);
        }
        Ok(all)
    }
}
