//! Changes of what dd's records and the drivers of devices cost the processor.

use std::time::Duration;

use steadfast_setup::{DriverCost, Machine};

use super::Change;
use super::changes::{edited, machines, measured_devices, round};
use crate::results::distinct;
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
                let change = Change::new(&name, parameter, round(from), round(from * factor));
                list.push(edited(scenario, change, |s| {
                    s.topology.devices.entry(name.clone()).and_modify(|device| device.driver = to);
                }));
            }
        }
    }
    list
}
