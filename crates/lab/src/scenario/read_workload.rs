//! `[workload]` of a scenario file: which kinds of workload there are, which keys each has, and
//! which may stand beside each other.

use std::collections::BTreeMap;

use super::fields::Fields;
use super::keys::{self, Table};
use super::read::{CUTS_MAX, count, number, size_of};
use super::{
    Configuration, FilesSpec, LegsSpec, LineError, ReadFile, ReadUnderWriteSpec, Storm, Workload,
};
use super::{random_reads, read_copies};
use crate::run::{IozoneMode, iozone_options, matrix_options, mode_of};
use crate::size;

/// A kind of workload, by the key that names it.
struct WorkloadSchema {
    key: &'static str,
    /// Keys of [workload] that must be there with it.
    needs: &'static [&'static str],
    /// Other kinds that may stand beside it in one scenario.
    beside: &'static [&'static str],
}

/// What small measurements stand beside.
const BESIDE: &[&str] =
    &["iozone", "files", "legs", "read_under_write", "dd", "hdparm", "random_read"];

/// All kinds.
const KINDS: [WorkloadSchema; 8] = [
    // What it needs depends on its mode: see `sizes_or_lines`.
    WorkloadSchema { key: "iozone", needs: &[], beside: &[] },
    WorkloadSchema { key: "configuration", needs: &[], beside: &[] },
    WorkloadSchema { key: "files", needs: &[], beside: &[] },
    // What is cut, without a file system.
    WorkloadSchema { key: "legs", needs: &[], beside: &[] },
    // What is cut is then the workload of files.
    WorkloadSchema { key: "read_under_write", needs: &[], beside: &["files"] },
    // Small measurements, beside whatever else there is.
    WorkloadSchema { key: "dd", needs: &[], beside: BESIDE },
    WorkloadSchema { key: "hdparm", needs: &[], beside: BESIDE },
    WorkloadSchema { key: "random_read", needs: &[], beside: BESIDE },
];

/// Keys of [workload] that belong to some kinds only, and these.
const BELONGS: [(&str, &[&str]); 8] = [
    ("quick_iozone", &["iozone"]),
    ("risk_iozone", &["iozone"]),
    ("peers_iozone", &["iozone"]),
    ("quick_size", &["iozone"]),
    ("risk_size", &["iozone"]),
    ("quick_scales_disks", &["iozone"]),
    ("peers_size", &["iozone"]),
    ("peers_scale", &["iozone", "configuration"]),
];

/// The sizes of a benchmark's runs.
const SIZES: [&str; 3] = ["quick_size", "risk_size", "peers_size"];

/// What a scenario runs.
pub fn workload(fields: &Fields<'_, '_>) -> Option<Workload> {
    let line: Option<String> = fields.take("iozone");
    let files = fields.table("files", Table::Files, "workload.files").map(|f| files_spec(&f));
    let legs = fields.table("legs", Table::Legs, "workload.legs").map(|f| legs_spec(&f));
    let reads = fields
        .table("read_under_write", Table::ReadUnderWrite, "workload.read_under_write")
        .map(|f| read_under_write(&f));
    let (dd, hdparm) = (read_copies::dd(fields), read_copies::hdparm(fields));
    let random_reads = random_reads::random_reads(fields);
    kinds_go_together(fields);
    let sizes = SIZES.map(|name| size_of(fields, name));
    if let Some(line) = &line {
        let is_matrix = mode_of(line) == IozoneMode::Matrix;
        let read = match is_matrix {
            true => matrix_options(line).map(drop),
            false => iozone_options(line, None).map(drop),
        };
        match read {
            // What belongs beside a line that is none nobody knows.
            Err(e) => fields.wrong_line("iozone", line, &e.to_string(), IOZONE_HELP),
            Ok(()) => {
                sizes_or_lines(fields, is_matrix);
                if !is_matrix {
                    // A good line may be none with a smaller size: a record no longer fits.
                    sizes_suit(fields, line, &sizes);
                }
            }
        }
    }
    let [quick_iozone, risk_iozone, peers_iozone] = LINES.map(|name| matrix_line(fields, name));
    let configurations: BTreeMap<String, Option<Configuration>> = fields
        .tables_by_name("configuration", Table::Configuration)
        .into_iter()
        .map(|(name, fields)| (name, configuration(&fields)))
        .collect();
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
        quick_iozone,
        risk_iozone,
        peers_iozone,
        configurations: (configurations.into_iter())
            .map(|(name, c)| Some((name, c?)))
            .collect::<Option<_>>()?,
        quick_size,
        quick_scales_disks: quick_scales_disks?,
        risk_size,
        peers_size,
        peers_scale: peers_scale?,
        legs: match legs {
            Some(read) => Some(read?),
            None => None,
        },
        files: match files {
            Some(spec) => Some(spec?),
            None => None,
        },
        read_under_write: match reads {
            Some(spec) => Some(spec?),
            None => None,
        },
        dd: dd?,
        hdparm: hdparm?,
        random_reads: random_reads?,
        cuts: cuts?,
        quick_cuts,
        kernel_cuts,
        loss_cuts: loss_cuts?,
        speed_runs: speed_runs?,
        speed_seconds: speed_seconds?,
        lying_cuts_per_4: lying_cuts_per_4?,
    })
}

