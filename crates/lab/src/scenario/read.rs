//! From the text of a scenario file to a [`Scenario`], or to all that is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_devices::filter::record::Media;
use steadfast_devices::filter::{FaultRule, schedule};
use steadfast_setup::{
    DeviceSource, DeviceSpec, DriverCost, Machine, Namespace, Topology, VolumeSpec,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Wrongs};
use super::keys::Table;
use super::read_device::{device, driver, namespace};
use super::read_fault::{faults, media};
use super::read_published::{self, published};
use super::read_variant::{VariantScope, variants};
use super::read_workload::workload;
use super::scheduler::scheduler;
use super::sentence::{medium, sentences};
use super::volume;
use super::wrong::{Wrong, did_you_mean};
use super::{Band, LineError, RunKind, Scenario, Source, Variant, machine};
use super::{Workload, read_copies};
use crate::sensitivity::{drive, drives};
use crate::size;

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
    // What a broken line was meant to say is missing below: only the line is reported then.
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
            format!("version {n} is unknown"),
            format!("choose {first} to {last}"),
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
    let tables = top.tables_by_name("device", Table::Device);
    let drivers: BTreeMap<String, Option<DriverCost>> =
        tables.iter().map(|(name, fields)| (name.clone(), driver(fields))).collect();
    let devices: Devices =
        tables.iter().map(|(name, fields)| (name.clone(), device(fields))).collect();
    let namespaces: BTreeMap<String, Option<Namespace>> = (tables.iter())
        .filter(|(_, fields)| fields.value("namespace").is_some())
        .map(|(name, fields)| (name.clone(), namespace(fields)))
        .collect();
    let wrong_with: BTreeMap<String, Option<(Vec<FaultRule>, Media)>> = (tables.iter())
        .map(|(name, fields)| (name.clone(), faults(fields).zip(media(fields))))
        .collect();
    let volumes = volumes(top, &devices);
    let schedulers: BTreeMap<String, Option<schedule::SchedulerSettings>> = top
        .tables_by_name("scheduler", Table::Scheduler)
        .into_iter()
        .map(|(name, fields)| (name, scheduler(&fields)))
        .collect();
    let workload = top.table("workload", Table::Workload, "[workload]").and_then(|w| workload(&w));
    let named = |kind: &str| top.value("workload").is_some_and(|w| w.get_ref().get(kind).is_some());
    let around = VariantScope {
        devices: &devices,
        volumes: volumes.as_ref(),
        volume_names: tables_of(top, "volume"),
        schedulers: schedulers.keys().map(String::as_str).collect(),
        machine: machine.as_ref(),
        configurations: configurations(top),
        with_files: named("files"),
        namespaces: &namespaces,
        only_files: named("files")
            && !["read_under_write", "dd", "hdparm", "random_read"].into_iter().any(named),
    };
    let (names, variants) = variants(top, &around);
    if let (Some(workload), Some(variants)) = (&workload, &variants) {
        peers_have_sizes(top, workload, variants);
    }
    let known = read_published::PublishedScope {
        tests: read_published::tests(workload.as_ref()),
        variants: names.iter().map(String::as_str).collect(),
        devices: devices.keys().chain(around.volume_names()).map(String::as_str).collect(),
    };
    if let Some(workload) = &workload {
        let named = (&workload.dd[..], &workload.hdparm[..]);
        read_copies::devices_are_there(top, named, &known.devices, &known.variants);
        let of_reads = workload.random_reads.iter().flat_map(|spec| &spec.variants);
        read_copies::variants_are_there(top, of_reads, &known.variants);
    }
    let published = published(top, &known);
    let medium = medium(top);
    let sentences = sentences(top, &names);
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
        schedulers: schedulers.into_iter().map(|(n, s)| Some((n, s?))).collect::<Option<_>>()?,
        topology: Topology {
            devices: specs(devices, &drivers, &namespaces, wrong_with)?,
            volumes: volumes?,
        },
        variants: variants?,
        published: published?,
        medium,
        sentences: sentences?,
        band,
    })
}

/// The devices; `None`: one is wrong, which was noted.
fn specs(
    devices: Devices,
    drivers: &BTreeMap<String, Option<DriverCost>>,
    namespaces: &BTreeMap<String, Option<Namespace>>,
    mut wrong_with: BTreeMap<String, Option<(Vec<FaultRule>, Media)>>,
) -> Option<BTreeMap<String, DeviceSpec>> {
    let spec = |(name, source): (String, Option<DeviceSource>)| {
        let (faults, media) = wrong_with.remove(&name).flatten()?;
        let namespace = namespaces.get(&name).copied().unwrap_or(Some(Namespace::default()))?;
        let driver = drivers.get(&name).copied().flatten()?;
        Some((name, DeviceSpec { source: source?, driver, namespace, faults, media }))
    };
    devices.into_iter().map(spec).collect()
}

