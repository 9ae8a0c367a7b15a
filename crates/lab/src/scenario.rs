//! Scenario files: what to build, what to run on it, and what to compare.
//!
//! A scenario is one TOML file; docs/lab.md describes every key. Unknown keys are errors, so that
//! a misspelt option cannot silently change what is measured.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use steadfast_crash::risk::PeerKind;
use steadfast_devices::model::ModelParams;

use crate::LabError;
use crate::results::Figure;

mod workload;

pub use workload::{FilesSpec, Workload, WorkloadKind};

/// The scenarios that come with the program: name and text.
const EMBEDDED: [(&str, &str); 2] = [
    ("nvram-journal", include_str!("../scenarios/nvram-journal.toml")),
    ("data-at-risk", include_str!("../scenarios/data-at-risk.toml")),
];

/// A scenario as written in its file, checked.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
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
    #[serde(default)]
    pub source: Option<String>,
    /// The simulated machine.
    #[serde(default)]
    pub machine: Machine,
    /// What is run.
    pub workload: Workload,
    /// Devices by name.
    #[serde(rename = "device")]
    pub devices: BTreeMap<String, ModelParams>,
    /// Variants to compare; the first that is measured is the baseline.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// Published figures.
    #[serde(default)]
    pub published: Vec<Published>,
}

/// The simulated machine.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Processors.
    pub cpus: usize,
    /// Page cache as a share of the benchmark's data (all children's files together), so that a
    /// run at a smaller size sees the same relation of memory to data.
    pub page_cache_per_data: f64,
}

impl Default for Machine {
    fn default() -> Self {
        Machine { cpus: 4, page_cache_per_data: 0.5 }
    }
}

/// One variant.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Short name.
    pub name: String,
    /// For people.
    pub label: String,
    /// The device that holds the file system.
    pub disk: String,
    /// The device that holds the journal; absent: the journal is on `disk`.
    #[serde(default)]
    pub journal: Option<String>,
    /// The kernel's file system of this name instead of Steadfast's ext4: a peer, in real time.
    #[serde(default)]
    pub kernel: Option<String>,
    /// mkfs options.
    #[serde(default)]
    pub mkfs: String,
    /// Mount options.
    pub mount: String,
    /// `both` (default), `speed` or `risk`.
    #[serde(default)]
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
}

impl RunKind {
    /// Whether the benchmark runs.
    pub fn speed(self) -> bool {
        self != RunKind::Risk
    }

    /// Whether the power is cut.
    pub fn risk(self) -> bool {
        self != RunKind::Speed
    }
}

/// Published speeds of one test.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The test's name.
    pub test: String,
    /// Which of IOzone's sums is quoted.
    #[serde(default)]
    pub figure: Figure,
    /// kB/s by variant name.
    pub kb_per_s: BTreeMap<String, f64>,
}

impl Scenario {
    /// Reads a scenario from TOML text. `origin` names it in messages.
    pub fn parse(text: &str, origin: &str) -> Result<Scenario, LabError> {
        let scenario: Scenario = toml::from_str(text)
            .map_err(|e| LabError::Scenario { origin: origin.into(), what: e.to_string() })?;
        scenario.check().map_err(|what| LabError::Scenario { origin: origin.into(), what })?;
        Ok(scenario)
    }

