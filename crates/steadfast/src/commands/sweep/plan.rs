//! `steadfast sweep plan`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use steadfast_sweep::{PlanTotals, costs, write_plan};

use super::error::to_anyhow;
use super::kind::{self, SweepKind};
use crate::CommandEnd;
use crate::cli::SweepPlan;
use crate::terminal;

/// Writes the plan to the standard output.
pub fn plan(args: &SweepPlan, out: &mut dyn Write) -> Result<CommandEnd> {
    let kind = kind::of_file(&args.file)?;
    let planned = write(&*kind, args.shards, &args.times, out)?;
    terminal::note(&words(&planned, args.shards, &args.times));
    Ok(CommandEnd::Good)
}

/// Writes the plan of a kind; `times`: results of a former run.
pub fn write(
    kind: &dyn SweepKind,
    shards: u32,
    times: &[PathBuf],
    out: &mut dyn Write,
) -> Result<PlanTotals> {
    let head = kind::head(kind, shards)?;
    let costs = (!times.is_empty()).then(|| costs(times)).transpose().map_err(to_anyhow)?;
    write_plan(&head, || kind.cases(), costs.as_ref(), out).map_err(to_anyhow)
}

/// What was planned.
pub fn words(planned: &PlanTotals, shards: u32, times: &[PathBuf]) -> String {
    let PlanTotals { fingerprint, cases, known } = planned;
    let dealt = match times.is_empty() {
        true => "dealt by their names".to_owned(),
        false => format!("dealt by time, of {known} as measured before"),
    };
    format!("Plan {fingerprint:.16}: {cases} cases in {shards} shards, {dealt}")
}
