//! Scenario files: what to build, what to run on it, and what to compare.
//!
//! A scenario is one TOML file; its keys are listed in [`keys`], of which docs/lab.md has a table.
//! Unknown keys are errors, so that a misspelt option cannot silently change what is measured. All
//! that is wrong with a file is reported at once, each with its line.

use std::collections::BTreeMap;
use std::path::Path;
#[cfg(feature = "planted-bugs")]
use std::sync::Arc;

use serde::{Deserialize, Serialize};
#[cfg(feature = "planted-bugs")]
use steadfast_crash::explore::MountChange;
use steadfast_crash::explore::StackMachine;
use steadfast_devices::filter::schedule;
use steadfast_devices::model::ModelParams;
use steadfast_setup::mirrors::Arrangement;
use steadfast_setup::{DeviceSource, Machine, Setup, Topology};
use steadfast_vfs::bounded;

use crate::LabError;
use crate::results::SumKind;

mod copies;
mod fields;
pub mod keys;
mod line_error;
mod machine;
mod random_reads;
mod read;
mod read_copies;
mod read_device;
mod read_fault;
mod read_published;
mod read_variant;
mod read_workload;
mod scheduler;
mod sentence;
mod volume;
mod workload;
mod wrong;

pub(crate) use copies::is_file;
pub use copies::{DdSpec, HdparmSpec};
pub use line_error::LineError;
pub use random_reads::{Distribution, RandomReadSpec};
pub(crate) use sentence::sized;
pub use sentence::{Check, Medium, Sentence};
pub use workload::{
    Configuration, FilesSpec, LegsSpec, Lines, ReadFile, ReadUnderWriteSpec, Storm, Workload,
    WorkloadKind,
};
pub(crate) use wrong::did_you_mean;
pub use wrong::{Wrong, WrongFile};

/// Cuts of a variant, at most.
pub(crate) const CUTS_MAX: u64 = read::CUTS_MAX;

// `EMBEDDED`: the scenarios that come with the program, name and text. The build script makes it
// from the folder `scenarios`.
include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

/// A scenario as written in its file, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Layout version of the file: one that `read` knows.
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
    /// Devices and volumes by name.
    pub topology: Topology,
    /// Request schedulers by name.
    pub schedulers: BTreeMap<String, schedule::SchedulerSettings>,
    /// Variants to compare; the first that is measured is the baseline.
    pub variants: Vec<Variant>,
    /// Published figures.
    pub published: Vec<PublishedSpeed>,
    /// What the source says that its medium is capable of.
    pub medium: Option<Medium>,
    /// Sentences of the source that are checked.
    pub sentences: Vec<Sentence>,
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

/// Where published figures come from. All but the title is known of files of version 2.
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The variant that it is compared with; absent: the first that is measured.
    pub baseline: Option<String>,
    /// Which of the benchmark's configurations it is run with; absent: there is one.
    pub configuration: Option<String>,
    /// The device that holds the file system.
    pub disk: String,
    /// The device that holds the journal; absent: the journal is on `disk`.
    pub journal: Option<String>,
    /// The request scheduler before the disk; absent: requests go to it as they come.
    pub scheduler: Option<String>,
    /// The machine, where it is another than the scenario's.
    pub machine: Option<Machine>,
    /// The kernel's file system of this name instead of Steadfast's ext4: a peer, in real time.
    pub kernel: Option<String>,
    /// mkfs options.
    pub mkfs: String,
    /// Mount options.
    pub mount: String,
    /// `both` (default), `speed` or `risk`.
    pub run: RunKind,
    /// What a cut is.
    pub cut: CutKind,
    /// A bug that the cuts are to find; no file names one.
    #[cfg(feature = "planted-bugs")]
    pub planted: Option<steadfast_crash::planted::StackBug>,
}

/// What happens at a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum CutKind {
    /// The power fails.
    #[default]
    Power,
    /// The machine is reset, and the drives keep their power.
    Reset,
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

impl Variant {
    /// Whether a cut takes what is in the volatile cache of a device.
    pub(crate) fn loses_cache(&self, device: &ModelParams) -> bool {
        self.cut == CutKind::Power || device.forgets_at_reset()
    }
}

