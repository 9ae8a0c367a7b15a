//! From the text of a scenario file to a [`Scenario`], or to all that is wrong with it.

use std::collections::BTreeMap;

use steadfast_devices::model::parameters::Kind;
use steadfast_devices::model::{ModelError, ModelParams};
use steadfast_peers::KernelFs;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::fields::{Fields, Wrongs, note};
use super::keys::{self, Table};
use super::wrong::{Wrong, did_you_mean};
use super::{Band, FilesSpec, Machine, Published, RunKind, Scenario, Source, Variant, Workload};
use crate::run::{iozone_options, test_names};
use crate::sensitivity::{drive, drives};
use crate::size;
use crate::stack;

/// The layouts that are read.
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=2;

/// Reads a scenario.
pub fn scenario(text: &str) -> Result<Scenario, Vec<Wrong>> {
    let wrongs = Wrongs::none_in(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for e in &errors {
        let at = e.span().unwrap_or(0..0);
        wrongs.add(at, e.message(), "a scenario file is TOML: see https://toml.io");
    }
    // What a broken line was meant to say is missing below: only the line is told then.
    let top = (errors.is_empty())
        .then(|| Fields::new(Table::Top, "the file".into(), table.get_ref(), 0..0, &wrongs));
    let read = top.and_then(|top| whole(&top));
    match (wrongs.take(), read) {
        (none, Some(scenario)) if none.is_empty() => Ok(scenario),
        (some, _) => Err(some),
    }
}

fn whole(top: &Fields<'_, '_>) -> Option<Scenario> {
    let version: Option<u32> = top.take("version");
    if let Some(n) = version.filter(|n| !VERSIONS.contains(n)) {
        let (first, last) = (VERSIONS.start(), VERSIONS.end());
        top.wrong(
            "version",
            format!("version {n} is not known"),
            format!("known: {first} to {last}"),
        );
    }
    let name: Option<String> = top.take("name");
    if let Some(name) = name.as_ref().filter(|n| !is_name(n)) {
        let what = format!("`{name}` is no name");
        top.wrong("name", what, "letters, digits, - and _: reports are named after it");
    }
    let (title, about) = (top.take("title"), top.take("about"));
    let source = source(top);
    let machine = machine(top);
    let devices: BTreeMap<String, Option<ModelParams>> = top
        .tables_by_name("device", Table::Device)
        .into_iter()
        .map(|(name, fields)| (name, device(&fields)))
        .collect();
    let workload = top.table("workload", Table::Workload, "[workload]").and_then(|w| workload(&w));
    let with_files = top.value("workload").and_then(|w| w.get_ref().get("files")).is_some();
    let (names, variants) = variants(top, &devices, with_files);
    if let (Some(workload), Some(variants)) = (&workload, &variants)
        && workload.peers_size.is_none()
        && variants.iter().any(|v| v.run == RunKind::Peer)
    {
        let help = "of the runs with --peers: in real time, so take a small one";
        top.wrong("workload", "`peers_size` is missing: a variant has `kernel`", help);
    }
    let published = published(top, &names);
    let band = band(top, &devices);
    if source.is_none() && top.value("published").is_some() && top.value("source").is_none() {
        let help = "add [source] with title, author, year and address";
        top.wrong("published", "published figures need their source", help);
    }
    Some(Scenario {
        version: version?,
        name: name?,
        title: title?,
        about: about?,
        source,
        machine: machine?,
        workload: workload?,
        devices: devices.into_iter().map(|(name, d)| Some((name, d?))).collect::<Option<_>>()?,
        variants: variants?,
        published: published?,
        band,
    })
}

/// The drives that a device may have been, all of them known.
fn band(top: &Fields<'_, '_>, devices: &BTreeMap<String, Option<ModelParams>>) -> Option<Band> {
    top.value("band")?;
    let fields = top.table("band", Table::Band, "[band]")?;
    let device: Option<String> = fields.take("device");
    if let Some(name) = device.as_ref().filter(|name| !devices.contains_key(*name)) {
        let help = did_you_mean(name, devices.keys().map(String::as_str));
        fields.wrong("device", format!("there is no device `{name}`"), help);
    }
    let names: Option<Vec<String>> = fields.take("drives");
    for name in names.iter().flatten().filter(|name| drive(name).is_none()) {
        let help = did_you_mean(name, drives().map(|d| d.name));
        fields.wrong("drives", format!("there is no drive `{name}`"), help);
    }
    Some(Band { device: device?, drives: names? })
}

/// The sizes of a benchmark's runs.
const SIZES: [&str; 3] = ["quick_size", "risk_size", "peers_size"];

/// More cuts than anybody waits for, and fewer than memory holds.
pub(super) const CUTS_MAX: u64 = 1_000_000;

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

/// A table; in version 1 a text.
fn source(top: &Fields<'_, '_>) -> Option<Source> {
    let DeValue::String(text) = top.value("source")?.get_ref() else {
        let fields = top.table("source", Table::Source, "[source]")?;
        let year = match fields.value("year").map(Spanned::get_ref) {
            Some(DeValue::String(text)) => Some(text.to_string()),
            _ => fields.take::<u32>("year").map(|year| year.to_string()),
        };
        let (title, author) = (fields.take("title"), fields.take("author"));
        let address = fields.take("address");
        return Some(Source { title: title?, author, year, address });
    };
    if top.take::<u32>("version") != Some(1) {
        let help = "write a table: [source] with title, author, year and address";
        top.wrong("source", "`source` is a text only in version 1", help);
    }
    Some(Source { title: text.to_string(), author: None, year: None, address: None })
}

fn machine(top: &Fields<'_, '_>) -> Option<Machine> {
    let none = DeTable::new();
    let fields = match top.value("machine") {
        Some(_) => top.table("machine", Table::Machine, "[machine]")?,
        None => Fields::new(Table::Machine, "[machine]".into(), &none, 0..0, top.wrongs()),
    };
    let cpus: Option<usize> = fields.take("cpus");
    within(&fields, "cpus", cpus.map(|n| n as f64), 1.0, 1024.0);
    let share: Option<f64> = fields.take("page_cache_per_data");
    if share.is_some_and(|share| !(share > 0.0 && share <= 100.0)) {
        fields.wrong("page_cache_per_data", "it must be above 0 and at most 100", "");
    }
    let window = count(&fields, "file_window_mb", 1, 128);
    Some(Machine { cpus: cpus?, page_cache_per_data: share?, file_window_mb: window? })
}

/// Notes a number that is not within these bounds.
fn within(fields: &Fields<'_, '_>, name: &str, value: Option<f64>, least: f64, most: f64) {
    if let Some(value) = value.filter(|v| !(least..=most).contains(v)) {
        fields.wrong(name, format!("`{name}` must be from {least} to {most}, not {value}"), "");
    }
}

/// A whole number within these bounds.
fn count(fields: &Fields<'_, '_>, name: &str, least: u64, most: u64) -> Option<u64> {
    let value: Option<u64> = fields.take(name);
    within(fields, name, value.map(|n| n as f64), least as f64, most as f64);
    value
}

/// A number within these bounds.
fn number(fields: &Fields<'_, '_>, name: &str, least: f64, most: f64) -> Option<f64> {
    let value: Option<f64> = fields.take(name);
    within(fields, name, value, least, most);
    value
}

/// A device: its kind, and what differs from the kind's defaults.
fn device(fields: &Fields<'_, '_>) -> Option<ModelParams> {
    let name: String = fields.take("kind")?;
    let Some(kind) = Kind::of_name(&name) else {
        let kinds = steadfast_devices::model::KINDS.iter().map(|k| k.name);
        let help = did_you_mean(&name, kinds);
        fields.wrong("kind", format!("there is no kind of device `{name}`"), help);
        return None;
    };
    let parameters = kind.parameters.iter().map(|p| p.name);
    let keys = keys::of(Table::Device).map(|k| k.name);
    fields.unknown(keys.chain(parameters));
    let mut params = (kind.default)();
    let mut all_read = true;
    for (key, value) in fields.all().filter(|(key, _)| key.get_ref() != "kind") {
        let read = params.set(key.get_ref(), ValueDeserializer::from(value.clone()));
        if let Some(Err(e)) = read {
            note(fields.wrongs(), e.span().unwrap_or(value.span()), e.message());
            all_read = false;
        }
    }
    // Of what could not be read the default is looked at, so that the rest is told too.
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

fn workload(fields: &Fields<'_, '_>) -> Option<Workload> {
    let line: Option<String> = fields.take("iozone");
    let files = fields.table("files", Table::Files, "workload.files").map(|f| files_spec(&f));
    match (fields.value("iozone"), fields.value("files")) {
        (None, None) => {
            fields.wrong("", "[workload] has neither `iozone` nor `files`", "a scenario runs one");
        }
        (Some(_), Some(_)) => {
            fields.wrong(
                "files",
                "[workload] has both `iozone` and `files`",
                "a scenario runs one",
            );
        }
        (Some(_), None) => {
            for name in
                ["quick_size", "risk_size"].into_iter().filter(|n| fields.value(n).is_none())
            {
                let what = format!("`{name}` is missing in [workload]");
                let text = keys::find(Table::Workload, name).map_or("", |k| k.text);
                fields.wrong("iozone", what, format!("`iozone` needs it: {text}"));
            }
        }
        (None, Some(_)) => {
            let not_for_files =
                ["quick_size", "risk_size", "quick_scales_disks", "peers_size", "peers_scale"];
            for name in not_for_files.into_iter().filter(|n| fields.value(n).is_some()) {
                fields.wrong(name, format!("`{name}` belongs to `iozone`, not to `files`"), "");
            }
        }
    }
    let sizes = SIZES.map(|name| size_of(fields, name));
    if let Some(line) = &line {
        match iozone_options(line, None) {
            Err(e) => fields.wrong("iozone", e, "IOzone's options: steadfast iozone -h"),
            // A good line may be none with a smaller size: a record no longer fits.
            Ok(_) => sizes_suit(fields, line, &sizes),
        }
    }
    let [quick_size, risk_size, peers_size] = sizes;
    let peers_scale = count(fields, "peers_scale", 1, 4096);
    let quick_scales_disks = fields.take("quick_scales_disks");
    let cuts = |name| count(fields, name, 0, CUTS_MAX);
    let optional = |name| fields.value(name).and_then(|_| cuts(name));
    let (quick_cuts, kernel_cuts) = (optional("quick_cuts"), optional("kernel_cuts"));
    let (cuts, loss_cuts) = (cuts("cuts"), cuts("loss_cuts"));
    let lying_cuts_per_4 = count(fields, "lying_cuts_per_4", 0, 1000);
    let speed_runs = count(fields, "speed_runs", 1, 1000);
    let speed_seconds = number(fields, "speed_seconds", 0.01, 3600.0);
    Some(Workload {
        iozone: line,
        quick_size,
        quick_scales_disks: quick_scales_disks?,
        risk_size,
        peers_size,
        peers_scale: peers_scale?,
        files: match files {
            Some(spec) => Some(spec?),
            None => None,
        },
        cuts: cuts?,
        quick_cuts,
        kernel_cuts,
        loss_cuts: loss_cuts?,
        speed_runs: speed_runs?,
        speed_seconds: speed_seconds?,
        lying_cuts_per_4: lying_cuts_per_4?,
    })
}

/// Notes the sizes with which the command line is none.
fn sizes_suit(fields: &Fields<'_, '_>, line: &str, sizes: &[Option<String>; 3]) {
    for (name, size) in SIZES.into_iter().zip(sizes) {
        if let Some(text) = size.as_ref().filter(|text| size::parse(text).is_ok())
            && let Err(e) = iozone_options(line, Some(text))
        {
            fields.wrong(name, e, "with the options of `iozone`");
        }
    }
}

/// A size in k, m, g, as IOzone takes it.
fn size_of(fields: &Fields<'_, '_>, name: &str) -> Option<String> {
    let text: String = fields.take(name)?;
    if let Err(e) = size::parse(&text) {
        fields.wrong(name, e, "");
    }
    Some(text)
}

fn files_spec(fields: &Fields<'_, '_>) -> Option<FilesSpec> {
    let seconds = number(fields, "seconds", 0.1, 3600.0);
    let rounds_least = count(fields, "rounds_least", 0, 1_000_000);
    let pause_ms = number(fields, "pause_ms", 0.0, 10_000.0);
    let log_kb = count(fields, "log_kb", 8, 65_536);
    let logs_kept = count(fields, "logs_kept", 1, 1000);
    let table_kb = count(fields, "table_kb", 16, 65_536);
    let configs = count(fields, "configs", 1, 1000);
    Some(FilesSpec {
        seconds: seconds?,
        rounds_least: rounds_least?,
        pause_ms: pause_ms?,
        log_kb: log_kb?,
        logs_kept: logs_kept? as usize,
        table_kb: table_kb?,
        configs: configs?,
    })
}

type Devices = BTreeMap<String, Option<ModelParams>>;

fn variants(
    top: &Fields<'_, '_>,
    devices: &Devices,
    with_files: bool,
) -> (Vec<String>, Option<Vec<Variant>>) {
    let tables = top.tables("variant", Table::Variant);
    if tables.is_empty() && top.value("variant").is_some() {
        top.wrong("variant", "there is no [[variant]] to run", "");
    }
    let mut names: Vec<String> = Vec::new();
    // All are read, also after one that is wrong.
    let read: Vec<Option<Variant>> = tables
        .iter()
        .map(|fields| {
            let name: Option<String> = fields.take("name");
            if let Some(name) = &name {
                if !is_name(name) {
                    // It becomes the name of a folder, of a chart's row, of a word of a command.
                    let help = "letters, digits, - and _, at most 64";
                    fields.wrong("name", format!("{name:?} is no name of a variant"), help);
                }
                if names.contains(name) {
                    fields.wrong("name", format!("two variants are called `{name}`"), "");
                }
                names.push(name.clone());
            }
            variant(fields, name, devices, with_files)
        })
        .collect();
    (names, read.into_iter().collect())
}

fn variant(
    fields: &Fields<'_, '_>,
    name: Option<String>,
    devices: &Devices,
    with_files: bool,
) -> Option<Variant> {
    let disk = device_name(fields, "disk", devices);
    let journal = device_name(fields, "journal", devices);
    if disk.is_some() && journal == disk {
        let help = "leave `journal` out for a journal on the disk";
        fields.wrong("journal", "journal and disk are the same device", help);
    }
    let run: Option<RunKind> = fields.take("run");
    if with_files && fields.value("run").is_some() && run != Some(RunKind::Both) {
        let what = "workload.files measures and cuts one and the same run";
        fields.wrong("run", what, "leave `run` out");
    }
    let (mkfs, mount) = (fields.take::<String>("mkfs"), fields.take::<String>("mount"));
    let kernel: Option<String> = fields.take("kernel");
    let is_peer = kernel.is_some() && !with_files;
    if is_peer && fields.value("run").is_some() {
        fields.wrong("run", "a variant with `kernel` runs with --peers only", "leave `run` out");
    }
    if let Some(kernel) = &kernel {
        let disk = disk.as_ref().and_then(|d| devices.get(d));
        let journal = journal.as_ref().and_then(|j| devices.get(j));
        check_kernel(fields, kernel, [disk, journal], with_files);
    } else {
        check_options(fields, mkfs.as_deref(), mount.as_deref());
    }
    let label = fields.take("label");
    Some(Variant {
        name: name?,
        label: label?,
        disk: disk?,
        journal,
        kernel,
        mkfs: mkfs?,
        mount: mount?,
        run: if is_peer { RunKind::Peer } else { run? },
    })
}

/// A device that is named: it must be described.
fn device_name(fields: &Fields<'_, '_>, key: &str, devices: &Devices) -> Option<String> {
    let name: String = fields.take(key)?;
    if !devices.contains_key(&name) {
        let help = did_you_mean(&name, devices.keys().map(String::as_str));
        fields.wrong(key, format!("there is no [device.{name}]"), help);
    }
    Some(name)
}

fn check_kernel(
    fields: &Fields<'_, '_>,
    kernel: &str,
    devices: [Option<&Option<ModelParams>>; 2],
    with_files: bool,
) {
    let known = KernelFs::of_name(kernel);
    if known.is_none() {
        let help = did_you_mean(kernel, KernelFs::ALL.map(KernelFs::name));
        fields.wrong("kernel", format!("there is no file system of the kernel `{kernel}`"), help);
    }
    if fields.value("journal").is_some() {
        if with_files {
            let what = "with `files` a variant with `kernel` has its journal on the disk";
            fields.wrong("journal", what, "");
        } else if known.is_some_and(|fs| !fs.has_external_journal()) {
            fields.wrong("journal", format!("`{kernel}` has no journal on another device"), "");
        }
    }
    for (key, device) in ["disk", "journal"].into_iter().zip(devices) {
        if device.is_some_and(|d| d.as_ref().is_some_and(|d| !d.takes_time())) {
            fields.wrong(key, "a variant with `kernel` needs devices that take time", "");
        }
    }
}

/// Notes each mkfs or mount option that is not one.
fn check_options(fields: &Fields<'_, '_>, mkfs: Option<&str>, mount: Option<&str>) {
    let wrong = stack::read_mkfs_options(mkfs.unwrap_or_default()).err().unwrap_or_default();
    for (word, what) in wrong {
        fields.wrong_word("mkfs", &word, what);
    }
    let wrong = stack::read_mount_options(mount.unwrap_or_default()).err().unwrap_or_default();
    for option in wrong {
        fields.wrong_word("mount", &option.word, option.to_string());
    }
}

fn published(top: &Fields<'_, '_>, variants: &[String]) -> Option<Vec<Published>> {
    let tables = top.tables("published", Table::Published);
    let read: Vec<_> = tables.iter().map(|fields| one_published(fields, variants)).collect();
    read.into_iter().collect()
}

fn one_published(fields: &Fields<'_, '_>, variants: &[String]) -> Option<Published> {
    let test: Option<String> = fields.take("test");
    if let Some(test) = test.as_ref().filter(|t| !test_names().contains(&t.as_str())) {
        fields.wrong(
            "test",
            format!("there is no test `{test}`"),
            did_you_mean(test, test_names()),
        );
    }
    if let Some(DeValue::Table(map)) = fields.value("kb_per_s").map(Spanned::get_ref) {
        let known = || variants.iter().map(String::as_str);
        for key in map.keys().filter(|key| !known().any(|name| name == key.get_ref())) {
            let help = did_you_mean(key.get_ref(), known());
            let what = format!("there is no variant `{}`", key.get_ref());
            fields.wrongs().add(key.span(), what, help);
        }
    }
    let (figure, kb_per_s) = (fields.take("figure"), fields.take("kb_per_s"));
    Some(Published { test: test?, figure: figure?, kb_per_s: kb_per_s? })
}
