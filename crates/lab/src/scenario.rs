//! Scenario files: what to build, what to run on it, and what to compare.
//!
//! A scenario is one TOML file. Each of its tables is declared once, in a file below or in the
//! crate `setup` ([`steadfast_setup::form`]); [`keys`] lists all of their keys, and docs/lab.md has
//! that list. Unknown keys are errors, so that a misspelt option cannot silently change what is
//! measured. All that is wrong with a file is reported at once, each with its line.

use std::collections::BTreeMap;
use std::path::Path;
#[cfg(feature = "planted-bugs")]
use std::sync::Arc;

#[cfg(feature = "planted-bugs")]
use steadfast_crash::explore::MountChange;
use steadfast_crash::explore::StackMachine;
use steadfast_devices::filter::schedule::SchedulerSettings;
use steadfast_devices::model::ModelParams;
use steadfast_setup::form::{Fields, WrongFile, did_you_mean, read_text};
use steadfast_setup::mirrors::Arrangement;
use steadfast_setup::{DeviceSource, Machine, Setup, Topology, table};
use steadfast_vfs::bounded;
use toml::de::{DeTable, DeValue};

use crate::LabError;

mod band;
mod check;
mod copies;
mod fio;
mod iozone_line;
pub mod keys;
mod legs;
mod line_error;
mod published;
mod random_reads;
mod read_under_write;
mod sentence;
mod source;
mod trace;
mod variant;
mod workload;

pub use band::{Band, ParameterValue};
pub use copies::{DdSpec, HdparmSpec};
pub(crate) use copies::{is_file, operands};
pub use fio::FioSpec;
pub(crate) use iozone_line::{iozone_options, matrix_options};
pub use legs::LegsSpec;
pub use line_error::LineError;
pub use published::{PublishedSpeed, SumKind, tests};
pub use random_reads::RandomReadSpec;
pub use read_under_write::{ReadFile, ReadUnderWriteSpec, Storm};
pub(crate) use sentence::sized;
pub use sentence::{Check, Sentence};
pub use source::{Medium, Source};
pub use trace::TraceSpec;
pub use variant::{CutKind, RunKind, Variant};
pub use workload::{Configuration, Lines, Workload, WorkloadKind};

// `EMBEDDED`: the scenarios that come with the program, name and text. The build script makes it
// from the folder `scenarios`.
include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

table! {
    /// A scenario as written in its file, checked.
    pub struct Scenario: "the file", with topology: Topology, check Scenario::check {
        /// Layout of the file: 2 (1 is read too).
        version: u32;
        /// Short name: letters, digits, `-`.
        name: String;
        /// One line for people.
        title: String;
        /// What it shows, for `lab list`.
        about: String = "";
        /// What prices of variants are in, as `EUR`.
        currency: Option<String>, else "prices are shown without it";
        /// Table: where published figures are from. In version 1 a text.
        source: Option<Source>, else "none; needed with `[[published]]`";
        /// Table: the simulated machine.
        machine: Machine, else "its defaults";
        /// Table: what is run.
        workload: Workload;
        /// Tables: request schedulers, by name.
        schedulers as "scheduler": BTreeMap<String, SchedulerSettings>, else "none";
        /// Tables: what is compared; the first that is measured is the baseline of the ratios.
        variants as "variant": Vec<Variant>;
        /// Tables: published figures, one for each test.
        published: Vec<PublishedSpeed>, else "none";
        /// Table: what the source says that its medium is capable of.
        medium: Option<Medium>, else "needed with sentences about its speed";
        /// Tables: what the source says, to be checked.
        sentences as "sentence": Vec<Sentence>, else "none";
        /// Table: what the source leaves unknown.
        band: Option<Band>, else "none";
    }
}

/// What a file is said to be that has nothing of a scenario.
const NO_SCENARIO: &str = "is no scenario: a scenario is a TOML file with [device.NAME], \
                           [workload] and [[variant]] (docs/lab.md); `steadfast lab list` lists \
                           those of the program";

/// Puts what [machine] says into the machines of the variants that do not say otherwise.
fn machines_inherit(file: &mut DeTable<'_>) {
    let Some(DeValue::Table(machine)) = file.get("machine").map(|machine| machine.get_ref()) else {
        return;
    };
    let machine = machine.clone();
    let Some(DeValue::Array(variants)) = file.get_mut("variant").map(|v| v.get_mut()) else {
        return;
    };
    for variant in variants.iter_mut() {
        let DeValue::Table(variant) = variant.get_mut() else { continue };
        let Some(DeValue::Table(own)) = variant.get_mut("machine").map(|own| own.get_mut()) else {
            continue;
        };
        // Each is instead of the other.
        let of_memory = ["memory_mb", "page_cache_per_data"];
        let has_memory = of_memory.iter().any(|key| own.contains_key(*key));
        for (key, value) in machine.iter() {
            let name = &**key.get_ref();
            let is_replaced = has_memory && of_memory.contains(&name);
            if !is_replaced && !own.contains_key(name) {
                own.insert(key.clone(), value.clone());
            }
        }
    }
}