const IOZONE_HELP: &str = "IOzone's options: steadfast iozone -h";

/// The other command lines of a matrix.
const LINES: [&str; 3] = ["quick_iozone", "risk_iozone", "peers_iozone"];

/// Notes which of the keys beside `iozone` are missing, and which are of its other mode: in
/// throughput mode other sizes make the smaller runs, in single and auto mode other lines.
fn sizes_or_lines(fields: &Fields<'_, '_>, is_matrix: bool) {
    let (needed, others) = match is_matrix {
        true => (&LINES[..2], &SIZES[..]),
        false => (&SIZES[..2], &LINES[..]),
    };
    for name in needed.iter().filter(|n| fields.value(n).is_none()) {
        let what = format!("`{name}` is missing in [workload]");
        let text = keys::find(Table::Workload, name).map_or("", |k| k.text);
        fields.wrong("iozone", what, format!("`iozone` needs it: {text}"));
    }
    for name in others.iter().filter(|n| fields.value(n).is_some()) {
        let (mode, needs) = match is_matrix {
            true => ("single and auto mode have a matrix of sizes", "`quick_iozone`"),
            false => ("it is of single and auto mode, and `iozone` has -t", "`quick_size`"),
        };
        fields.wrong(
            name,
            format!("`{name}`: {mode}"),
            format!("{needs} and the like belong here"),
        );
    }
}

/// A command line of single or auto mode, which is looked at.
fn matrix_line(fields: &Fields<'_, '_>, name: &str) -> Option<String> {
    fields.value(name)?;
    let line: String = fields.take(name)?;
    if let Err(e) = matrix_options(&line) {
        fields.wrong_line(name, &line, &e.to_string(), IOZONE_HELP);
    }
    Some(line)
}

fn configuration(fields: &Fields<'_, '_>) -> Option<Configuration> {
    let label = fields.take("label");
    let [full, quick, risk, peers] =
        ["iozone", "quick_iozone", "risk_iozone", "peers_iozone"].map(|n| matrix_line(fields, n));
    Some(Configuration {
        label: label?,
        iozone: full?,
        quick_iozone: quick?,
        risk_iozone: risk?,
        peers_iozone: peers,
    })
}

/// Notes kinds that cannot stand together, keys that a kind needs, and keys of kinds that are not
/// there.
fn kinds_go_together(fields: &Fields<'_, '_>) {
    let there: Vec<&WorkloadSchema> =
        KINDS.iter().filter(|k| fields.value(k.key).is_some()).collect();
    if there.is_empty() {
        let all: Vec<String> = KINDS.iter().map(|k| format!("`{}`", k.key)).collect();
        let what = match all.as_slice() {
            [one, other] => format!("[workload] has neither {one} nor {other}"),
            _ => format!("[workload] has none of {}", all.join(", ")),
        };
        fields.wrong("", what, "a scenario runs one of them");
    }
    for (i, kind) in there.iter().enumerate() {
        for other in &there[i + 1..] {
            if !kind.beside.contains(&other.key) && !other.beside.contains(&kind.key) {
                let what = format!("[workload] has both `{}` and `{}`", kind.key, other.key);
                fields.wrong(other.key, what, "a scenario runs one of the two");
            }
        }
        for name in kind.needs.iter().filter(|n| fields.value(n).is_none()) {
            let what = format!("`{name}` is missing in [workload]");
            let text = keys::find(Table::Workload, name).map_or("", |k| k.text);
            fields.wrong(kind.key, what, format!("`{}` needs it: {text}", kind.key));
        }
    }
    let Some(first) = there.first() else { return };
    for (name, kinds) in BELONGS.iter().filter(|(name, _)| fields.value(name).is_some()) {
        if !there.iter().any(|kind| kinds.contains(&kind.key)) {
            let owners: Vec<String> = kinds.iter().map(|k| format!("`{k}`")).collect();
            let owners = owners.join(" and ");
            let what = format!("`{name}` belongs to {owners}, not to `{}`", first.key);
            fields.wrong(name, what, "");
        }
    }
}

