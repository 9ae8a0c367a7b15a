//! From the text of a scenario file to a [`Scenario`], or to all that is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_devices::filter::schedule;
use steadfast_devices::model::ModelParams;
use steadfast_peers::KernelFs;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Fields, Wrongs};
use super::keys::Table;
use super::read_device::{device, driver, namespace};
use super::read_workload::workload;
use super::scheduler::scheduler;
use super::sentence::{medium, sentences};
use super::volume::{self, VolumeSpec};
use super::wrong::{Wrong, did_you_mean};
use super::{Band, LineError, Machine, Published, RunKind, Scenario, Source, Variant, machine};
use super::{Workload, read_copies};
use crate::driver::DriverCost;
use crate::namespace::Namespace;
use crate::run::test_names;
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
    let tables = top.tables_by_name("device", Table::Device);
    let drivers: BTreeMap<String, Option<DriverCost>> =
        tables.iter().map(|(name, fields)| (name.clone(), driver(fields))).collect();
    let devices: BTreeMap<String, Option<ModelParams>> =
        tables.iter().map(|(name, fields)| (name.clone(), device(fields))).collect();
    let namespaces: BTreeMap<String, Option<Namespace>> = (tables.iter())
        .filter(|(_, fields)| fields.value("namespace").is_some())
        .map(|(name, fields)| (name.clone(), namespace(fields)))
        .collect();
    let volumes = volumes(top, &devices);
    let schedulers: BTreeMap<String, Option<schedule::Settings>> = top
        .tables_by_name("scheduler", Table::Scheduler)
        .into_iter()
        .map(|(name, fields)| (name, scheduler(&fields)))
        .collect();
    let workload = top.table("workload", Table::Workload, "[workload]").and_then(|w| workload(&w));
    let named = |kind: &str| top.value("workload").is_some_and(|w| w.get_ref().get(kind).is_some());
    let around = Around {
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
    let known = Known {
        tests: tests(workload.as_ref()),
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
        devices: devices.into_iter().map(|(name, d)| Some((name, d?))).collect::<Option<_>>()?,
        drivers: drivers.into_iter().map(|(name, d)| Some((name, d?))).collect::<Option<_>>()?,
        namespaces: namespaces.into_iter().map(|(n, s)| Some((n, s?))).collect::<Option<_>>()?,
        volumes: volumes?,
        variants: variants?,
        published: published?,
        medium,
        sentences: sentences?,
        band,
    })
}

/// The volumes; `None`: one is wrong, which is noted.
fn volumes(top: &Fields<'_, '_>, devices: &Devices) -> Option<BTreeMap<String, VolumeSpec>> {
    let tables = top.tables_by_name("volume", Table::Volume);
    let names = devices.keys().chain(tables.iter().map(|(name, _)| name));
    let known: BTreeSet<String> = names.cloned().collect();
    let of_devices: BTreeSet<String> = devices.keys().cloned().collect();
    let read: volume::Volumes<'_, '_, '_> = tables
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
    machine_over(&fields, None)
}

/// A machine: what the table says, and for the rest another's or the defaults.
fn machine_over(fields: &Fields<'_, '_>, base: Option<&Machine>) -> Option<Machine> {
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

type Devices = BTreeMap<String, Option<ModelParams>>;

/// What a variant can name, and what the scenario runs.
struct Around<'a> {
    devices: &'a Devices,
    volumes: Option<&'a BTreeMap<String, VolumeSpec>>,
    /// Of all volumes, also of those that are wrong themselves.
    volume_names: Vec<String>,
    schedulers: Vec<&'a str>,
    configurations: Vec<String>,
    machine: Option<&'a Machine>,
    namespaces: &'a BTreeMap<String, Option<Namespace>>,
    with_files: bool,
    /// One run is measured and cut.
    only_files: bool,
}

impl Around<'_> {
    fn volume_names(&self) -> impl Iterator<Item = &String> {
        self.volume_names.iter()
    }

    /// The devices that something which is named is made of.
    fn leaves(&self, name: &str) -> Vec<String> {
        self.volumes.map_or_else(Vec::new, |volumes| volume::leaves(volumes, name))
    }
}

fn variants(top: &Fields<'_, '_>, around: &Around<'_>) -> (Vec<String>, Option<Vec<Variant>>) {
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
            variant(fields, name, around)
        })
        .collect();
    baselines_are_there(&tables, &read);
    volumes_are_not_in_real_time(&tables, &read, around);
    (names, read.into_iter().collect())
}

