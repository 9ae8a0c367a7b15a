//! Which program this is, and whether it and the inputs are those of a plan.

use std::path::Path;

use anyhow::Result;
use steadfast_sweep::{PlanFile, PlanProgram, sha256_of_file};

use super::error::to_anyhow;
use crate::Usage;

/// This program, as plans name it.
pub fn own() -> Result<PlanProgram> {
    PlanProgram::this_one(env!("CARGO_PKG_VERSION")).map_err(to_anyhow)
}

/// SHA-256 of an input.
pub fn hash_of(path: &Path) -> Result<String, Usage> {
    sha256_of_file(path).map_err(|e| Usage(format!("{}: {e}", path.display())))
}

/// Refuses a plan of another program, or of other inputs.
pub fn verify(plan: &PlanFile) -> Result<()> {
    plan.verify(&own()?).map_err(to_anyhow)
}
