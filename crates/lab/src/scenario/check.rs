//! What is looked at in several tables of a scenario file together.

use std::ops::RangeInclusive;

use steadfast_peers::{KernelFs, fuse_options};
use steadfast_setup::form::{Fields, did_you_mean};
use steadfast_setup::tables::check_file_system;
use steadfast_setup::{DeviceSource, DeviceSpec};

use super::band::Band;
use super::copies::{check_names, devices, is_file};
use super::variant::{RunKind, Variant};
use super::workload::Workload;
use super::{copies, published, sentence, source};

/// The layouts that are read.
const VERSIONS: RangeInclusive<u32> = 1..=2;

/// Notes what is wrong between the tables of a file.
pub(super) fn tables(top: &Fields<'_>) {
    if let Some(n) = top.get::<u32>("version").filter(|n| !VERSIONS.contains(n)) {
        let help = format!("choose {} to {}", VERSIONS.start(), VERSIONS.end());
        top.wrong("version", format!("version {n} is unknown"), help);
    }
    if let Some(name) = top.get::<String>("name").filter(|name| !is_name(name)) {
        let help = "letters, digits, - and _: reports are named after it";
        top.wrong("name", format!("`{name}` is no name"), help);
    }
    source::check(top);
    let workload: Option<Workload> = top.get("workload");
    let tables = top.tables("variant");
    let names: Vec<String> = tables.iter().filter_map(|fields| fields.get("name")).collect();
    variants(top, &tables, workload.as_ref());
    let named = [top.names("device"), top.names("volume")].concat();
    if let Some(workload) = &workload {
        check_named(top, workload, &names, &named);
    }
    published::check(top, workload.as_ref(), &names, &named);
    let tests = published::tests(workload.as_ref());
    sentence::check(top, &names, &tests);
    Band::check_names(top, &names, &tests);
}

/// Letters, digits, `-` and `_`: what is called so becomes the name of a folder.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}

fn variants(top: &Fields<'_>, tables: &[Fields<'_>], workload: Option<&Workload>) {
    if tables.is_empty() && top.has("variant") {
        top.wrong("variant", "there is no [[variant]] to run", "");
    }
    check_names(tables, "name", "variants");
    tables.iter().for_each(|fields| variant(fields, top));
    let Some(variants) = top.get::<Vec<Variant>>("variant") else { return };
    let has_calls = runs_calls(top);
    let is_peer = |v: &&Variant| v.kernel.is_some() && !has_calls;
    let measured = || variants.iter().filter(|v| v.run.speed() && !is_peer(v));
    for (fields, variant) in tables.iter().zip(&variants) {
        let Some(name) = &variant.baseline else { continue };
        if !measured().any(|known| known.name == *name) {
            let help = did_you_mean(name, measured().map(|v| v.name.as_str()));
            fields.wrong("baseline", format!("no variant `{name}` is measured"), help);
        }
    }
    let kernels: Vec<&Variant> = variants.iter().filter(|v| v.kernel.is_some()).collect();
    let Some(workload) = workload.filter(|_| !kernels.is_empty()) else { return };
    let has_iozone = workload.iozone.is_some() || !workload.configurations.is_empty();
    if !(has_iozone || has_calls && workload.kinds().len() == 1) {
        let what = "a variant with `kernel` runs `iozone`, or `files` or `trace` with nothing \
                    beside it";
        return top.wrong("workload", what, "put it into a scenario of its own");
    }
    only_on_stacks(top, workload, &kernels);
    // The runs beside the kernel's file systems have a size.
    let mut peers = variants.iter().filter(is_peer);
    let has_none = |v: &&Variant| {
        let line = workload.lines_of(v).and_then(|lines| lines.peers);
        workload.peers_size.is_none() && line.is_none()
    };
    if let Some(variant) = peers.find(has_none) {
        let is_matrix = workload.lines_of(variant).is_some();
        let key = if is_matrix { "peers_iozone" } else { "peers_size" };
        let help = "of the runs with --peers: in real time, so take a small one";
        top.wrong("workload", format!("`{key}` is missing: a variant has `kernel`"), help);
    }
}

