//! `[band]` of a scenario file: what the source leaves unknown of what it measured.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use steadfast_setup::form::{Fields, FormValue, did_you_mean};
use steadfast_setup::{DeviceSource, DeviceSpec, options, single_values, table};

use super::variant::Variant;
use crate::sensitivity::{drive, drives};

/// Combinations, at most: each is a run.
const COMBINATIONS_MAX: usize = 1000;

table! {
    /// What the source leaves unknown. `lab run --band` measures every combination; the first is
    /// the scenario as it is, with the values of its other tables.
    pub struct Band: "[band]", check Band::check {
        /// The device of which the source names no model.
        device: Option<String>, else "no drive is unknown";
        /// Names of drives that it may have been (`steadfast lab drives`); `lab sensitivity` puts
        /// each in its place, too.
        drives: Vec<String> = [];
        /// Tables by device: of each parameter a list of other values that it may have had.
        parameters: BTreeMap<String, ParameterLists>, else "none";
        /// Names of `[scheduler.NAME]` that may have been in front of the disks.
        schedulers: Vec<String> = [];
        /// Table: by variant a list of other mount options that it may have had.
        mount: BTreeMap<String, Vec<String>>, else "none";
        /// Names of the variants that the source measured, with what it compares them with.
        variants: Vec<String> = [];
        /// Tests whose published figures a combination has to fit; the range of the others is over
        /// those that do.
        fit: Vec<String> = [];
        /// How near a speed has to come, in per cent.
        fit_percent: f64 = 10.0, above 0 to 100;
    }
}

/// Lists of values of a device's parameters.
pub type ParameterLists = BTreeMap<String, Vec<ParameterValue>>;

/// A value of a parameter: a number or a word.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct ParameterValue(serde_json::Value);

single_values!(ParameterValue);

impl From<f64> for ParameterValue {
    fn from(number: f64) -> ParameterValue {
        ParameterValue(number.into())
    }
}

impl std::fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_str() {
            Some(word) => f.write_str(word),
            None => write!(f, "{}", self.0),
        }
    }
}

impl ParameterValue {
    /// Gives a device's parameter the value, or its driver's.
    pub(crate) fn set(&self, device: &mut DeviceSpec, key: &str) -> Result<(), String> {
        let cost = || match self.0.as_f64() {
            Some(cost) if (0.0..=1e9).contains(&cost) => Ok(cost),
            _ => Err("it is a number from 0 to 1e9".to_owned()),
        };
        match (key, &mut device.source) {
            ("driver_us", _) => device.driver.request = Duration::from_secs_f64(cost()? / 1e6),
            ("driver_mb_per_s", _) => device.driver.copy_mb_per_s = Some(cost()?.max(1e-3)),
            (_, DeviceSource::Model(model)) => {
                let set = model.set(key, &self.0).ok_or("its kind has no such parameter")?;
                set.map_err(|e| e.to_string())?;
            }
            (_, DeviceSource::Path(_)) => return Err("a device with a path has none".into()),
        }
        Ok(())
    }
}

impl Band {
    fn check(fields: &Fields<'_>, _: Option<&Band>) {
        let names: Vec<String> = fields.get("drives").unwrap_or_default();
        for name in names.iter().filter(|name| drive(name).is_none()) {
            let help = did_you_mean(name, drives().map(|drive| drive.name));
            fields.wrong_word("drives", name, format!("there is no drive `{name}`: {help}"));
        }
        if fields.has("drives") != fields.has("device") {
            fields.wrong("", "`device` and `drives` belong together", "give both or neither");
        }
        for key in ["drives", "schedulers", "variants", "fit"] {
            if fields.get::<Vec<String>>(key).is_some_and(|l| l.is_empty() && fields.has(key)) {
                fields.wrong(key, format!("`{key}` is empty"), "leave it out, or name some");
            }
        }
        if fields.get::<Vec<String>>("variants").is_some_and(|names| names.len() == 1) {
            let help = "name the source's variants and the one that they are compared with";
            fields.wrong("variants", "`variants` names one", help);
        }
        if !["drives", "parameters", "schedulers", "mount"].iter().any(|key| fields.has(key)) {
            fields.wrong("", "it says nothing that is unknown", "name it, or leave [band] out");
        }
    }

