//! One crash state of a variant, reproduced: the same seed, the same run, the same state.

#[cfg(feature = "planted-bugs")]
use steadfast_crash::explore::{Plan, first_wrong};
use steadfast_crash::explore::{ReproducedState, reproduce};
#[cfg(feature = "planted-bugs")]
use steadfast_crash::figures::StateFigures;

use super::controls::{Control, control_plan};
use super::setting::{RunOptions, Setting, Subject};
use super::workload::Cuttable;
use crate::scenario::Scenario;
use crate::{LabError, ScenarioError};

/// Reproduces the cut `number` of a variant, as [`run`](super::run()) makes it with the same
/// options; with `control`: of that control's.
///
/// # Errors
/// No such variant or cut; a file system of the kernel, which lives in real time and does nothing
/// twice; and what a run may fail with.
pub fn reproduce_state(
    scenario: &Scenario,
    options: &RunOptions,
    variant: &str,
    number: u64,
    control: Option<Control>,
) -> Result<ReproducedState, LabError> {
    let wrong = |why: ScenarioError| why.of(scenario);
    let setting = Setting::new(scenario, options)?;
    let Cuttable { machine, recorded, plan: honest } = recorded(&setting, variant)?;
    let (recorded, plan) = match control {
        None => (recorded, honest),
        Some(control) => match control.of(&recorded) {
            Some(changed) => (changed, control_plan(&setting, &honest)),
            None => return Err(wrong(ScenarioError::NoControl(variant.to_owned()))),
        },
    };
    let cuts = plan.cuts();
    reproduce(&machine, recorded, &plan, number)
        .ok_or_else(|| wrong(ScenarioError::NoCut { number, cuts }))
}

/// Makes the cuts of a variant, as [`run`](super::run()) makes them with the same options and
/// without other programs' opinions, in the order of time, until it is `enough`.
///
/// # Errors
/// As [`reproduce_state`].
#[cfg(feature = "planted-bugs")]
pub fn cut_until(
    scenario: &Scenario,
    options: &RunOptions,
    variant: &str,
    enough: &dyn Fn(&StateFigures) -> bool,
) -> Result<(), LabError> {
    let setting = Setting::new(scenario, options)?;
    let Cuttable { machine, recorded, plan } = recorded(&setting, variant)?;
    first_wrong(&machine, &recorded, &Plan { e2fsck_every: 0, ..plan }, enough);
    Ok(())
}

/// Runs a variant for its cuts.
fn recorded(setting: &Setting, variant: &str) -> Result<Cuttable, LabError> {
    let scenario = &setting.scenario;
    let wrong = |why: ScenarioError| why.of(scenario);
    let Some(variant) = scenario.variants.iter().find(|v| v.name == variant) else {
        let known: Vec<_> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
        let known = known.join(", ");
        return Err(wrong(ScenarioError::NoVariant { name: variant.to_owned(), known }));
    };
    if variant.is_cut_in_real_time() {
        return Err(wrong(ScenarioError::NotReproducible(variant.name.clone())));
    }
    let of = Subject { setting, variant };
    let cut = setting.loads.iter().find_map(|load| load.recorded(of));
    let Some(cut) = cut else {
        return Err(wrong(ScenarioError::NothingCut(variant.name.clone())));
    };
    cut.map_err(|e| e.of(variant))
}