/// Notes variants that are compared with one that is not there, or not measured.
fn baselines_are_there(tables: &[Fields<'_, '_>], variants: &[Option<Variant>]) {
    let measured = || variants.iter().flatten().filter(|v| v.run.speed()).map(|v| v.name.as_str());
    for (fields, variant) in tables.iter().zip(variants) {
        let Some(name) = variant.as_ref().and_then(|v| v.baseline.as_deref()) else { continue };
        if variants.iter().all(Option::is_some) && !measured().any(|known| known == name) {
            let what = format!("no variant `{name}` is measured");
            fields.wrong("baseline", what, did_you_mean(name, measured()));
        }
    }
}

/// Notes volumes where all variants are measured in real time, too.
fn volumes_are_not_in_real_time(
    tables: &[Fields<'_, '_>],
    variants: &[Option<Variant>],
    around: &Around<'_>,
) {
    let kernel = tables.iter().any(|fields| fields.value("kernel").is_some());
    if !kernel || !around.with_files {
        return;
    }
    for (fields, variant) in tables.iter().zip(variants) {
        let Some(variant) = variant else { continue };
        let both = [("disk", Some(&variant.disk)), ("journal", variant.journal.as_ref())];
        let on_volumes = both.into_iter().filter(|(_, name)| {
            name.is_some_and(|name| around.volume_names().any(|volume| volume == name))
        });
        for (key, _) in on_volumes {
            let what = "a volume is not measured in real time, as all are beside `kernel`";
            fields.wrong(key, what, "put it into a scenario without `kernel`");
        }
    }
}

fn variant(fields: &Fields<'_, '_>, name: Option<String>, around: &Around<'_>) -> Option<Variant> {
    let Around { devices, with_files, .. } = *around;
    let disk = device_name(fields, "disk", around);
    let journal = device_name(fields, "journal", around);
    if disk.is_some() && journal == disk {
        let help = "leave `journal` out for a journal on the disk";
        fields.wrong("journal", "journal and disk are the same device", help);
    } else if let (Some(disk), Some(journal)) = (&disk, &journal) {
        let (disk, journal) = (around.leaves(disk), around.leaves(journal));
        for name in journal.iter().filter(|name| disk.contains(name)) {
            let help = "each place needs a device of its own";
            fields.wrong("journal", format!("device `{name}` is in the disk too"), help);
        }
    }
    let run: Option<RunKind> = fields.take("run");
    if around.only_files && fields.value("run").is_some() && run != Some(RunKind::Both) {
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
        let volumes = [("disk", &disk), ("journal", &journal)].into_iter();
        for (key, name) in volumes.filter_map(|(key, name)| Some((key, name.as_ref()?))) {
            if around.volume_names().any(|volume| volume == name) {
                let what = "a variant with `kernel` stands on a device, not on a volume";
                fields.wrong(key, what, "the kernel's own are dm and md");
            }
            if around.namespaces.contains_key(name) {
                let what = "a variant with `kernel` sees a block device, not a namespace";
                fields.wrong(key, what, "name a device without `namespace`");
            }
        }
        let disk = disk.as_ref().and_then(|d| devices.get(d));
        let journal = journal.as_ref().and_then(|j| devices.get(j));
        check_kernel(fields, kernel, [disk, journal], with_files);
    } else {
        check_options(fields, mkfs.as_deref(), mount.as_deref());
    }
    let label = fields.take("label");
    let baseline = fields.value("baseline").map(|_| fields.take("baseline"));
    let baseline = baseline.map_or(Some(None), |name| name.map(Some));
    let cut = fields.take("cut");
    let configuration = configuration_name(fields, &around.configurations);
    let scheduler: Option<String> = fields.take("scheduler");
    if let Some(name) = scheduler.as_ref().filter(|n| !around.schedulers.contains(&n.as_str())) {
        let help = did_you_mean(name, around.schedulers.iter().copied());
        fields.wrong("scheduler", format!("there is no [scheduler.{name}]"), help);
    }
    if kernel.is_some() {
        let ours =
            ["scheduler", "machine", "cut"].into_iter().filter(|k| fields.value(k).is_some());
        for key in ours {
            let what = format!("`{key}` is not for a variant with `kernel`");
            fields.wrong(key, what, "the kernel has its own");
        }
    }
    let machine = match fields.table("machine", Table::VariantMachine, "machine of [[variant]]") {
        Some(table) => Some(machine_over(&table, around.machine)?),
        None => None,
    };
    Some(Variant {
        name: name?,
        label: label?,
        baseline: baseline?,
        configuration: configuration?,
        disk: disk?,
        journal,
        scheduler,
        machine,
        kernel,
        mkfs: mkfs?,
        mount: mount?,
        run: if is_peer { RunKind::Peer } else { run? },
        cut: cut?,
    })
}

