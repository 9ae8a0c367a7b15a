//! One crash state of a variant, reproduced: the same seed, the same run, the same state.

use steadfast_crash::explore::{Reproduced, reproduce};

use super::controls::{Control, control_plan};
use super::load::Cuttable;
use super::{RunOptions, Setting};
use crate::LabError;
use crate::scenario::Scenario;

/// Makes the cut `number` of a variant again, as [`run`](super::run()) makes it with the same
/// options; with `control`: of that control's.
///
/// # Errors
/// No such variant or cut; a file system of the kernel, which lives in real time and does nothing
/// twice; and what a run may fail with.
pub fn cut_again(
    scenario: &Scenario,
    options: &RunOptions,
    variant: &str,
    number: u64,
    control: Option<Control>,
) -> Result<Reproduced, LabError> {
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
    let cut = setting.loads.iter().find_map(|load| load.recorded(&setting, variant));
    let Some(cut) = cut else {
        return Err(wrong(format!("'{}' runs nothing that is cut", variant.name)));
    };
    let Cuttable { machine, recorded, plan: honest } = cut.map_err(failed)?;
    let (recorded, plan) = match control {
        None => (recorded, honest),
        Some(control) => match control.of(&recorded) {
            Some(changed) => (changed, control_plan(&setting, honest.cuts())),
            None => {
                return Err(wrong(format!(
                    "'{}' has no honest device with a volatile cache: it has no such control",
                    variant.name
                )));
            }
        },
    };
    let cuts = plan.cuts();
    reproduce(&machine, recorded, &plan, number)
        .ok_or_else(|| wrong(format!("there is no cut {number}: {cuts} are made, from 0 on")))
}