/// Notes what is beside the benchmark and would run on a file system of the kernel's, too.
fn only_on_stacks(top: &Fields<'_>, workload: &Workload, kernels: &[&Variant]) {
    let takes = |named: &[String]| kernels.iter().any(|v| v.is_among(named));
    let (dd, random) = (&workload.dd, &workload.random_reads);
    let mut hdparm = workload.hdparm.iter().flat_map(|spec| &spec.targets);
    let by_name = "its key `variants` names those that run it";
    for (kind, is_run, help) in [
        ("dd", dd.iter().any(|spec| takes(&spec.variants)), by_name),
        ("random_read", random.iter().any(|spec| takes(&spec.variants)), by_name),
        ("hdparm", hdparm.any(|target| is_file(target)), "time devices, or leave `kernel` out"),
    ] {
        if is_run {
            let what = format!("`{kind}` does not run on a variant with `kernel`");
            top.wrong("workload", what, help);
        }
    }
}

/// Whether a scenario has a kind of workload.
fn runs(top: &Fields<'_>, kind: &str) -> bool {
    top.table("workload").is_some_and(|workload| workload.has(kind))
}

/// Whether it makes calls that are recorded and cut on the kernel's file systems, too.
fn runs_calls(top: &Fields<'_>) -> bool {
    runs(top, "files") || runs(top, "trace")
}

fn variant(fields: &Fields<'_>, top: &Fields<'_>) {
    if let Some(name) = fields.get::<String>("name").filter(|name| !is_name(name)) {
        // It becomes the name of a folder, of a chart's row, of a word of a command.
        let help = "letters, digits, - and _, at most 64";
        fields.wrong("name", format!("{name:?} is no name of a variant"), help);
    }
    let has_kernel = fields.has("kernel");
    check_file_system(fields, top, !has_kernel);
    configuration(fields, top);
    let has_files = runs(top, "files");
    let beside = ["read_under_write", "dd", "hdparm", "random_read"];
    let has_only_files = has_files && !beside.into_iter().any(|kind| runs(top, kind));
    if has_only_files && fields.has("run") && fields.get("run") != Some(RunKind::Both) {
        let what = "workload.files measures and cuts one and the same run";
        fields.wrong("run", what, "leave `run` out");
    }
    let volumes = top.names("volume");
    for key in ["disk", "journal"] {
        if fields.get::<String>(key).is_none_or(|name| !volumes.contains(&name)) {
            continue;
        }
        if has_kernel {
            let what = "a variant with `kernel` stands on a device, not on a volume";
            fields.wrong(key, what, "the kernel's own are dm and md");
        }
        let is_real = |variant: &Fields<'_>| variant.has("kernel") || variant.has("fuse");
        if runs_calls(top) && top.tables("variant").iter().any(is_real) {
            let what =
                "a volume is not measured in real time, as all are beside `kernel` or `fuse`";
            fields.wrong(key, what, "put it into a scenario without these");
        }
    }
    if let Some(kernel) = fields.get::<String>("kernel") {
        of_kernel(fields, top, &kernel, runs_calls(top));
    }
    if let Some(options) = fields.get::<String>("fuse") {
        let no = |what: &str, help: &str| fields.wrong("fuse", what, help);
        if let Err(why) = fuse_options(&options) {
            no(&why.to_string(), "options of the file system stand in `mount`");
        }
        if has_kernel {
            no("a variant with `kernel` is not mounted by FUSE", "leave `fuse` or `kernel` out");
        }
        if !has_only_files {
            no("only `workload.files` is cut through a mount", "leave `fuse` out");
        }
        needs_time(fields, top, "fuse");
    }
}

