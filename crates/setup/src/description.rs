//! The description of a stack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steadfast_devices::filter::record::Media;
use steadfast_devices::filter::{FaultRule, schedule};
use steadfast_devices::model::ModelParams;
use steadfast_runtime::Sim;
use steadfast_volume::ondisk::label::LayoutKind;
use steadfast_volume::{ReadPolicy, WritePolicy};

use crate::driver::DriverCost;
use crate::error::SetupError;
use crate::machine::Machine;
use crate::mirrors::Arrangement;
use crate::namespace::Namespace;
use crate::path::from_folder;
use crate::table;
use crate::tables::check_members;

/// A stack: what it is made of, its file system, and the machine that it is on.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Devices and volumes: those of the file system, and others that a workload uses beside.
    pub topology: Topology,
    /// The device or volume that holds the file system.
    pub disk: String,
    /// The device or volume that holds the journal; absent: the journal is on `disk`.
    pub journal: Option<String>,
    /// The request scheduler before the disk; absent: requests go to it as they come.
    pub scheduler: Option<schedule::SchedulerSettings>,
    /// mkfs options ([`options::mkfs`](crate::options::mkfs)).
    pub mkfs: String,
    /// Mount options ([`options::mount`](crate::options::mount)).
    pub mount: String,
    /// Processors, memory, write-back.
    pub machine: Machine,
}

table! {
    /// Devices, and volumes made of them, by name. No volume is made of itself, and no device is in
    /// one twice: the reader looks.
    #[derive(Default)]
    pub struct Topology: "the file", check check_members {
        /// Tables: the devices, by name.
        devices as "device": BTreeMap<String, DeviceSpec>;
        /// Tables: volumes made of devices, by name.
        volumes as "volume": BTreeMap<String, VolumeSpec>, else "none";
    }
}

/// A device.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceSpec {
    /// What it is.
    pub source: DeviceSource,
    /// What its driver costs the processor.
    pub driver: DriverCost,
    /// How it is used, if it is memory.
    pub namespace: Namespace,
    /// Requests that it does not answer well; the times are counted from each mount.
    pub faults: Vec<FaultRule>,
    /// What a power cut does to it.
    pub media: Media,
}

/// What a device is.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceSource {
    /// A model: its kind with its parameters.
    Model(Box<ModelParams>),
    /// A file, a block device, a range of memory or a volume of this machine
    /// ([`path::open`](crate::path::open)).
    Path(PathBuf),
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeSpec {
    /// What it is.
    pub kind: LayoutKind,
    /// Names of devices and of other volumes; of a mirror its legs, in their order.
    pub members: Vec<String>,
    /// Legs that do not count as durable, whatever they say of themselves.
    pub volatile: Vec<String>,
    /// The leg that may be smaller than the volume, and holds the regions that are read most.
    pub partial: Vec<String>,
    /// Which leg answers a read.
    pub read: ReadPolicy,
    /// How a write goes to the legs.
    pub write: WritePolicy,
    /// Bytes of a mirror; `None`: all that its legs have room for.
    pub size: Option<u64>,
    /// Bytes of a mirror's region; `None`: a 16384th of its size.
    pub region_bytes: Option<u32>,
    /// Bytes of a stripe's piece.
    pub interlace_bytes: u32,
    /// Whose mirror it is, where it is a model of somebody else's.
    pub model: Option<Arrangement>,
}

impl Setup {
    /// The devices that it stands on: of its disk, then of its journal.
    pub fn leaves(&self) -> Vec<String> {
        let both = std::iter::once(&self.disk).chain(&self.journal);
        both.flat_map(|name| self.topology.leaves_of(name)).collect()
    }

    /// A simulation of its machine.
    pub fn simulation(&self, seed: u64) -> Sim {
        Sim::new(seed).cpus(self.machine.cpus)
    }
}

impl DeviceSpec {
    /// The model, if it is one.
    pub fn model(&self) -> Option<&ModelParams> {
        match &self.source {
            DeviceSource::Model(model) => Some(model),
            DeviceSource::Path(_) => None,
        }
    }

    /// The model, to be changed, if it is one.
    pub fn model_mut(&mut self) -> Option<&mut ModelParams> {
        match &mut self.source {
            DeviceSource::Model(model) => Some(model),
            DeviceSource::Path(_) => None,
        }
    }

    /// In words, as a report shows it.
    pub fn description(&self) -> String {
        match &self.source {
            DeviceSource::Model(model) => {
                format!("{}{}", model.description(), self.namespace.in_words())
            }
            DeviceSource::Path(path) => path.display().to_string(),
        }
    }
}

impl VolumeSpec {
    /// In words, as a report shows it.
    pub fn description(&self) -> String {
        let (kind, members) = (self.kind.name(), self.members.join(", "));
        let read = match self.read {
            ReadPolicy::Preferred(slot) => {
                format!("preferred:{}", self.members.get(slot).map_or("", String::as_str))
            }
            other => other.name(),
        };
        match self.kind {
            LayoutKind::Mirror if self.model.is_some() => format!("model of a mirror of {members}"),
            LayoutKind::Mirror => {
                format!("mirror of {members}; reads {read}, writes {}", self.write.name())
            }
            LayoutKind::Stripe => {
                format!("{kind} of {members}, {} KiB", self.interlace_bytes >> 10)
            }
            LayoutKind::Concat => format!("{kind} of {members}"),
        }
    }
}

impl Topology {
    /// The paths of this machine are meant from the folder of the file that says them.
    pub fn said_in(&mut self, file: &str) {
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        for device in self.devices.values_mut() {
            if let DeviceSource::Path(path) = &mut device.source {
                *path = from_folder(folder, path);
            }
        }
    }

    /// Whether something of this name is there.
    pub fn contains(&self, name: &str) -> bool {
        self.devices.contains_key(name) || self.volumes.contains_key(name)
    }

    /// The error of a name that stands for nothing.
    pub(crate) fn no_device(&self, name: &str) -> SetupError {
        let known = self.devices.keys().chain(self.volumes.keys()).cloned().collect();
        SetupError::NoDevice { name: name.to_owned(), known }
    }

    /// The devices that a device or volume is made of, in the order of its members.
    pub fn leaves_of(&self, name: &str) -> Vec<String> {
        match self.volumes.get(name) {
            Some(spec) => spec.members.iter().flat_map(|member| self.leaves_of(member)).collect(),
            None => vec![name.to_owned()],
        }
    }

    /// About how many bytes a device or volume has: of a volume without what its labels take, and
    /// of a path as many as there can be.
    pub fn bytes_of(&self, name: &str) -> u64 {
        let Some(volume) = self.volumes.get(name) else {
            return match self.devices.get(name).map(|device| &device.source) {
                Some(DeviceSource::Model(model)) => model.bytes(),
                // Known when it is opened.
                Some(DeviceSource::Path(_)) => u64::MAX,
                None => 0,
            };
        };
        let each = volume.members.iter().map(|member| self.bytes_of(member));
        match volume.kind {
            LayoutKind::Mirror => {
                let whole = volume.members.iter().filter(|m| !volume.partial.contains(m));
                let least = whole.map(|member| self.bytes_of(member)).min().unwrap_or(0);
                volume.size.map_or(least, |size| size.min(least))
            }
            LayoutKind::Concat => each.fold(0, u64::saturating_add),
            LayoutKind::Stripe => {
                each.min().unwrap_or(0).saturating_mul(volume.members.len() as u64)
            }
        }
    }
}
