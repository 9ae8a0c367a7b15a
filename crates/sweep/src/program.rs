//! Which program this is, and whether it and the inputs are those of a plan.

use std::path::Path;

use crate::{PlanFile, PlanProgram, Result, SweepError, sha256_of_file};

/// This very executable, also if another one has taken its name meanwhile.
const OWN: &str = "/proc/self/exe";

impl PlanProgram {
    /// The program that this process runs.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn this_one(version: &str) -> Result<PlanProgram> {
        let own = Path::new(OWN);
        let sha256 = sha256_of_file(own).map_err(|e| SweepError::io(own, e))?;
        Ok(PlanProgram { version: version.into(), sha256 })
    }
}

impl PlanFile {
    /// Refuses a plan that another program has made, or with other inputs.
    ///
    /// # Errors
    /// It is one, or a file cannot be read.
    pub fn verify(&self, program: &PlanProgram) -> Result<()> {
        let (plan, head) = (self.path(), self.head());
        if head.program.sha256 != program.sha256 {
            let both = Box::new([head.program.clone(), program.clone()]);
            return Err(SweepError::OtherProgram { plan: plan.into(), both });
        }
        for input in &head.inputs {
            let found = sha256_of_file(&input.path).map_err(|e| SweepError::io(&input.path, e))?;
            if found != input.sha256 {
                let (wanted, input) = (input.sha256.clone(), input.path.clone());
                return Err(SweepError::OtherInput { input, plan: plan.into(), found, wanted });
            }
        }
        Ok(())
    }
}