/// The configuration of a variant must be described, and named where there are some.
fn configuration(fields: &Fields<'_>, top: &Fields<'_>) {
    let known = top.table("workload").map_or(vec![], |workload| workload.names("configuration"));
    if let (false, Some(first)) = (fields.has("configuration"), known.first()) {
        let what = "`configuration` is missing in [[variant]]";
        fields.wrong("", what, format!("one of [workload.configuration.{first}] and so on"));
    }
    if let Some(name) = fields.get("configuration").filter(|name| !known.contains(name)) {
        let help = did_you_mean(&name, known.iter().map(String::as_str));
        fields.wrong("configuration", format!("there is no configuration `{name}`"), help);
    }
}

/// What a variant of the kernel's has not.
fn of_kernel(fields: &Fields<'_>, top: &Fields<'_>, kernel: &str, has_calls: bool) {
    let known = KernelFs::of_name(kernel);
    if known.is_none() {
        let help = did_you_mean(kernel, KernelFs::ALL.map(KernelFs::name));
        fields.wrong("kernel", format!("there is no file system of the kernel `{kernel}`"), help);
    }
    if fields.has("journal") {
        if has_calls {
            let what =
                "with `files` and `trace` a variant with `kernel` has its journal on the disk";
            fields.wrong("journal", what, "");
        } else if known.is_some_and(|fs| !fs.has_external_journal()) {
            fields.wrong("journal", format!("`{kernel}` has no journal on another device"), "");
        }
    }
    if !has_calls && fields.has("run") {
        fields.wrong("run", "a variant with `kernel` runs with --peers only", "leave `run` out");
    }
    for key in ["scheduler", "machine", "cut"].into_iter().filter(|key| fields.has(key)) {
        let what = format!("`{key}` is not for a variant with `kernel`");
        fields.wrong(key, what, "the kernel has its own");
    }
    needs_time(fields, top, "kernel");
}

/// A variant that is cut in real time needs block devices that take time.
fn needs_time(fields: &Fields<'_>, top: &Fields<'_>, with: &str) {
    let Some(devices) = top.table("device") else { return };
    for key in ["disk", "journal"] {
        let Some(name) = fields.get::<String>(key) else { continue };
        if devices.table(&name).is_some_and(|device| device.has("namespace")) {
            let what = format!("a variant with `{with}` sees a block device, not a namespace");
            fields.wrong(key, what, "name a device without `namespace`");
        }
        let takes_none = |device: DeviceSpec| match device.source {
            DeviceSource::Model(model) => !model.takes_time(),
            DeviceSource::Path(_) => false,
        };
        if devices.get(&name).is_some_and(takes_none) {
            let what = format!("a variant with `{with}` needs devices that take time");
            fields.wrong(key, what, "");
        }
    }
}

/// Notes variants and devices that a workload names and that are not there.
fn check_named(top: &Fields<'_>, workload: &Workload, variants: &[String], known: &[String]) {
    let wrong = |what: &str, name: &String, known: &[String]| {
        let help = did_you_mean(name, known.iter().map(String::as_str));
        top.wrong("workload", format!("there is no {what} `{name}`"), help);
    };
    let of_dd = workload.dd.iter().flat_map(|spec| &spec.variants);
    let of_reads = workload.random_reads.iter().flat_map(|spec| &spec.variants);
    for name in of_dd.chain(of_reads).filter(|name| !variants.contains(name)) {
        wrong("variant", name, variants);
    }
    let of_dd = workload.dd.iter().flat_map(copies::DdSpec::lines).flat_map(|line| devices(line));
    let of_hdparm = workload.hdparm.iter().flat_map(|spec| &spec.targets);
    let of_hdparm = of_hdparm.filter(|target| !is_file(target)).cloned();
    for name in of_dd.chain(of_hdparm).filter(|name| !known.contains(name)) {
        wrong("device", &name, known);
    }
}