    /// Finds a scenario: one that comes with the program, or a file.
    pub fn find(name_or_file: &str) -> Result<Scenario, LabError> {
        if let Some((name, text)) = EMBEDDED.iter().find(|(n, _)| *n == name_or_file) {
            return Scenario::parse(text, name);
        }
        match std::fs::read_to_string(name_or_file) {
            Ok(text) => Scenario::parse(&text, name_or_file),
            Err(e) => Err(LabError::NotFound {
                name: name_or_file.into(),
                reason: e.to_string(),
                known: EMBEDDED.map(|(n, _)| n).join(", "),
            }),
        }
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

    /// The kernel's file system that a variant asks for.
    fn check_kernel(&self, v: &Variant) -> Result<(), String> {
        let Some(kernel) = &v.kernel else { return Ok(()) };
        let wrong = |what: String| Err(format!("variant '{}': {what}", v.name));
        if PeerKind::of(kernel).is_none() {
            let known = PeerKind::ALL.map(PeerKind::name).join(", ");
            return wrong(format!("kernel = '{kernel}' is not known; known: {known}"));
        }
        if self.workload.files.is_none() {
            return wrong("a variant with 'kernel' needs workload.files".into());
        }
        if v.journal.is_some() {
            return wrong("a variant with 'kernel' has its journal on the disk".into());
        }
        if self.devices.get(&v.disk).is_some_and(|d| !d.takes_time()) {
            return wrong("a variant with 'kernel' needs a modelled disk".into());
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.workload.kind()?;
        if self.version != 1 {
            return Err(format!("version {} is not known; this program reads 1", self.version));
        }
        if self.machine.cpus == 0 {
            return Err("machine.cpus must be at least 1".into());
        }
        let share = self.machine.page_cache_per_data;
        if !(share.is_finite() && share > 0.0 && share <= 100.0) {
            return Err(format!(
                "machine.page_cache_per_data is {share}; it must be above 0 and at most 100"
            ));
        }
        let mut names = BTreeSet::new();
        for v in &self.variants {
            if !names.insert(v.name.as_str()) {
                return Err(format!("two variants are called '{}'", v.name));
            }
            for device in std::iter::once(&v.disk).chain(&v.journal) {
                if !self.devices.contains_key(device) {
                    let known: Vec<_> = self.devices.keys().map(String::as_str).collect();
                    return Err(format!(
                        "variant '{}' uses device '{device}', which is not described; \
                         described are: {}",
                        v.name,
                        known.join(", ")
                    ));
                }
            }
            self.check_kernel(v)?;
            if self.workload.files.is_some() && v.run != RunKind::Both {
                return Err(format!(
                    "variant '{}': workload.files measures and cuts one and the same run; leave \
                     'run' out",
                    v.name
                ));
            }
            if v.journal.as_ref() == Some(&v.disk) {
                return Err(format!(
                    "variant '{}': journal and disk are the same device; leave 'journal' out \
                     for a journal on the disk",
                    v.name
                ));
            }
        }
        if !self.variants.iter().any(|v| v.run.speed() || v.run.risk()) {
            return Err("there is no [[variant]] to run".into());
        }
        for p in &self.published {
            if let Some(v) = p.kb_per_s.keys().find(|v| !names.contains(v.as_str())) {
                return Err(format!("published '{}' names the unknown variant '{v}'", p.test));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_scenarios_parse() {
        assert!(Scenario::embedded().iter().any(|s| s.name == "nvram-journal"));
    }

    #[test]
    fn mistakes_are_named() {
        let text = EMBEDDED[0].1;
        let wrong = |from: &str, to: &str| {
            assert!(text.contains(from), "{from}");
            Scenario::parse(&text.replacen(from, to, 1), "test").unwrap_err().to_string()
        };
        assert!(wrong("disk = \"disk\"", "disk = \"dsk\"").contains("'dsk'"));
        assert!(wrong("version = 1", "version = 9").contains("version 9"));
        assert!(wrong("quick_size", "quik_size").contains("quik_size"));
        assert!(wrong("kind = \"hdd\"", "kind = \"drum\"").contains("drum"));
        assert!(wrong("disk = \"disk\"", "disk = \"disk\"\nkernel = \"xfs\"").contains("files"));
        let peers = EMBEDDED[1].1;
        let zfs = peers.replacen("kernel = \"xfs\"", "kernel = \"zfs\"", 1);
        assert!(Scenario::parse(&zfs, "test").unwrap_err().to_string().contains("'zfs'"));
        assert!(Scenario::find("no-such").unwrap_err().to_string().contains("nvram-journal"));
    }
}
