//! `[workload]` of a scenario file: what is run, and which kinds may stand beside each other.

use std::collections::BTreeMap;

use steadfast_crash::risk::FilesWorkload;
use steadfast_setup::form::Fields;
use steadfast_setup::table;
use steadfast_vfs::size;

use super::copies::{self, DdSpec, HdparmSpec};
use super::fio::FioSpec;
use super::iozone_line::{IozoneMode, iozone_options, matrix_options, mode_of};
use super::legs::LegsSpec;
use super::random_reads::{self, RandomReadSpec};
use super::read_under_write::ReadUnderWriteSpec;
use super::trace::TraceSpec;
use super::variant::Variant;

table! {
    /// What is run.
    pub struct Workload: "[workload]", check Workload::check {
        /// IOzone's command line, as published, without the program's name.
        iozone: Option<String>, else "another workload is run";
        /// Table: the workload of files with names (docs/risk.md); `{}` for its defaults. Beside
        /// `read_under_write` it is what is cut.
        files: Option<FilesWorkload>, else "another workload is run";
        /// Table: tasks write blocks of the disk, a volume, without a file system; `{}` for its
        /// defaults. It is cut, also with one disk or only the RAM disk lost.
        legs: Option<LegsSpec>, else "another workload is run";
        /// Table: the calls of a recorded program are made again, and cut.
        trace: Option<TraceSpec>, else "another workload is run";
        /// Table: jobs of fio's; beside `files`, which is then what is cut.
        fio: Option<FioSpec>, else "another workload is run";
        /// Table: a file is read while another is written flat out.
        read_under_write: Option<ReadUnderWriteSpec>, else "another workload is run";
        /// Tables: copies by dd, timed; beside any other kind. The power is not cut in them.
        dd: Vec<DdSpec>, else "none";
        /// Tables: timings by hdparm; beside any other kind.
        hdparm: Vec<HdparmSpec>, else "none";
        /// Tables: reads of the disk at random places, without a file system; beside any other
        /// kind.
        random_reads as "random_read": Vec<RandomReadSpec>, else "none";
        /// Tables by name: several matrices of single or auto mode; each variant names its own.
        configurations as "configuration": BTreeMap<String, Configuration>, else "`iozone` is run";
        /// The whole command line of a run without `--full`.
        quick_iozone: Option<String>, else "needed with `iozone` in single or auto mode";
        /// The whole command line of the run that is cut.
        risk_iozone: Option<String>, else "needed with `iozone` in single or auto mode";
        /// The whole command line of the runs with `--peers`, in real time.
        peers_iozone: Option<String>, else "needed with these and `kernel`";
        /// IOzone's `-s` of a run without `--full`.
        quick_size: Option<String>, else "needed with `iozone -t`";
        /// IOzone's `-s` of the run that is cut.
        risk_size: Option<String>, else "needed with `iozone -t`";
        /// With `iozone`: without `--full` the capacity of `hdd` devices shrinks with the files, so
        /// that seeks between them take as long as at the full size.
        quick_scales_disks: bool = false;
        /// IOzone's `-s` of the runs with `--peers`, in real time.
        peers_size: Option<String>, else "needed with `iozone -t` and `kernel`";
        /// With `--peers`: the capacity of `hdd` devices is divided by this.
        peers_scale: u64 = 64, from 1 to 4096;
        /// Power cuts of a variant unless `--cuts` says otherwise.
        cuts: u64, from 0 to 1000000;
        /// With `iozone`: cuts of a variant without `--full`; of the measured run a quarter.
        quick_cuts: Option<u64>, else "`cuts`", from 0 to 1000000;
        /// Cuts of each control for every four cuts of a variant (docs/risk.md).
        lying_cuts_per_4: u64 = 1, from 0 to 1000;
        /// With `iozone`: cuts of the measured run itself, while something acknowledged is unsynced
        /// (docs/risk.md).
        loss_cuts: u64 = 24, from 0 to 1000000;
        /// With variants of the kernel's: runs in real time of each for its speed, by turns.
        speed_runs: u64 = 5, from 1 to 1000;
        /// How long each of these runs makes calls.
        speed_seconds: f64 = 2.0, from 0.01 to 3600;
        /// Cuts of a variant with `kernel`, each of which is a mount in real time.
        kernel_cuts: Option<u64>, else "`cuts`", from 0 to 1000000;
    }
}

table! {
    /// A configuration of the benchmark: IOzone's command lines in single or auto mode.
    pub struct Configuration: "[workload.configuration.NAME]", check Configuration::check {
        /// One line for people.
        label: String;
        /// IOzone's command line in single or auto mode, as published.
        iozone: String;
        /// That of a run without `--full`.
        quick_iozone: String;
        /// That of the run that is cut.
        risk_iozone: String;
        /// That of the runs with `--peers`, in real time.
        peers_iozone: Option<String>, else "needed with `kernel`";
    }
}