/// The volumes; `None`: one is wrong, which is noted.
fn volumes(top: &Fields<'_, '_>, devices: &Devices) -> Option<BTreeMap<String, VolumeSpec>> {
    let tables = top.tables_by_name("volume", Table::Volume);
    let names = devices.keys().chain(tables.iter().map(|(name, _)| name));
    let known: BTreeSet<String> = names.cloned().collect();
    let of_devices: BTreeSet<String> = devices.keys().cloned().collect();
    let read: volume::VolumeFields<'_, '_, '_> = tables
        .iter()
        .map(|(name, fields)| (name.clone(), (fields, volume::volume(fields, &known, &of_devices))))
        .collect();
    let mut good = volume::trees_are_trees(&read);
    for (name, (fields, _)) in read.iter().filter(|(name, _)| devices.contains_key(*name)) {
        let what = format!("a device is called `{name}` too");
        fields.wrong("", what, "variants name both: call one of them otherwise");
        good = false;
    }
    let all = read.into_iter().map(|(name, (_, spec))| Some((name, spec?)));
    all.collect::<Option<_>>().filter(|_| good)
}

/// Notes that the runs beside the kernel's file systems have no size.
fn peers_have_sizes(top: &Fields<'_, '_>, workload: &Workload, variants: &[Variant]) {
    let has_none = |v: &&Variant| {
        let line = workload.lines_of(v).and_then(|lines| lines.peers);
        v.run == RunKind::Peer && workload.peers_size.is_none() && line.is_none()
    };
    let Some(variant) = variants.iter().find(has_none) else { return };
    let key = if workload.lines_of(variant).is_some() { "peers_iozone" } else { "peers_size" };
    let help = "of the runs with --peers: in real time, so take a small one";
    top.wrong("workload", format!("`{key}` is missing: a variant has `kernel`"), help);
}

/// The names of the tables that a table of the file has.
fn tables_of(top: &Fields<'_, '_>, name: &str) -> Vec<String> {
    match top.value(name).map(Spanned::get_ref) {
        Some(DeValue::Table(all)) => all.keys().map(|key| key.get_ref().to_string()).collect(),
        _ => Vec::new(),
    }
}

/// The names of the benchmark's configurations.
fn configurations(top: &Fields<'_, '_>) -> Vec<String> {
    let workload = top.value("workload").map(Spanned::get_ref);
    let all = workload.and_then(|w| w.get("configuration")).and_then(|c| match c.get_ref() {
        DeValue::Table(all) => Some(all),
        _ => None,
    });
    all.map_or_else(Vec::new, |all| all.keys().map(|key| key.get_ref().to_string()).collect())
}

