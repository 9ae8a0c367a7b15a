//! The persistent state of a host: the state file beside the configuration.
//!
//! # Invariants
//!
//! 1. It is replaced atomically: a new file is written, made durable, and renamed over the old one.
//!    After a full disk or a power cut the old one is left. (`record/file.rs`)
//! 2. A change is recorded before it is made: a leg that a label names is also named here. A
//!    recorded leg may not exist yet; the next start detects and reports this. For a removal the
//!    new file is written before, and renamed after it: a full disk is found before.

mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use steadfast_volume::ondisk::label::LayoutKind;

pub use file::StateFile;

/// What the file says that it is.
const FORMAT: &str = "steadfast-stack";
const VERSION: u32 = 1;

/// Everything that is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Records {
    format: String,
    version: u32,
    /// Files and block devices by name.
    pub devices: BTreeMap<String, DeviceRecord>,
    /// RAM disks by name: their bytes.
    pub ramdisks: BTreeMap<String, u64>,
    /// Other names: what they stand for.
    pub aliases: BTreeMap<String, String>,
    /// Volumes; what one is made of comes before it.
    pub volumes: Vec<VolumeRecord>,
    /// Mirrors that were taken apart, and their data kept.
    pub retired: Vec<VolumeRecord>,
    /// Names of the configuration file that commands have removed.
    pub removed: BTreeSet<String>,
    /// The kernel's block devices over files of the tree, by the name of what is under them: a host
    /// that was killed leaves them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel: BTreeMap<String, KernelRecord>,
}

/// A loop device that the host has attached. The next host identifies it by all three fields if
/// this host is killed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelRecord {
    /// Where it is: `/dev/loop3`.
    pub path: PathBuf,
    /// The kernel's sequence number of it.
    pub sequence: u64,
    /// The machine's start that the number is of.
    pub boot: String,
}

/// A file or block device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceRecord {
    /// Where it is.
    pub path: PathBuf,
    /// It does not count as keeping its contents without power.
    pub volatile: bool,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VolumeRecord {
    /// Its name.
    pub name: String,
    /// UUID, as the labels have it; `None`: it is found by its name.
    pub uuid: Option<String>,
    /// What it is.
    pub kind: LayoutKind,
    /// Components: of a mirror those that were attached, in that order.
    pub components: Vec<String>,
    /// Legs of a mirror that was taken up again, which nobody has attached since.
    pub kept: Vec<String>,
    /// Spares.
    pub spares: Vec<String>,
    /// Components that do not count as keeping their contents.
    pub volatile: Vec<String>,
    /// Bytes of each component in turn, of a stripe.
    pub interlace: Option<u32>,
    /// Reads go to the leg that was attached first.
    pub reads_first: bool,
    /// A leg with data of the mirror was used for something else while it was retired.
    pub lost_a_leg: bool,
}

impl VolumeRecord {
    /// All names that it uses.
    pub fn uses(&self) -> impl Iterator<Item = &String> {
        self.components.iter().chain(&self.kept).chain(&self.spares)
    }

    /// Forgets a component.
    pub fn forget(&mut self, name: &str) {
        for names in [&mut self.components, &mut self.kept, &mut self.spares, &mut self.volatile] {
            names.retain(|n| n != name);
        }
    }
}

impl Records {
    /// Whether both records are the same, without their writers.
    pub(crate) fn names_the_same(&self, other: &Records) -> bool {
        let known = |records: &Records| Records {
            format: String::new(),
            version: VERSION,
            ..records.clone()
        };
        known(self) == known(other)
    }

    /// The volume that something is a component of.
    pub(crate) fn user_of(&self, name: &str) -> Option<&VolumeRecord> {
        self.volumes.iter().find(|v| v.uses().any(|used| used == name))
    }

    /// How many levels of volumes something is: none, of a device.
    pub(crate) fn levels(&self, name: &str) -> usize {
        let below = |volume: &VolumeRecord| volume.uses().map(|c| self.levels(c)).max();
        self.volume(name).map_or(0, |volume| 1 + below(volume).unwrap_or(0))
    }

    /// A volume's record.
    pub fn volume(&self, name: &str) -> Option<&VolumeRecord> {
        self.volumes.iter().find(|v| v.name == name)
    }

    /// The same, to change it.
    pub(crate) fn volume_mut(&mut self, name: &str) -> Option<&mut VolumeRecord> {
        self.volumes.iter_mut().find(|v| v.name == name)
    }

    /// Whether anything has this name.
    pub fn has(&self, name: &str) -> bool {
        self.what_is(name).is_some()
    }

    /// What has this name, for people.
    pub(crate) fn what_is(&self, name: &str) -> Option<String> {
        if let Some(target) = self.aliases.get(name) {
            return Some(format!("an alias of '{target}'"));
        }
        let all = [
            (self.devices.contains_key(name), "a device"),
            (self.ramdisks.contains_key(name), "a RAM disk"),
            (self.volume(name).is_some(), "a volume"),
        ];
        all.into_iter().find(|(is, _)| *is).map(|(_, what)| what.to_owned())
    }

    /// What a name stands for.
    pub(crate) fn resolved<'n>(&'n self, name: &'n str) -> &'n str {
        self.aliases.get(name).map_or(name, String::as_str)
    }
}
