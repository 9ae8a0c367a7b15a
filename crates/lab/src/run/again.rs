//! One cut of a variant, made again: the same seed, the same run, the same state.

use steadfast_crash::again::{Again, again};

use super::{Load, RunOptions, Setting, files, power};
use crate::LabError;
use crate::scenario::Scenario;

/// Makes the cut `number` of a variant again, as [`run`](super::run()) makes it with the same
/// options; `lying`: of those on devices whose caches lie.
///
/// # Errors
/// No such variant or cut; a file system of the kernel, which lives in real time and does nothing
/// twice; and what a run may fail with.
pub fn cut_again(
    scenario: &Scenario,
    options: &RunOptions,
    variant: &str,
    number: u64,
    lying: bool,
) -> Result<Again, LabError> {
    let setting = Setting::new(scenario, options)?;
    let wrong = |what: String| LabError::Scenario { origin: scenario.name.clone(), what };
    let Some(variant) = scenario.variants.iter().find(|v| v.name == variant) else {
        let known: Vec<_> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
        return Err(wrong(format!("no variant '{variant}'; there are: {}", known.join(", "))));
    };
    if variant.kernel.is_some() {
        return Err(wrong(format!(
            "'{}' is the kernel's: it runs in real time and does nothing twice; its findings are \
             told when it runs",
            variant.name
        )));
    }
    let failed = |what| LabError::Variant { variant: variant.name.clone(), what };
    let (machine, recorded, plan) = match &setting.load {
        Load::Files(workload, _) => {
            let (machine, ran) = files::recorded(&setting, workload, variant).map_err(failed)?;
            match lying {
                true => (machine, files::lied(&ran.recorded), files::lying_plan(&setting)),
                false => (machine, ran.recorded, files::honest_plan(&setting)),
            }
        }
        Load::Iozone { .. } if lying => {
            return Err(wrong("a run of IOzone is cut on devices as the scenario has them".into()));
        }
        Load::Iozone { risk, .. } => {
            let (machine, recorded) = power::recorded(&setting, risk, variant).map_err(failed)?;
            (machine, recorded, power::plan(setting.cuts, setting.options.seed))
        }
    };
    let cuts = plan.cuts;
    again(&machine, recorded, &plan, number)
        .ok_or_else(|| wrong(format!("there is no cut {number}: {cuts} are made, from 0 on")))
}
