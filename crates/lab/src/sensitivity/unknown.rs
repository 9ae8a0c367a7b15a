//! What a scenario's `[band]` says that the source leaves unknown: other values, each as a change.

use super::change::Change;
use super::drives::drive;
use crate::scenario::{Band, ParameterValue, Scenario};

/// Another value of something that is unknown.
pub(crate) struct Alternative {
    /// What is changed.
    pub change: Change,
    edit: Box<Edit>,
}

type Edit = dyn Fn(&Scenario) -> Option<Scenario>;

impl Alternative {
    fn new(
        (part, parameter): (&str, &str),
        (from, to): (String, String),
        edit: impl Fn(&Scenario) -> Option<Scenario> + 'static,
    ) -> Alternative {
        Alternative { change: Change::new(part, parameter, from, to), edit: Box::new(edit) }
    }

    /// The scenario with it. `None`: it is so already.
    pub fn of(&self, scenario: &Scenario) -> Option<Scenario> {
        (self.edit)(scenario).filter(|changed| changed != scenario)
    }
}

/// Of each unknown its alternatives, in the order in which they are combined: a drive before its
/// parameters, which would be the drive's again.
pub(crate) fn alternatives(scenario: &Scenario) -> Vec<Vec<Alternative>> {
    let Some(band) = &scenario.band else { return Vec::new() };
    let mut all = vec![drives(band), schedulers(scenario, band)];
    for (device, lists) in &band.parameters {
        for (key, values) in lists {
            let now = scenario.parameter(device, key).unwrap_or_else(|| "none".into());
            let of = |value: &ParameterValue| {
                let named = (now.clone(), value.to_string());
                let (value, place) = (value.clone(), (device.clone(), key.clone()));
                Alternative::new((device, key), named, move |scenario| {
                    let mut changed = scenario.clone();
                    value.set(changed.topology.devices.get_mut(&place.0)?, &place.1).ok()?;
                    Some(changed)
                })
            };
            all.push(values.iter().map(of).collect());
        }
    }
    for (name, options) in &band.mount {
        let variant = scenario.variants.iter().position(|v| v.name == *name);
        let Some((variant, own)) =
            variant.map(|at| (at, scenario.variants[at].stack.mount.clone()))
        else {
            continue;
        };
        let of = |mount: &String| {
            let (to, named) = (mount.clone(), (own.clone(), mount.clone()));
            Alternative::new((name, "mount"), named, move |scenario| {
                let mut changed = scenario.clone();
                changed.variants[variant].stack.mount.clone_from(&to);
                Some(changed)
            })
        };
        all.push(options.iter().map(of).collect());
    }
    all
}

fn drives(band: &Band) -> Vec<Alternative> {
    let (device, drives) = (band.device.clone().unwrap_or_default(), band.drives.iter());
    let of = |name: &String| {
        let (place, drive) = (device.clone(), drive(name)?);
        let named = ("the scenario's".to_owned(), name.clone());
        let edit = move |scenario: &Scenario| drive.in_place_of(&place, scenario);
        Some(Alternative::new((&device, "drive"), named, edit))
    };
    drives.filter_map(of).collect()
}

fn schedulers(scenario: &Scenario, band: &Band) -> Vec<Alternative> {
    let measured = scenario.variants.iter().find(|v| v.run.speed());
    let now = measured.and_then(|v| v.stack.scheduler.clone()).unwrap_or_else(|| "none".into());
    let of = |name: &String| {
        let (name, named) = (name.clone(), (now.clone(), name.clone()));
        Alternative::new(("machine", "scheduler"), named, move |scenario| {
            let mut changed = scenario.clone();
            let ours = changed.variants.iter_mut().filter(|v| v.kernel.is_none());
            ours.for_each(|v| v.stack.scheduler = Some(name.clone()));
            Some(changed)
        })
    };
    band.schedulers.iter().map(of).collect()
}
