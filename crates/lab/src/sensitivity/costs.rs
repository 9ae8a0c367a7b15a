//! Changes of what dd's records and the drivers of devices cost the processor.

use std::time::Duration;

use steadfast_setup::{DriverCost, Machine};

use super::Change;
use super::changes::{machines, measured_devices, round};
use crate::scenario::Scenario;

/// A third less and a third more.
const FACTORS: [f64; 2] = [2.0 / 3.0, 4.0 / 3.0];

/// Of the machines: a figure that is the same in several is changed in all of them.
pub(super) fn of_dd(scenario: &Scenario) -> Vec<(Change, Scenario)> {
    type CostParameter = (&'static str, fn(&mut Machine) -> &mut f64);
    let costs: [CostParameter; 2] =
        [("dd_device_us", |m| &mut m.dd_device_us), ("dd_file_us", |m| &mut m.dd_file_us)];
    let mut list = Vec::new();
    for (parameter, cost) in costs {
        let mut known: Vec<f64> = Vec::new();
        for machine in machines(&mut scenario.clone()) {
            let us = *cost(machine);
            if us > 0.0 && !known.contains(&us) {
                known.push(us);
            }
        }
        for (us, factor) in known.into_iter().flat_map(|us| FACTORS.map(|f| (us, f))) {
            let mut changed = scenario.clone();
            for machine in machines(&mut changed) {
                let now = cost(machine);
                if *now == us {
                    *now = round(us * factor);
                }
            }
            let (from, to) = (us.to_string(), round(us * factor).to_string());
            let (part, parameter) = ("machine".into(), parameter.into());
            list.push((Change { part, parameter, from, to, of_journal: false }, changed));
        }
    }
    list
}

/// Of the drivers of devices that are measured.
pub(super) fn of_drivers(scenario: &Scenario) -> Vec<(Change, Scenario)> {
    let mut list = Vec::new();
    for name in measured_devices(scenario) {
        let cost = &scenario.topology.devices[&name].driver;
        let us = cost.request.as_secs_f64() * 1e6;
        let rate = cost.copy_mb_per_s;
        for factor in FACTORS {
            let request =
                DriverCost { request: Duration::from_secs_f64(round(us * factor) / 1e6), ..*cost };
            let copy = DriverCost { copy_mb_per_s: rate.map(|r| round(r * factor)), ..*cost };
            let both = [("driver_us", Some(us), request), ("driver_mb_per_s", rate, copy)];
            for (parameter, from, to) in both {
                let Some(from) = from.filter(|from| *from > 0.0) else { continue };
                let mut changed = scenario.clone();
                if let Some(device) = changed.topology.devices.get_mut(&name) {
                    device.driver = to;
                }
                let change = Change {
                    part: name.clone(),
                    parameter: parameter.into(),
                    from: round(from).to_string(),
                    to: round(from * factor).to_string(),
                    of_journal: false,
                };
                list.push((change, changed));
            }
        }
    }
    list
}
