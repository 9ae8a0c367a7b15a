//! Which program this is, whether it and the inputs are those of a plan, and which other programs
//! results depend on.

use std::path::Path;

use anyhow::{Context, Result};
use steadfast_crash::e2fsck::E2fsck;
use steadfast_sweep::{PlanFile, Tools, sha256_of_file};

use crate::Usage;

/// This very executable, also if another one has taken its name meanwhile.
const OWN: &str = "/proc/self/exe";

/// SHA-256 of this program.
pub fn own() -> Result<String> {
    sha256_of_file(Path::new(OWN)).context("reading this program's own file")
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
    let (shown, planned, own) = (plan.path().display(), &plan.head().program, own()?);
    if planned.sha256 != own {
        usage!(
            "{shown}: it was made by program {:.16} (version {}), this one is {own:.16} (version \
             {}): another build may give other results; use that one on all machines, or make the \
             plan again",
            planned.sha256,
            planned.version,
            env!("CARGO_PKG_VERSION")
        );
    }
    for input in &plan.head().inputs {
        let found = hash_of(&input.path)?;
        if found != input.sha256 {
            usage!(
                "{}: its SHA-256 is {found:.16}, {shown} was made with {:.16}: put that file \
                 there, or make the plan again",
                input.path.display(),
                input.sha256
            );
        }
    }
    Ok(())
}