    /// How many combinations it has, at most.
    fn combinations(fields: &Fields<'_>) -> usize {
        let len = |table: &Fields<'_>, key: &str| {
            table.get::<Vec<ParameterValue>>(key).map_or(0, |values| values.len())
        };
        let tables = fields.tables_by_name("parameters").into_iter().map(|(_, device)| device);
        let alternatives = tables.chain(fields.table("mount")).map(|table| {
            table.each().map(|(key, _)| 1 + len(&table, key)).fold(1, usize::saturating_mul)
        });
        let (drives, schedulers) = (len(fields, "drives").max(1), 1 + len(fields, "schedulers"));
        let all = alternatives.chain([drives, schedulers]);
        all.fold(1, usize::saturating_mul)
    }

    /// Notes what is not there, or not so.
    pub(super) fn check_names(top: &Fields<'_>, variants: &[String], tests: &[String]) {
        let Some(fields) = top.table("band") else { return };
        let combinations = Band::combinations(&fields);
        if combinations > COMBINATIONS_MAX {
            let what =
                format!("it has {combinations} combinations, at most {COMBINATIONS_MAX} are run");
            fields.wrong("", what, "name fewer values");
        }
        let (devices, schedulers) = (top.names("device"), top.names("scheduler"));
        if let Some(name) = fields.get("device").filter(|name| !devices.contains(name)) {
            let help = did_you_mean(&name, devices.iter().map(String::as_str));
            fields.wrong("device", format!("there is no device `{name}`"), help);
        }
        let of_speed = |name: &String| {
            top.get::<Vec<Variant>>("variant")
                .is_none_or(|all| all.iter().any(|v| v.name == *name && v.run.speed()))
        };
        let named: Vec<String> = fields.get("variants").unwrap_or_default();
        for name in named.iter().filter(|name| variants.contains(name) && !of_speed(name)) {
            let what = format!("the speed of `{name}` is not measured: its `run` is \"risk\"");
            fields.wrong_word("variants", name, what);
        }
        let lists = [("schedulers", &schedulers[..]), ("variants", variants), ("fit", tests)];
        for (key, known) in lists {
            let names: Vec<String> = fields.get(key).unwrap_or_default();
            for name in names.iter().filter(|name| !known.contains(name)) {
                let help = did_you_mean(name, known.iter().map(String::as_str));
                fields.wrong_word(key, name, format!("there is no `{name}`: {help}"));
            }
        }
        for (name, place, table) in entries(&fields, "mount") {
            let lists: Vec<String> = table.get(&name).unwrap_or_default();
            let wrong = lists.iter().find_map(|text| options::mount(text).err());
            match (variants.contains(&name), wrong) {
                (false, _) => {
                    let help = did_you_mean(&name, variants.iter().map(String::as_str));
                    place.wrong_name(format!("there is no variant `{name}`"), help);
                }
                (true, Some(e)) => place.wrong(e.to_string(), ""),
                (true, None) if lists.is_empty() => place.wrong("it is empty", "name some"),
                _ => {}
            }
        }
        for (name, place, table) in entries(&fields, "parameters") {
            match top.table("device").and_then(|device| device.get::<DeviceSpec>(&name)) {
                Some(device) => check_parameters(&table, &name, &device),
                None => {
                    let help = did_you_mean(&name, devices.iter().map(String::as_str));
                    place.wrong_name(format!("there is no device `{name}`"), help);
                }
            }
        }
    }
}

/// The entries of a table: name, value, and the table that has it.
fn entries<'t>(fields: &Fields<'t>, key: &str) -> Vec<(String, FormValue<'t>, Fields<'t>)> {
    let Some(table) = fields.table(key) else { return Vec::new() };
    let entry = |name: String| Some((name.clone(), table.at(&name)?, fields.table(key)?));
    fields.names(key).into_iter().filter_map(entry).collect()
}

/// Notes parameters that a device has not, and values that they cannot have.
fn check_parameters(band: &Fields<'_>, name: &str, device: &DeviceSpec) {
    let Some(fields) = band.table(name) else { return };
    for (key, place) in fields.each() {
        let values: Vec<ParameterValue> = fields.get(key).unwrap_or_default();
        let wrong = values.iter().find_map(|value| {
            let refused = value.set(&mut device.clone(), key).err()?;
            Some(format!("`{key}` = {value}: {refused}"))
        });
        match wrong {
            Some(why) => place.wrong(why, ""),
            None if values.is_empty() => place.wrong("it is empty", "name some"),
            None => {}
        }
    }
}