impl Scenario {
    /// Reads a scenario from TOML text. `origin` names it in messages.
    ///
    /// # Errors
    /// [`LabError::File`] with all that is wrong with it.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, LabError> {
        Scenario::parse_with(text, "", origin)
    }

    /// The same of a text with the tables of `more`, in which nothing is wrong: all places of
    /// mistakes are of the first.
    pub(crate) fn parse_with<'t>(
        text: &'t str,
        more: &'t str,
        origin: &str,
    ) -> Result<Scenario, LabError> {
        let change = |file: &mut DeTable<'t>| {
            let (more, _) = DeTable::parse_recoverable(more);
            file.extend(more.into_inner());
            machines_inherit(file);
        };
        let mut scenario = read_text(text, change, Scenario::read_whole)
            .map_err(|wrongs| WrongFile::new(origin, text, wrongs, NO_SCENARIO))
            .map_err(|wrong| match Setup::is_described_by(text) {
                true => LabError::NothingToRun(origin.to_owned()),
                false => LabError::File(Box::new(wrong)),
            })?;
        scenario.topology.said_in(origin);
        scenario.workload.trace.iter_mut().for_each(|trace| trace.said_in(origin));
        scenario.workload.fio.iter_mut().for_each(|fio| fio.said_in(origin));
        if scenario.workload.files.is_none() && scenario.workload.trace.is_none() {
            let of_kernel = scenario.variants.iter_mut().filter(|v| v.kernel.is_some());
            of_kernel.for_each(|variant| variant.run = RunKind::Peer);
        }
        Ok(scenario)
    }

    fn check(fields: &Fields<'_>, _: Option<&Scenario>) {
        check::tables(fields);
    }

    /// Finds a scenario: one that comes with the program, or a file.
    ///
    /// # Errors
    /// There is neither, or as [`Self::parse`].
    pub fn find(name_or_file: &str) -> Result<Scenario, LabError> {
        Scenario::parse(&Scenario::text_of(name_or_file)?, name_or_file)
    }

    /// The names of those that come with the program.
    pub fn own_names() -> impl Iterator<Item = &'static str> {
        EMBEDDED.iter().map(|(name, _)| *name)
    }

    /// The text of a scenario that comes with the program.
    pub fn own_text(name: &str) -> Option<&'static str> {
        EMBEDDED.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
    }

    /// The text of a scenario: of one that comes with the program, or of a file.
    ///
    /// # Errors
    /// There is neither.
    pub fn text_of(name_or_file: &str) -> Result<String, LabError> {
        if let Some(text) = Scenario::own_text(name_or_file) {
            return Ok(text.to_owned());
        }
        bounded::text(Path::new(name_or_file), bounded::SETTINGS_MAX).map_err(|e| {
            LabError::NotFound {
                name: name_or_file.into(),
                reason: e.to_string(),
                help: did_you_mean(name_or_file, EMBEDDED.iter().map(|(name, _)| *name)),
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

    /// The value of a device's parameter, or of its driver's.
    pub(crate) fn parameter(&self, device: &str, key: &str) -> Option<String> {
        let spec = self.topology.devices.get(device)?;
        match key {
            "driver_us" => return Some((spec.driver.request.as_nanos() as f64 / 1e3).to_string()),
            "driver_mb_per_s" => return spec.driver.copy_mb_per_s.map(|rate| rate.to_string()),
            _ => {}
        }
        let value = serde_json::to_value(spec.model()?).ok()?.get(key)?.clone();
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// The same with another model in the place of a device.
    pub(crate) fn with_model(&self, device: &str, model: ModelParams) -> Scenario {
        let mut changed = self.clone();
        if let Some(device) = changed.topology.devices.get_mut(device) {
            device.source = DeviceSource::Model(Box::new(model));
        }
        changed
    }

    /// What a variant is built of.
    pub fn setup_of(&self, variant: &Variant) -> Setup {
        variant.stack.setup(&self.topology, &self.schedulers, self.machine_of(variant))
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

    /// Whose mirror a variant's disk is, where it is a model of somebody else's.
    pub(crate) fn model_of(&self, variant: &Variant) -> Option<Arrangement> {
        self.topology.volumes.get(&variant.stack.disk)?.model
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

#[cfg(test)]
mod tests {
    use steadfast_setup::options;

    use super::*;

    #[test]
    fn dirty_data_waits_as_long_as_on_a_mount_unless_it_is_said() {
        let scenario = Scenario::find_own("data-at-risk").unwrap();
        let waits = |name: &str| {
            let variant = scenario.variants.iter().find(|v| v.name == name).unwrap();
            let mut options = options::mount(&format!("{},commit=9", variant.stack.mount)).unwrap();
            scenario.machine_of(variant).apply(64 << 20, &mut options);
            let pages = options.page_cache;
            (pages.dirty_expire_ms, pages.writeback_interval_ms)
        };
        assert_eq!(waits("ordered"), (9000, 4500));
        assert_eq!(waits("ordered-30s"), (30_000, 5000));
    }
}
