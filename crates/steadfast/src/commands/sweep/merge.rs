//! `steadfast sweep merge`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use steadfast_sweep::{MergeTotals, PlanFile};

use super::error::to_anyhow;
use super::kind;
use crate::cli::RunOutput;
use crate::cli::SweepMerge;
use crate::{CommandEnd, terminal};

/// Verifies the results and shows them.
pub fn merge(args: &SweepMerge, out: &mut dyn Write) -> Result<CommandEnd> {
    let plan = PlanFile::open(&args.plan).map_err(to_anyhow)?;
    shown(&plan, &args.results, &args.output, out)
}

/// The same of a plan that was read.
pub fn shown(
    plan: &PlanFile,
    results: &[PathBuf],
    output: &RunOutput,
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let mut kind = kind::of_plan(plan)?;
    kind.try_outputs(output)?;
    let taken =
        steadfast_sweep::merge(plan, results, &mut |case, outcome| kind.take(case, outcome));
    let MergeTotals { cases, failed, seconds, hosts } = taken.map_err(to_anyhow)?;
    let end = kind.finish(output, out)?;
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    // Not to the standard output, which is that of the command that was swept.
    terminal::note(&format!(
        "Merged: {cases} cases ({failed} failed) of {} shards, {seconds:.1} s together, on {}",
        plan.shards(),
        hosts.join(", ")
    ));
    Ok(end)
}