/// The drives that a device may have been, all of them known.
fn band(top: &Fields<'_, '_>, devices: &Devices) -> Option<Band> {
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

/// More cuts than anybody waits for, and fewer than memory holds.
pub(super) const CUTS_MAX: u64 = 1_000_000;

pub(super) fn is_name(name: &str) -> bool {
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
    machine_over(&fields, None)
}

/// A machine: what the table says, and for the rest another's or the defaults.
pub(super) fn machine_over(fields: &Fields<'_, '_>, base: Option<&Machine>) -> Option<Machine> {
    // The base's, where the table has no such key.
    let base = |name: &str| base.filter(|_| fields.value(name).is_none());
    let whole = |name: &str, least: u64, most: u64, of: fn(&Machine) -> u64| match base(name) {
        Some(base) => Some(of(base)),
        None => count(fields, name, least, most),
    };
    let real = |name: &str, least: f64, most: f64, of: fn(&Machine) -> f64| match base(name) {
        Some(base) => Some(of(base)),
        None => number(fields, name, least, most),
    };
    let share =
        real("page_cache_per_data", f64::NEG_INFINITY, f64::INFINITY, |m| m.page_cache_per_data);
    if share.is_some_and(|share| !(share > 0.0 && share <= 100.0)) {
        fields.wrong("page_cache_per_data", "it must be above 0 and at most 100", "");
    }
    // A share that a variant gives is instead of the scenario's memory.
    let has_share = fields.value("page_cache_per_data").is_some();
    let memory_mb = match base("memory_mb").filter(|_| !has_share) {
        Some(base) => base.memory_mb,
        None => fields.value("memory_mb").and_then(|_| count(fields, "memory_mb", 4, 1 << 20)),
    };
    let bdflush = match base("bdflush") {
        Some(base) => base.bdflush,
        None => fields.value("bdflush").and_then(|_| {
            let text: String = fields.take("bdflush")?;
            let read = machine::bdflush(&text);
            let wrong = |e: LineError| {
                fields.wrong("bdflush", e.to_string(), "as /proc/sys/vm/bdflush has them")
            };
            read.map_err(wrong).ok().flatten()
        }),
    };
    let seconds = |name: &str, of: fn(&Machine) -> Option<f64>| match base(name) {
        Some(base) => of(base),
        None => fields.value(name).and_then(|_| number(fields, name, 0.1, 86_400.0)),
    };
    let dirty_expire_s = seconds("dirty_expire_s", |m| m.dirty_expire_s);
    let dirty_writeback_s = seconds("dirty_writeback_s", |m| m.dirty_writeback_s);
    if fields.value("memory_mb").is_some() && fields.value("page_cache_per_data").is_some() {
        let help = "leave one of them out";
        fields.wrong("memory_mb", "`memory_mb` is instead of `page_cache_per_data`", help);
    }
    let cpus = whole("cpus", 1, 1024, |m| m.cpus as u64);
    let window = whole("file_window_mb", 1, 128, |m| m.file_window_mb);
    let read_ahead = whole("read_ahead_kb", 0, 65_536, |m| m.read_ahead_kb);
    let request = whole("request_kb", 4, 65_536, |m| m.request_kb);
    let checkpoint = whole("checkpoint_kb", 4, 1 << 20, |m| m.checkpoint_kb);
    // The page cache and the journal know pages and blocks, not parts of them.
    for (name, kb) in
        [("read_ahead_kb", read_ahead), ("request_kb", request), ("checkpoint_kb", checkpoint)]
    {
        if kb.is_some_and(|kb| !kb.is_multiple_of(4)) && fields.value(name).is_some() {
            fields.wrong(name, format!("`{name}` must be a multiple of 4, a page"), "");
        }
    }
    let dd_device = real("dd_device_us", 0.0, 1e6, |m| m.dd_device_us);
    let dd_file = real("dd_file_us", 0.0, 1e6, |m| m.dd_file_us);
    let from = real("checkpoint_from_percent", 0.0, 100.0, |m| m.checkpoint_from_percent);
    let to = real("checkpoint_to_percent", 0.0, 100.0, |m| m.checkpoint_to_percent);
    if let (Some(from), Some(to)) = (from, to)
        && to > from
        && let Some(name) = ["checkpoint_to_percent", "checkpoint_from_percent"]
            .into_iter()
            .find(|name| fields.value(name).is_some())
    {
        let what = format!("a checkpoint would begin at {from} % and end at {to} %");
        let help = "`checkpoint_to_percent` is at most `checkpoint_from_percent`";
        fields.wrong(name, what, help);
    }
    Some(Machine {
        cpus: cpus? as usize,
        page_cache_per_data: share?,
        memory_mb,
        file_window_mb: window?,
        read_ahead_kb: read_ahead?,
        request_kb: request?,
        bdflush,
        dirty_expire_s,
        dirty_writeback_s,
        checkpoint_kb: checkpoint?,
        checkpoint_from_percent: from?,
        checkpoint_to_percent: to?,
        dd_device_us: dd_device?,
        dd_file_us: dd_file?,
    })
}

/// Notes a number that is not within these bounds.
pub(super) fn within(
    fields: &Fields<'_, '_>,
    name: &str,
    value: Option<f64>,
    least: f64,
    most: f64,
) {
    if let Some(value) = value.filter(|v| !(least..=most).contains(v)) {
        fields.wrong(name, format!("`{name}` must be from {least} to {most}, not {value}"), "");
    }
}

/// A whole number within these bounds.
pub(super) fn count(fields: &Fields<'_, '_>, name: &str, least: u64, most: u64) -> Option<u64> {
    let value: Option<u64> = fields.take(name);
    within(fields, name, value.map(|n| n as f64), least as f64, most as f64);
    value.filter(|value| (least..=most).contains(value))
}

/// A number within these bounds.
pub(super) fn number(fields: &Fields<'_, '_>, name: &str, least: f64, most: f64) -> Option<f64> {
    let value: Option<f64> = fields.take(name);
    within(fields, name, value, least, most);
    // What was refused is not used: a duration cannot be made of a negative number.
    value.filter(|value| (least..=most).contains(value))
}

/// A size in k, m, g, as IOzone takes it.
pub(super) fn size_of(fields: &Fields<'_, '_>, name: &str) -> Option<String> {
    let text: String = fields.take(name)?;
    if let Err(e) = size::parse(&text) {
        fields.wrong(name, e.to_string(), "");
    }
    Some(text)
}

/// All devices by name; `None`: one that is wrong itself.
pub(super) type Devices = BTreeMap<String, Option<DeviceSource>>;