/// Published speeds of one test.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedSpeed {
    /// The test's name.
    pub test: String,
    /// Which of IOzone's sums is quoted.
    pub figure: SumKind,
    /// kB/s by variant name; of hdparm on devices by their names.
    pub kb_per_s: BTreeMap<String, f64>,
    /// Or seconds, by variant name.
    pub seconds: BTreeMap<String, f64>,
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
        Scenario::parse(&Scenario::text_of(name_or_file)?, name_or_file)
    }

    /// The text of a scenario: of one that comes with the program, or of a file.
    ///
    /// # Errors
    /// There is neither.
    pub fn text_of(name_or_file: &str) -> Result<String, LabError> {
        let own = EMBEDDED.iter().find(|(name, _)| *name == name_or_file);
        if let Some((_, text)) = own {
            return Ok((*text).to_owned());
        }
        bounded::text(Path::new(name_or_file), bounded::SETTINGS_MAX).map_err(|e| {
            LabError::NotFound {
                name: name_or_file.into(),
                reason: e.to_string(),
                help: wrong::did_you_mean(name_or_file, EMBEDDED.iter().map(|(name, _)| *name)),
            }
        })
    }

    /// One that comes with the program.
    pub(crate) fn find_own(name: &str) -> Option<Scenario> {
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

    /// What a variant is compared with: the first measured one of its configuration.
    pub(crate) fn baseline_of(&self, variant: &str) -> &str {
        let configuration = |v: &Variant| v.configuration.clone();
        let named = self.variants.iter().find(|v| v.name == variant);
        if let Some(baseline) = named.and_then(|v| v.baseline.as_deref()) {
            return baseline;
        }
        let own = named.and_then(configuration);
        let mut measured = self.variants.iter().filter(|v| v.run.speed());
        measured.find(|v| v.configuration == own).map_or("", |v| &v.name)
    }

    /// The model of a device, if it is one.
    pub fn model(&self, device: &str) -> Option<&ModelParams> {
        self.topology.devices.get(device)?.model()
    }

    /// The same with another model in the place of a device.
    pub(crate) fn with_model(&self, device: &str, model: ModelParams) -> Scenario {
        let mut changed = self.clone();
        if let Some(device) = changed.topology.devices.get_mut(device) {
            device.source = DeviceSource::Model(model);
        }
        changed
    }

    /// What a variant is built of.
    pub fn setup_of(&self, variant: &Variant) -> Setup {
        Setup {
            topology: self.topology.clone(),
            disk: variant.disk.clone(),
            journal: variant.journal.clone(),
            scheduler: self.scheduler_of(variant).cloned(),
            mkfs: variant.mkfs.clone(),
            mount: variant.mount.clone(),
            machine: self.machine_of(variant).clone(),
        }
    }

    /// A variant's machine with so much page cache, whose power can be cut.
    pub(crate) fn stack_machine(&self, variant: &Variant, memory_bytes: u64) -> StackMachine {
        #[cfg(not(feature = "planted-bugs"))]
        let change = None;
        #[cfg(feature = "planted-bugs")]
        let change = variant
            .planted
            .map(|bug| -> MountChange { Arc::new(move |options| bug.into_options(options)) });
        let is_reset = variant.cut == CutKind::Reset;
        StackMachine { setup: self.setup_of(variant), memory_bytes, is_reset, change }
    }

    /// The machine of a variant.
    pub(crate) fn machine_of<'s>(&'s self, variant: &'s Variant) -> &'s Machine {
        variant.machine.as_ref().unwrap_or(&self.machine)
    }

    /// The request scheduler of a variant's disk.
    pub(crate) fn scheduler_of(&self, variant: &Variant) -> Option<&schedule::SchedulerSettings> {
        variant.scheduler.as_ref().and_then(|name| self.schedulers.get(name))
    }

    /// Whose mirror a variant's disk is, where it is a model of somebody else's.
    pub(crate) fn model_of(&self, variant: &Variant) -> Option<Arrangement> {
        self.topology.volumes.get(&variant.disk)?.model
    }

    /// Whether a variant's disk is a model of somebody else's mirror.
    pub(crate) fn is_model(&self, variant: &Variant) -> bool {
        self.model_of(variant).is_some()
    }

    /// The devices that a variant stands on: of its disk, then of its journal.
    pub fn leaves(&self, variant: &Variant) -> Vec<String> {
        self.setup_of(variant).leaves()
    }

    /// Whether a variant stands on a device that breaks its promises: the control.
    pub fn lies(&self, variant: &Variant) -> bool {
        self.leaves(variant)
            .iter()
            .filter_map(|name| self.model(name))
            .any(|d| d.lying_cache_bytes().is_some() && variant.loses_cache(d))
            || self.model_of(variant).is_some_and(Arrangement::is_control)
    }
}
