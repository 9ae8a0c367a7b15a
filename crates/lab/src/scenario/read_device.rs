//! `[device.NAME]`: a kind of device with what differs from its defaults, and its driver.

use std::path::PathBuf;
use std::time::Duration;

use steadfast_devices::model::parameters::ModelKind;
use steadfast_devices::model::{KINDS, ModelError, ModelParams};
use steadfast_setup::{DeviceSource, DriverCost, Namespace};
use toml::de::ValueDeserializer;

use super::fields::{Fields, note};
use super::keys::{self, Table};
use super::read::number;
use super::wrong::did_you_mean;

/// A device: a path, or a kind and what differs from the kind's defaults.
pub(super) fn device(fields: &Fields<'_, '_>) -> Option<DeviceSource> {
    if fields.value("path").is_some() {
        return path(fields).map(DeviceSource::Path);
    }
    if fields.value("kind").is_none() {
        let help = "a model (lab devices lists the kinds), or a file or device of this machine";
        fields.wrong("", "`kind` or `path` is missing", help);
        return None;
    }
    model(fields).map(DeviceSource::Model)
}

/// A device of this machine has no key that is for models.
fn path(fields: &Fields<'_, '_>) -> Option<PathBuf> {
    let path: String = fields.take("path")?;
    let known = ["path", "fault"];
    let mut good = !path.is_empty();
    if !good {
        fields.wrong("path", "the path is empty", "");
    }
    for (key, _) in fields.all().filter(|(key, _)| !known.contains(&&**key.get_ref())) {
        let what = format!("`{}` is not for a device with `path`", key.get_ref());
        fields.wrong(key.get_ref(), what, "it is what it is: leave it out, or take a `kind`");
        good = false;
    }
    good.then(|| PathBuf::from(path))
}

fn model(fields: &Fields<'_, '_>) -> Option<ModelParams> {
    let name: String = fields.take("kind")?;
    let Some(kind) = ModelKind::of_name(&name) else {
        let kinds = KINDS.iter().map(|k| k.name);
        let help = did_you_mean(&name, kinds);
        fields.wrong("kind", format!("there is no kind of device `{name}`"), help);
        return None;
    };
    let parameters = kind.parameters.iter().map(|p| p.name);
    let keys = keys::of(Table::Device).map(|k| k.name);
    fields.unknown(keys.chain(parameters));
    let mut params = (kind.default)();
    let mut all_read = true;
    for (key, value) in fields.all().filter(|(key, _)| is_parameter(key.get_ref())) {
        let read = params.set(key.get_ref(), ValueDeserializer::from(value.clone()));
        if let Some(Err(e)) = read {
            note(fields.wrongs(), e.span().unwrap_or(value.span()), e.message());
            all_read = false;
        }
    }
    // Of what could not be read the default is looked at, so that the rest is reported too.
    let sensible = params_make_sense(fields, params.clone());
    (all_read && sensible).then_some(params)
}

/// Notes every parameter that the model refuses: each is put back to its default to see the next.
fn params_make_sense(fields: &Fields<'_, '_>, mut params: ModelParams) -> bool {
    let mut sensible = true;
    for _ in 0..params.kind().parameters.len() {
        let Err(e) = params.check() else { break };
        sensible = false;
        let ModelError::Parameter { name, why, value, .. } = &e else {
            fields.wrong("kind", e.to_string(), "");
            break;
        };
        // `seek_read_*`: of several together.
        let stem = name.trim_end_matches('*');
        let given: Vec<String> = fields
            .all()
            .map(|(key, _)| key.get_ref().to_string())
            .filter(|key| key == name || name.ends_with('*') && key.starts_with(stem))
            .collect();
        let place = given.first().map_or("kind", String::as_str);
        fields.wrong(place, format!("{name} = {value}: {why}"), "");
        if given.is_empty() {
            break;
        }
        given.iter().for_each(|key| params.reset(key));
    }
    sensible
}

/// Whether a key of a device's table is the kind's, and not one that all devices have.
fn is_parameter(key: &str) -> bool {
    keys::find(Table::Device, key).is_none()
}

/// What the driver of a device costs.
pub(super) fn driver(fields: &Fields<'_, '_>) -> Option<DriverCost> {
    let request_us = number(fields, "driver_us", 0.0, 1e6);
    let copies = fields.value("driver_mb_per_s").is_some();
    let rate = if copies { Some(number(fields, "driver_mb_per_s", 0.001, 1e9)?) } else { None };
    Some(DriverCost { request: Duration::from_secs_f64(request_us? / 1e6), copy_mb_per_s: rate })
}

/// How a device that is memory is used.
pub(super) fn namespace(fields: &Fields<'_, '_>) -> Option<Namespace> {
    let namespace: Namespace = fields.take("namespace")?;
    let kind: String = fields.take("kind")?;
    if ModelKind::of_name(&kind).is_some_and(|kind| !kind.is_memory) {
        let what = format!("a device of kind `{kind}` has no namespaces: it is not memory");
        let memory = KINDS.iter().filter(|kind| kind.is_memory);
        let memory: Vec<String> = memory.map(|kind| format!("`{}`", kind.name)).collect();
        fields.wrong("namespace", what, format!("they are for {}", memory.join(" and ")));
        return None;
    }
    let driver = ["driver_us", "driver_mb_per_s"].into_iter();
    if let Some(key) = driver.filter(|_| namespace == Namespace::Fsdax).find(|k| has(fields, k)) {
        let what = format!("`{key}` with `namespace = \"fsdax\"`: no driver is asked for a load");
        fields.wrong(key, what, "leave it out, or take the namespace `raw`");
        return None;
    }
    Some(namespace)
}

fn has(fields: &Fields<'_, '_>, key: &str) -> bool {
    fields.value(key).is_some()
}
