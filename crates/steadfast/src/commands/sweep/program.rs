//! Which program this is, whether it and the inputs are those of a plan, and which other programs
//! results depend on.

use std::path::Path;

use anyhow::Result;
use steadfast_crash::e2fsck::E2fsck;
use steadfast_sweep::{PlanFile, PlanProgram, Tools, sha256_of_file};

use super::error::to_anyhow;
use crate::Usage;

/// This program, as plans name it.
pub fn own() -> Result<PlanProgram> {
    PlanProgram::this_one(env!("CARGO_PKG_VERSION")).map_err(to_anyhow)
}

/// What results depend on beside that: where e2fsck is, some of the recovered images are given to
/// it too.
pub fn tools() -> Tools {
    let version = E2fsck::find().map(|e2fsck| e2fsck.version().unwrap_or_default());
    version.map(|version| ("e2fsck".to_owned(), version)).into_iter().collect()
}

/// SHA-256 of an input.
pub fn hash_of(path: &Path) -> Result<String, Usage> {
    sha256_of_file(path).map_err(|e| Usage(format!("{}: {e}", path.display())))
}

/// Refuses a plan of another program, or of other inputs.
pub fn verify(plan: &PlanFile) -> Result<()> {
    plan.verify(&own()?).map_err(to_anyhow)
}