/// The configuration of a variant: it must be described, and named where there are some.
fn configuration_name(fields: &Fields<'_, '_>, known: &[String]) -> Option<Option<String>> {
    let all = || known.iter().map(String::as_str);
    if fields.value("configuration").is_none() {
        if let Some(first) = known.first() {
            let what = "`configuration` is missing in [[variant]]";
            fields.wrong("", what, format!("one of [workload.configuration.{first}] and so on"));
        }
        return Some(None);
    }
    let name: String = fields.take("configuration")?;
    if !all().any(|k| k == name) {
        let help = did_you_mean(&name, all());
        fields.wrong("configuration", format!("there is no configuration `{name}`"), help);
    }
    Some(Some(name))
}

/// A device that is named: it must be described.
fn device_name(fields: &Fields<'_, '_>, key: &str, around: &Around<'_>) -> Option<String> {
    let name: String = fields.take(key)?;
    let known = || around.devices.keys().chain(around.volume_names());
    if !known().any(|k| *k == name) {
        let help = did_you_mean(&name, known().map(String::as_str));
        let or_volume = match around.volume_names().next() {
            Some(_) => format!(" or [volume.{name}]"),
            None => String::new(),
        };
        fields.wrong(key, format!("there is no [device.{name}]{or_volume}"), help);
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

/// What published figures can be of.
struct Known<'a> {
    tests: Vec<String>,
    variants: Vec<&'a str>,
    devices: Vec<&'a str>,
}

/// The names of all tests, those that the scenario gives too.
fn tests(workload: Option<&Workload>) -> Vec<String> {
    let mut tests: Vec<String> = test_names().into_iter().map(str::to_owned).collect();
    let Some(workload) = workload else { return tests };
    tests.extend(workload.dd.iter().map(|spec| spec.test.clone()));
    let hdparm = workload.hdparm.iter();
    tests.extend(hdparm.flat_map(|spec| spec.targets.iter().flat_map(|t| spec.tests(t))));
    tests
}

fn published(top: &Fields<'_, '_>, known: &Known<'_>) -> Option<Vec<Published>> {
    let tables = top.tables("published", Table::Published);
    let read: Vec<_> = tables.iter().map(|fields| one_published(fields, known)).collect();
    read.into_iter().collect()
}

fn one_published(fields: &Fields<'_, '_>, names: &Known<'_>) -> Option<Published> {
    let test: Option<String> = fields.take("test");
    if let Some(test) = test.as_ref().filter(|t| !names.tests.contains(t)) {
        let help = did_you_mean(test, names.tests.iter().map(String::as_str));
        fields.wrong("test", format!("there is no test `{test}`"), help);
    }
    // A device is timed by itself, whatever stands on it.
    let of_devices = test.as_ref().is_some_and(|test| test.starts_with("hdparm "));
    for key in ["kb_per_s", "seconds"] {
        let Some(DeValue::Table(map)) = fields.value(key).map(Spanned::get_ref) else { continue };
        let devices = names.devices.iter().filter(|_| of_devices);
        let known = || names.variants.iter().chain(devices.clone()).copied();
        for key in map.keys().filter(|key| !known().any(|name| name == key.get_ref())) {
            let help = did_you_mean(key.get_ref(), known());
            let what = format!("there is no variant `{}`", key.get_ref());
            fields.wrongs().add(key.span(), what, help);
        }
    }
    let figures = |key| match fields.value(key) {
        Some(_) => fields.take::<BTreeMap<String, f64>>(key),
        None => Some(BTreeMap::new()),
    };
    if ["kb_per_s", "seconds"].into_iter().filter(|k| fields.value(k).is_some()).count() != 1 {
        fields.wrong("test", "it needs one of `kb_per_s` and `seconds`", "");
    }
    let (figure, kb_per_s, seconds) =
        (fields.take("figure"), figures("kb_per_s"), figures("seconds"));
    let seconds = seconds?;
    if seconds.values().any(|s| !(*s > 0.0 && s.is_finite())) {
        fields.wrong("seconds", "a time is above 0", "");
    }
    Some(Published { test: test?, figure: figure?, kb_per_s: kb_per_s?, seconds })
}