/// Notes the sizes with which the command line is none.
fn sizes_suit(fields: &Fields<'_, '_>, line: &str, sizes: &[Option<String>; 3]) {
    for (name, size) in SIZES.into_iter().zip(sizes) {
        if let Some(text) = size.as_ref().filter(|text| size::parse(text).is_ok())
            && let Err(e) = iozone_options(line, Some(text))
        {
            fields.wrong(name, e.to_string(), "with the options of `iozone`");
        }
    }
}

fn files_spec(fields: &Fields<'_, '_>) -> Option<FilesSpec> {
    let seconds = number(fields, "seconds", 0.1, 3600.0);
    let rounds_least = count(fields, "rounds_least", 0, 1_000_000);
    let pause_ms = number(fields, "pause_ms", 0.0, 10_000.0);
    let log_kb = count(fields, "log_kb", 8, 65_536);
    let logs_kept = count(fields, "logs_kept", 1, 1000);
    let table_kb = count(fields, "table_kb", 16, 65_536);
    let configs = count(fields, "configs", 1, 1000);
    let letters_kept = count(fields, "letters_kept", 1, 100_000);
    let letters_synced_percent = count(fields, "letters_synced_percent", 0, 100);
    let downloads_kept = count(fields, "downloads_kept", 1, 1000);
    Some(FilesSpec {
        seconds: seconds?,
        rounds_least: rounds_least?,
        pause_ms: pause_ms?,
        log_kb: log_kb?,
        logs_kept: logs_kept? as usize,
        table_kb: table_kb?,
        configs: configs?,
        letters_kept: letters_kept? as usize,
        letters_synced_percent: letters_synced_percent?,
        downloads_kept: downloads_kept?,
    })
}

fn legs_spec(fields: &Fields<'_, '_>) -> Option<LegsSpec> {
    let seconds = number(fields, "seconds", 0.1, 3600.0);
    let writers = count(fields, "writers", 1, 64);
    let pause_ms = number(fields, "pause_ms", 0.01, 10_000.0);
    let flush_every = count(fields, "flush_every", 1, 1_000_000);
    let area_kb = count(fields, "area_kb", 256, 1 << 20);
    Some(LegsSpec {
        seconds: seconds?,
        writers: writers?,
        pause_ms: pause_ms?,
        flush_every: flush_every?,
        area_kb: area_kb?,
    })
}

fn read_under_write(fields: &Fields<'_, '_>) -> Option<ReadUnderWriteSpec> {
    let line: Option<String> = fields.take("storm");
    let storm = line.and_then(|line| {
        let help = "a dd(1) that writes zeros";
        let wrong = |e: LineError| fields.wrong_line("storm", &line, &e.to_string(), help);
        Storm::parse(&line).map_err(wrong).ok()
    });
    let places: Option<Vec<ReadFile>> = fields.take("places");
    let twice = |p: &[ReadFile]| p.len() > 1 && p[0] == p[1];
    if places.as_ref().is_some_and(|p| p.is_empty() || p.len() > 2 || twice(p)) {
        fields.wrong("places", "it is one or both of `other` and `same`", "");
    }
    let file_mb = count(fields, "file_mb", 1, 4096);
    let read_kb = count(fields, "read_kb", 4, 16 << 10);
    let trials = count(fields, "trials", 1, 100_000);
    let quick_trials =
        fields.value("quick_trials").and_then(|_| count(fields, "quick_trials", 1, 100_000));
    let idle_trials = count(fields, "idle_trials", 1, 1000);
    let settle_s = number(fields, "settle_s", 0.0, 3600.0);
    let pause_s = number(fields, "pause_s", 0.0, 3600.0);
    Some(ReadUnderWriteSpec {
        storm: storm?,
        file_mb: file_mb?,
        read_kb: read_kb?,
        places: places?,
        trials: trials?,
        quick_trials,
        idle_trials: idle_trials?,
        settle_s: settle_s?,
        pause_s: pause_s?,
    })
}