/// IOzone's command lines of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines<'a> {
    /// As published.
    pub full: &'a str,
    /// Of a run without `--full`.
    pub quick: &'a str,
    /// Of the recorded run whose power is cut.
    pub risk: &'a str,
    /// Of the runs in real time beside the kernel's file systems.
    pub peers: Option<&'a str>,
}

/// What small measurements stand beside.
const BESIDE: &[&str] =
    &["iozone", "files", "legs", "fio", "read_under_write", "dd", "hdparm", "random_read"];

/// The kinds of workload, by the key that names each, with the others that may stand beside it in
/// one scenario.
const KINDS: [(&str, &[&str]); 10] = [
    ("iozone", &[]),
    ("configuration", &[]),
    ("files", &[]),
    ("trace", &[]),
    // Measured only.
    ("fio", &["files"]),
    // What is cut, without a file system.
    ("legs", &[]),
    // What is cut is then the workload of files.
    ("read_under_write", &["files"]),
    // Small measurements, beside whatever else there is.
    ("dd", BESIDE),
    ("hdparm", BESIDE),
    ("random_read", BESIDE),
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
/// The other command lines of a matrix.
const LINES: [&str; 3] = ["quick_iozone", "risk_iozone", "peers_iozone"];
const IOZONE_HELP: &str = "IOzone's options: steadfast iozone -h";

impl Workload {
    fn check(fields: &Fields<'_>, _: Option<&Workload>) {
        kinds_go_together(fields);
        for name in SIZES {
            let text: Option<String> = fields.get(name);
            if let Some(Err(e)) = text.map(|text| size::parse(&text)) {
                fields.wrong(name, e.to_string(), "");
            }
        }
        if let Some(line) = fields.get::<String>("iozone") {
            let is_matrix = mode_of(&line) == IozoneMode::Matrix;
            let read = match is_matrix {
                true => matrix_options(&line).map(drop),
                false => iozone_options(&line, None).map(drop),
            };
            match read {
                // What belongs beside a line that is none nobody knows.
                Err(e) => fields.wrong_line("iozone", &line, &e.to_string(), IOZONE_HELP),
                Ok(()) => {
                    sizes_or_lines(fields, is_matrix);
                    if !is_matrix {
                        // A good line may be none with a smaller size: a record no longer fits.
                        sizes_suit(fields, &line);
                    }
                }
            }
        }
        LINES.iter().for_each(|name| check_matrix_line(fields, name));
        copies::check(fields);
        random_reads::check(fields);
    }
}

impl Configuration {
    fn check(fields: &Fields<'_>, _: Option<&Configuration>) {
        ["iozone"].iter().chain(&LINES).for_each(|name| check_matrix_line(fields, name));
    }
}

/// Notes that a command line is none of single or auto mode.
fn check_matrix_line(fields: &Fields<'_>, name: &str) {
    let Some(line) = fields.get::<String>(name) else { return };
    if let Err(e) = matrix_options(&line) {
        fields.wrong_line(name, &line, &e.to_string(), IOZONE_HELP);
    }
}

/// Notes which of the keys beside `iozone` are missing, and which are of its other mode: in
/// throughput mode other sizes make the smaller runs, in single and auto mode other lines.
fn sizes_or_lines(fields: &Fields<'_>, is_matrix: bool) {
    let (needed, others) = match is_matrix {
        true => (&LINES[..2], &SIZES[..]),
        false => (&SIZES[..2], &LINES[..]),
    };
    for name in needed.iter().filter(|name| !fields.has(name)) {
        let what = format!("`{name}` is missing in [workload]");
        let key = Workload::KEYS.iter().find(|key| key.name == *name);
        let text = key.map_or_else(String::new, |key| key.meaning());
        fields.wrong("iozone", what, format!("`iozone` needs it: {text}"));
    }
    for name in others.iter().filter(|name| fields.has(name)) {
        let (mode, needs) = match is_matrix {
            true => ("single and auto mode have a matrix of sizes", "`quick_iozone`"),
            false => ("it is of single and auto mode, and `iozone` has -t", "`quick_size`"),
        };
        let help = format!("{needs} and the like belong here");
        fields.wrong(name, format!("`{name}`: {mode}"), help);
    }
}

/// Notes the sizes with which the command line is none.
fn sizes_suit(fields: &Fields<'_>, line: &str) {
    for name in SIZES {
        let size = fields.get::<String>(name).filter(|text| size::parse(text).is_ok());
        if let Some(Err(e)) = size.map(|text| iozone_options(line, Some(&text))) {
            fields.wrong(name, e.to_string(), "with the options of `iozone`");
        }
    }
}

/// Notes kinds that cannot stand together, and keys of kinds that are not there.
fn kinds_go_together(fields: &Fields<'_>) {
    let there: Vec<_> = KINDS.iter().filter(|(key, _)| fields.has(key)).collect();
    let Some((first, _)) = there.first() else {
        let all: Vec<String> = KINDS.iter().map(|(key, _)| format!("`{key}`")).collect();
        let what = format!("[workload] has none of {}", all.join(", "));
        return fields.wrong("", what, "a scenario runs one of them");
    };
    for (i, (kind, beside)) in there.iter().enumerate() {
        for (other, beside_other) in &there[i + 1..] {
            if !beside.contains(other) && !beside_other.contains(kind) {
                let what = format!("[workload] has both `{kind}` and `{other}`");
                fields.wrong(other, what, "a scenario runs one of the two");
            }
        }
    }
    for (name, kinds) in BELONGS.iter().filter(|(name, _)| fields.has(name)) {
        if !there.iter().any(|(kind, _)| kinds.contains(kind)) {
            let owners: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
            let owners = owners.join(" and ");
            fields.wrong(name, format!("`{name}` belongs to {owners}, not to `{first}`"), "");
        }
    }
}

/// A kind of workload, with what it needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WorkloadKind<'a> {
    /// IOzone: command line, size of a quick run, size of the run that is cut.
    Iozone {
        /// The command line.
        line: &'a str,
        /// `quick_size`.
        quick_size: &'a str,
        /// `risk_size`.
        risk_size: &'a str,
    },
    /// IOzone in single or auto mode: `Workload::lines_of` has the command lines of a variant.
    Matrix,
    /// The workload of files.
    Files(&'a FilesWorkload),
    /// The calls of a program.
    Trace(&'a TraceSpec),
    /// Jobs of fio's.
    Fio(&'a FioSpec),
    /// The workload of blocks.
    Legs(&'a LegsSpec),
    /// A file is read while another is written.
    ReadUnderWrite(&'a ReadUnderWriteSpec),
    /// Copies by dd.
    Dd(&'a [DdSpec]),
    /// Timings by hdparm.
    Hdparm(&'a [HdparmSpec]),
    /// Reads at random places.
    RandomReads(&'a [RandomReadSpec]),
}

impl Workload {
    /// All that it is: what is measured first. IOzone in throughput mode needs its sizes.
    pub fn kinds(&self) -> Vec<WorkloadKind<'_>> {
        let mut kinds = Vec::new();
        if let (Some(line), Some(quick_size), Some(risk_size)) =
            (&self.iozone, &self.quick_size, &self.risk_size)
        {
            kinds.push(WorkloadKind::Iozone { line, quick_size, risk_size });
        } else if self.is_matrix() {
            kinds.push(WorkloadKind::Matrix);
        }
        kinds.extend(self.fio.as_ref().map(WorkloadKind::Fio));
        kinds.extend(self.read_under_write.as_ref().map(WorkloadKind::ReadUnderWrite));
        kinds.extend((!self.dd.is_empty()).then_some(WorkloadKind::Dd(&self.dd)));
        kinds.extend((!self.hdparm.is_empty()).then_some(WorkloadKind::Hdparm(&self.hdparm)));
        let random = &self.random_reads;
        kinds.extend((!random.is_empty()).then_some(WorkloadKind::RandomReads(random)));
        kinds.extend(self.files.as_ref().map(WorkloadKind::Files));
        kinds.extend(self.trace.as_ref().map(WorkloadKind::Trace));
        kinds.extend(self.legs.as_ref().map(WorkloadKind::Legs));
        kinds
    }

    /// Whether IOzone runs a matrix, in single or auto mode.
    fn is_matrix(&self) -> bool {
        self.quick_iozone.is_some() || !self.configurations.is_empty()
    }

    /// The command lines of a variant's matrix; `None`: none is run.
    pub(crate) fn lines_of(&self, variant: &Variant) -> Option<Lines<'_>> {
        if let Some(name) = &variant.configuration {
            let c = self.configurations.get(name)?;
            return Some(Lines {
                full: &c.iozone,
                quick: &c.quick_iozone,
                risk: &c.risk_iozone,
                peers: c.peers_iozone.as_deref(),
            });
        }
        Some(Lines {
            full: self.iozone.as_deref()?,
            quick: self.quick_iozone.as_deref()?,
            risk: self.risk_iozone.as_deref()?,
            peers: self.peers_iozone.as_deref(),
        })
    }
}
