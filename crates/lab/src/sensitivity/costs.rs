//! Changes of what dd's records and the drivers of devices cost the processor.

use steadfast_setup::Machine;

use super::change::Change;
use super::changes::{edited, machines, measured_devices, round};
use crate::results::distinct;
use crate::scenario::{ParameterValue, Scenario};

/// A third less and a third more.
const FACTORS: [f64; 2] = [2.0 / 3.0, 4.0 / 3.0];

/// Of the machines: a figure that is the same in several is changed in all of them.
pub(super) fn of_dd(scenario: &Scenario) -> Vec<(Change, Scenario)> {
    type CostParameter = (&'static str, fn(&mut Machine) -> &mut f64);
    let costs: [CostParameter; 2] =
        [("dd_device_us", |m| &mut m.dd_device_us), ("dd_file_us", |m| &mut m.dd_file_us)];
    let mut list = Vec::new();
    for (parameter, cost) in costs {
        let known = distinct(machines(&mut scenario.clone()).map(|machine| *cost(machine)));
        let known = known.into_iter().filter(|us| *us > 0.0);
        for (us, factor) in known.flat_map(|us| FACTORS.map(|f| (us, f))) {
            let to = round(us * factor);
            list.push(edited(scenario, Change::new("machine", parameter, us, to), |s| {
                machines(s).map(cost).filter(|now| **now == us).for_each(|now| *now = to);
            }));
        }
    }
    list
}

/// Of the drivers of devices that are measured.
pub(super) fn of_drivers(scenario: &Scenario) -> Vec<(Change, Scenario)> {
    let mut list = Vec::new();
    for name in measured_devices(scenario) {
        for key in ["driver_us", "driver_mb_per_s"] {
            let now = scenario.parameter(&name, key).and_then(|now| now.parse::<f64>().ok());
            let Some(now) = now.filter(|now| *now > 0.0) else { continue };
            for to in FACTORS.map(|factor| round(now * factor)) {
                list.push(edited(scenario, Change::new(&name, key, now, to), |s| {
                    let device = s.topology.devices.entry(name.clone());
                    // OK to ignore: any number can be set.
                    device.and_modify(|device| drop(ParameterValue::from(to).set(device, key)));
                }));
            }
        }
    }
    list
}
