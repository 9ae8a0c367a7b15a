//! One crash state of a variant, reproduced: the same seed, the same run, the same state.

use steadfast_crash::explore::{Reproduced, reproduce};

use super::controls::{Control, control_plan};
use super::load::Cuttable;
use super::{RunOptions, Setting};
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
) -> Result<Reproduced, LabError> {
    let setting = Setting::new(scenario, options)?;
    let wrong = |why: ScenarioError| why.of(scenario);
    let Some(variant) = scenario.variants.iter().find(|v| v.name == variant) else {
        let known: Vec<_> = scenario.variants.iter().map(|v| v.name.as_str()).collect();
        let known = known.join(", ");
        return Err(wrong(ScenarioError::NoVariant { name: variant.to_owned(), known }));
    };
    if variant.kernel.is_some() {
        return Err(wrong(ScenarioError::NotReproducible(variant.name.clone())));
    }
    let cut = setting.loads.iter().find_map(|load| load.recorded(&setting, variant));
    let Some(cut) = cut else {
        return Err(wrong(ScenarioError::NothingCut(variant.name.clone())));
    };
    let Cuttable { machine, recorded, plan: honest } = cut.map_err(|e| e.of(variant))?;
    let (recorded, plan) = match control {
        None => (recorded, honest),
        Some(control) => match control.of(&recorded) {
            Some(changed) => (changed, control_plan(&setting, honest.cuts())),
            None => {
                return Err(wrong(ScenarioError::NoControl(variant.name.clone())));
            }
        },
    };
    let cuts = plan.cuts();
    reproduce(&machine, recorded, &plan, number)
        .ok_or_else(|| wrong(ScenarioError::NoCut { number, cuts }))
}
