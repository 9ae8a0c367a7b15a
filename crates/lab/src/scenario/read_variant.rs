//! `[[variant]]` of a scenario file: what is run, on which of the devices and volumes.

use std::collections::BTreeMap;

use steadfast_peers::KernelFs;
use steadfast_setup::{DeviceSource, Machine, Namespace, VolumeSpec, leaves, options};

use super::fields::Fields;
use super::keys::Table;
use super::read::{Devices, is_name, machine_over};
use super::wrong::did_you_mean;
use super::{RunKind, Variant};

/// What a variant can name, and what the scenario runs.
pub(super) struct VariantScope<'a> {
    pub(super) devices: &'a Devices,
    pub(super) volumes: Option<&'a BTreeMap<String, VolumeSpec>>,
    /// Of all volumes, also of those that are wrong themselves.
    pub(super) volume_names: Vec<String>,
    pub(super) schedulers: Vec<&'a str>,
    pub(super) configurations: Vec<String>,
    pub(super) machine: Option<&'a Machine>,
    pub(super) namespaces: &'a BTreeMap<String, Option<Namespace>>,
    pub(super) with_files: bool,
    /// One run is measured and cut.
    pub(super) only_files: bool,
}

impl VariantScope<'_> {
    /// The names of all volumes, also of those that are wrong.
    pub(super) fn volume_names(&self) -> impl Iterator<Item = &String> {
        self.volume_names.iter()
    }

    /// The devices that something which is named is made of.
    fn leaves(&self, name: &str) -> Vec<String> {
        self.volumes.map_or_else(Vec::new, |volumes| leaves(volumes, name))
    }
}

/// All variants, and their names, also of those that are wrong.
pub(super) fn variants(
    top: &Fields<'_, '_>,
    around: &VariantScope<'_>,
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
    around: &VariantScope<'_>,
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

fn variant(
    fields: &Fields<'_, '_>,
    name: Option<String>,
    around: &VariantScope<'_>,
) -> Option<Variant> {
    let VariantScope { devices, with_files, .. } = *around;
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
        #[cfg(feature = "planted-bugs")]
        planted: None,
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
fn device_name(fields: &Fields<'_, '_>, key: &str, around: &VariantScope<'_>) -> Option<String> {
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
    devices: [Option<&Option<DeviceSource>>; 2],
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
        let takes_none = |source: &DeviceSource| match source {
            DeviceSource::Model(model) => !model.takes_time(),
            DeviceSource::Path(_) => true,
        };
        if device.is_some_and(|d| d.as_ref().is_some_and(takes_none)) {
            fields.wrong(key, "a variant with `kernel` needs devices that take time", "");
        }
    }
}

/// Notes each mkfs or mount option that is not one.
fn check_options(fields: &Fields<'_, '_>, mkfs: Option<&str>, mount: Option<&str>) {
    let wrong = options::read_mkfs(mkfs.unwrap_or_default()).err().unwrap_or_default();
    for (word, what) in wrong {
        fields.wrong_word("mkfs", &word, what);
    }
    let wrong = options::read_mount(mount.unwrap_or_default()).err().unwrap_or_default();
    for option in wrong {
        fields.wrong_word("mount", &option.word, option.to_string());
    }
}
