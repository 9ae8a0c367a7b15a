//! `soak plan`, and what a plan says of its cases.

use std::io::Write;
use std::path::Path;

use steadfast_selftest::soak::{SoakCases, SoakSettings};
use steadfast_sweep::{PlanFile, PlanHead, PlanProgram, costs, write_plan};

use crate::args::{PlanArgs, SpaceArgs};
use crate::error::{Result, SoakError};
use crate::note;

const KIND: &str = "soak";
const COMMAND: &str = "cargo xtask soak";

/// Writes a plan.
pub fn plan(args: &PlanArgs, out: &mut dyn Write) -> Result<bool> {
    let cases = of_args(&args.space, args.commit.clone())?;
    let mut head = PlanHead::new(KIND, this_program()?, args.shards);
    head.command = COMMAND.into();
    head.settings = serde_json::to_value(cases.settings())?;
    let costs = (!args.times.is_empty()).then(|| costs(&args.times)).transpose()?;
    let planned = write_plan(&head, || cases.cases().into_iter(), costs.as_ref(), out)?;
    let (fingerprint, count) = (planned.fingerprint, planned.cases);
    note(&format!("Plan {fingerprint:.16}: {count} cases in {} shards", args.shards));
    Ok(true)
}

/// What the arguments ask for.
pub fn of_args(args: &SpaceArgs, commit: Option<String>) -> Result<SoakCases> {
    let SpaceArgs { space, words, seed } = args;
    let (space, words) = (space.clone(), words.clone());
    Ok(SoakCases::new(&SoakSettings { space, words, seed: *seed, commit })?)
}

/// A plan, and its cases, once it is this program's.
pub fn opened(path: &Path) -> Result<(PlanFile, SoakCases)> {
    let plan = PlanFile::open(path)?;
    let head = plan.head();
    if head.kind != KIND {
        let (path, kind) = (path.display(), &head.kind);
        return Err(SoakError::usage(format!("{path}: it is of '{kind}', not of soak")));
    }
    plan.verify(&this_program()?)?;
    let settings: SoakSettings = serde_json::from_value(head.settings.clone())
        .map_err(|e| SoakError::usage(format!("{}: its settings: {e}", path.display())))?;
    let cases = SoakCases::new(&settings)?;
    Ok((plan, cases))
}

fn this_program() -> Result<PlanProgram> {
    Ok(PlanProgram::this_one(env!("CARGO_PKG_VERSION"))?)
}
