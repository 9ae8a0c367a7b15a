//! Scenario files: what to build, what to run on it, and what to compare.
//!
//! A scenario is one TOML file; its keys are listed in [`keys`], of which docs/lab.md has a table.
//! Unknown keys are errors, so that a misspelt option cannot silently change what is measured. All
//! that is wrong with a file is told at once, each with its line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use steadfast_devices::model::ModelParams;

use crate::LabError;
use crate::results::Figure;

mod fields;
pub mod keys;
mod read;
mod workload;
mod wrong;

pub use workload::{FilesSpec, Workload, WorkloadKind};
pub(crate) use wrong::did_you_mean;
pub use wrong::{Wrong, WrongFile};

/// Cuts of a variant, at most.
pub const CUTS_MAX: u64 = read::CUTS_MAX;

/// Bytes of a scenario file, at most.
const TEXT_MAX: u64 = 1 << 20;

/// Reads a text file of at most so many bytes: what is named may be a device without an end.
///
/// # Errors
/// As reading; also if it is longer.
pub fn read_bounded(path: &Path, most: u64) -> std::io::Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    if read as u64 > most {
        return Err(std::io::Error::other(format!("it is longer than {} KiB", most >> 10)));
    }
    Ok(text)
}

/// The scenarios that come with the program: name and text.
const EMBEDDED: [(&str, &str); 2] = [
    ("nvram-journal", include_str!("../scenarios/nvram-journal.toml")),
    ("data-at-risk", include_str!("../scenarios/data-at-risk.toml")),
];

/// A scenario as written in its file, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Layout version of the file: 1.
    pub version: u32,
    /// Short name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// What the scenario shows, for `lab list`.
    pub about: String,
    /// Where published figures come from.
    pub source: Option<Source>,
    /// The simulated machine.
    pub machine: Machine,
    /// What is run.
    pub workload: Workload,
    /// Devices by name.
    pub devices: BTreeMap<String, ModelParams>,
    /// Variants to compare; the first that is measured is the baseline.
    pub variants: Vec<Variant>,
    /// Published figures.
    pub published: Vec<Published>,
    /// Drives that a disk of the source may have been.
    pub band: Option<Band>,
}

/// Where the source names no drive: those of its class, each with a data sheet. The sensitivity
/// puts each in the place of a device.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// The device.
    pub device: String,
    /// The drives' names (see `lab drives`).
    pub drives: Vec<String>,
}

/// The simulated machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Processors.
    pub cpus: usize,
    /// Page cache as a share of the benchmark's data (all children's files together), so that a
    /// run at a smaller size sees the same relation of memory to data.
    pub page_cache_per_data: f64,
    /// Free space kept behind a growing file, in MiB at most
    /// ([`window_max`](steadfast_ext4::mount::MountOptions::window_max)).
    pub file_window_mb: u64,
}

impl Machine {
    /// [`file_window_mb`](Self::file_window_mb) in bytes.
    pub fn file_window_bytes(&self) -> u64 {
        self.file_window_mb << 20
    }
}

/// Where published figures come from. All but the title is known of files of version 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Of the page or paper.
    pub title: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was published.
    pub year: Option<String>,
    /// Where it is.
    pub address: Option<String>,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(author) = &self.author {
            write!(f, "{author}, ")?;
        }
        f.write_str(&self.title)?;
        [&self.year, &self.address].into_iter().flatten().try_for_each(|part| write!(f, ", {part}"))
    }
}

/// One variant.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Short name.
    pub name: String,
    /// For people.
    pub label: String,
    /// The device that holds the file system.
    pub disk: String,
    /// The device that holds the journal; absent: the journal is on `disk`.
    pub journal: Option<String>,
    /// The kernel's file system of this name instead of Steadfast's ext4: a peer, in real time.
    pub kernel: Option<String>,
    /// mkfs options.
    pub mkfs: String,
    /// Mount options.
    pub mount: String,
    /// `both` (default), `speed` or `risk`.
    pub run: RunKind,
}

/// Which parts of a run a variant takes part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// Benchmark and power cuts.
    #[default]
    Both,
    /// Benchmark only.
    Speed,
    /// Power cuts only.
    Risk,
    /// The kernel's file system under the benchmark: beside the others, when somebody asks for it.
    #[serde(skip)]
    Peer,
}

impl RunKind {
    /// Whether the benchmark runs.
    pub fn speed(self) -> bool {
        matches!(self, RunKind::Both | RunKind::Speed)
    }

    /// Whether the power is cut.
    pub fn risk(self) -> bool {
        matches!(self, RunKind::Both | RunKind::Risk)
    }
}

/// Published speeds of one test.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The test's name.
    pub test: String,
    /// Which of IOzone's sums is quoted.
    pub figure: Figure,
    /// kB/s by variant name.
    pub kb_per_s: BTreeMap<String, f64>,
}

impl Scenario {
    /// Reads a scenario from TOML text. `origin` names it in messages.
    ///
    /// # Errors
    /// [`LabError::File`] with all that is wrong with it.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, LabError> {
        read::scenario(text)
            .map_err(|wrongs| LabError::File(Box::new(WrongFile::new(origin, text, wrongs))))
    }

    /// Finds a scenario: one that comes with the program, or a file.
    ///
    /// # Errors
    /// There is neither, or as [`Self::parse`].
    pub fn find(name_or_file: &str) -> Result<Scenario, LabError> {
        if let Some(own) = Scenario::find_own(name_or_file) {
            return Ok(own);
        }
        match read_bounded(Path::new(name_or_file), TEXT_MAX) {
            Ok(text) => Scenario::parse(&text, name_or_file),
            Err(e) => Err(LabError::NotFound {
                name: name_or_file.into(),
                reason: e.to_string(),
                help: wrong::did_you_mean(name_or_file, EMBEDDED.map(|(n, _)| n)),
            }),
        }
    }

    /// One that comes with the program.
    pub fn find_own(name: &str) -> Option<Scenario> {
        Scenario::embedded().into_iter().find(|s| s.name == name)
    }

    /// The scenarios that come with the program.
    pub fn embedded() -> Vec<Scenario> {
        // OK to expect: a test parses every one of them.
        EMBEDDED
            .iter()
            .map(|(name, text)| Scenario::parse(text, name).expect("embedded scenario"))
            .collect()
    }

    /// The first measured variant: what the others are compared with.
    pub fn baseline(&self) -> &str {
        self.variants.iter().find(|v| v.run.speed()).map_or("", |v| &v.name)
    }

    /// Whether a variant stands on a device that breaks its promises: the control.
    pub fn lies(&self, variant: &Variant) -> bool {
        std::iter::once(&variant.disk)
            .chain(&variant.journal)
            .any(|name| self.devices.get(name).is_some_and(|d| d.lying_cache_bytes().is_some()))
    }
}
