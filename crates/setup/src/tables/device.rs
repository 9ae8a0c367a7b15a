//! `[device.NAME]`: a kind of device with what differs from its defaults, or a path; its driver,
//! its use as memory, and what goes wrong with it.

use std::path::PathBuf;
use std::time::Duration;

use steadfast_devices::filter::FaultRule;
use steadfast_devices::filter::record::Media;
use steadfast_devices::model::parameters::ModelKind;
use steadfast_devices::model::{KINDS, ModelError, ModelParams};

use crate::form::{Fields, FormValue, Value, one_of};
use crate::path::memory::file;
use crate::presets;
use crate::{DeviceSource, DeviceSpec, DriverCost, Namespace, single_values, table};

table! {
    /// The keys that all kinds of devices have; the others are the parameters of the kind.
    pub struct DeviceForm: "[device.NAME]" {
        /// Kind of device, as `steadfast lab devices` lists them. Beside it any of the kind's
        /// parameters that differ from its defaults.
        kind: Option<String>, else "`preset` or `path`";
        /// A common device instead of a kind, as `nvme` (`steadfast lab scenario --presets`).
        /// Beside it any parameters that differ.
        preset: Option<String>, else "`kind`";
        /// A file, a block device, a range of memory (`pmem:PATH`) or a volume (`volume:A,B`) of
        /// this machine instead of a model: for `lab run --real`, `mount --stack`, and `dd`,
        /// `iozone` and `hdparm` with `--stack --real-time`. It is meant from the folder of this
        /// file. What it holds is overwritten with `--destroy` only.
        path: Option<PathBuf>, else "`kind`";
        /// Processor time that its driver takes for a request, in us.
        driver_us: f64 = 0.0, from 0 to 1000000;
        /// Rate in MB/s at which the driver copies them: of a RAM disk.
        driver_mb_per_s: Option<f64>, else "the device moves its data", from 0.001 to 1000000000;
        /// How a device that is memory (`nvdimm`, `ram`) is used: `fsdax`, files in place with
        /// `mount = "dax=always"`; `raw`, blocks only; `sector`, blocks that do not tear
        /// (docs/memory.md).
        namespace: Namespace = "fsdax";
        /// Table: requests that it does not answer well, from the mount on.
        fault: Option<FaultRule>, else "none";
        /// What a power cut does to it, as `crash run --media`: `sectors`, `whole`, `words`,
        /// `garbage`, `unreadable`, `neighbours`, `fifo`, `barrier`, `erase-block`, `mapping`; of
        /// the last three a size in KiB may follow, as `mapping=64` (docs/risk.md).
        media: Media = "sectors";
    }
}

single_values!(Namespace);

fn kind_of(place: &FormValue<'_>) -> Option<&'static ModelKind> {
    let all: Vec<(&str, &'static ModelKind)> = KINDS.iter().map(|k| (k.name, k)).collect();
    one_of(place, "there is no kind of device", &all)
}

impl Value for DeviceSpec {
    const TITLE: Option<&'static str> = Some(DeviceForm::TITLE);

    fn read(place: &FormValue<'_>) -> Option<Self> {
        let fields = place.fields(DeviceForm::TITLE)?;
        let form = DeviceForm::take(&fields);
        let of_model = |start| model(&fields, start).map(|m| DeviceSource::Model(Box::new(m)));
        let source = match (fields.has("path"), fields.at("preset"), fields.at("kind")) {
            (true, ..) => path(&fields).map(DeviceSource::Path),
            (false, Some(preset), None) => of_model(presets::of(&preset)?),
            (false, Some(_), Some(_)) => {
                fields.wrong("kind", "the preset has a kind", "leave one of them out");
                None
            }
            (false, None, Some(kind)) => of_model((kind_of(&kind)?.default)()),
            (false, None, None) => {
                let help = "a model (lab devices lists the kinds), or a file or device of this \
                            machine";
                fields.wrong("", "`kind`, `preset` or `path` is missing", help);
                None
            }
        };
        let (form, source) = (form?, source?);
        let request = Duration::from_secs_f64(form.driver_us / 1e6);
        Some(DeviceSpec {
            source,
            driver: DriverCost { request, copy_mb_per_s: form.driver_mb_per_s },
            namespace: form.namespace,
            faults: form.fault.into_iter().collect(),
            media: form.media,
        })
    }
}

/// A device of this machine has no key that is for models.
fn path(fields: &Fields<'_>) -> Option<PathBuf> {
    let path: PathBuf = fields.get("path")?;
    if file(&path).as_os_str().is_empty() {
        fields.wrong("path", "the path is empty", "");
    }
    for (key, place) in fields.each().filter(|(key, _)| !["path", "fault"].contains(key)) {
        let what = format!("`{key}` is not for a device with `path`");
        place.wrong(what, "it is what it is: leave it out, or take a `kind`");
    }
    Some(path)
}

/// The model with these parameters, but for those that are given.
fn model(fields: &Fields<'_>, mut params: ModelParams) -> Option<ModelParams> {
    let own = || DeviceForm::KEYS.iter().map(|key| key.name);
    let kind = params.kind();
    namespace(fields, kind);
    fields.only_named(own().chain(kind.parameters.iter().map(|p| p.name)));
    let mut all_read = true;
    for (key, place) in fields.each().filter(|(key, _)| !own().any(|own| own == *key)) {
        let set = params.set(key, place.deserializer());
        if let Some(Err(e)) = set {
            place.note(&e);
            all_read = false;
        }
    }
    // Of what could not be read the default is looked at, so that the rest is reported too.
    params_make_sense(fields, params.clone());
    all_read.then_some(params)
}

/// Notes every parameter that the model refuses: each is put back to its default to see the next.
fn params_make_sense(fields: &Fields<'_>, mut params: ModelParams) {
    for _ in 0..params.kind().parameters.len() {
        let Err(e) = params.check() else { break };
        let ModelError::Parameter { name, why, value, .. } = &e else {
            return fields.wrong("kind", e.to_string(), "");
        };
        // `seek_read_*`: of several together.
        let stem = name.trim_end_matches('*');
        let is_it = |key: &&str| key == name || name.ends_with('*') && key.starts_with(stem);
        let given: Vec<&str> = fields.each().map(|(key, _)| key).filter(is_it).collect();
        let place = given.first().copied().unwrap_or("kind");
        fields.wrong(place, format!("{name} = {value}: {why}"), "");
        if given.is_empty() {
            break;
        }
        given.iter().for_each(|key| params.reset(key));
    }
}

/// Notes a namespace of what is no memory, and a driver where none is asked.
fn namespace(fields: &Fields<'_>, kind: &ModelKind) {
    let Some(namespace) = fields.get::<Namespace>("namespace") else { return };
    if !kind.is_memory {
        let what = format!("a device of kind `{}` has no namespaces: it is not memory", kind.name);
        let memory = KINDS.iter().filter(|kind| kind.is_memory);
        let memory: Vec<String> = memory.map(|kind| format!("`{}`", kind.name)).collect();
        fields.wrong("namespace", what, format!("they are for {}", memory.join(" and ")));
        return;
    }
    let driver = ["driver_us", "driver_mb_per_s"].into_iter();
    if let Some(key) = driver.filter(|_| namespace == Namespace::Fsdax).find(|k| fields.has(k)) {
        let what = format!("`{key}` with `namespace = \"fsdax\"`: no driver is asked for a load");
        fields.wrong(key, what, "leave it out, or take the namespace `raw`");
    }
}
