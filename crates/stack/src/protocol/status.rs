//! What there is, and what went through it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use steadfast_volume::ondisk::label::LayoutKind;

/// Everything that a host keeps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StackStatus {
    /// Version of the program.
    pub version: String,
    /// Process of the host.
    pub pid: u32,
    /// Nanoseconds since it was started.
    pub up_ns: u64,
    /// Its configuration.
    pub config: PathBuf,
    /// Where the tree of files is mounted.
    pub tree: Option<PathBuf>,
    /// Devices and RAM disks, by name.
    pub devices: Vec<DeviceStatus>,
    /// Volumes: what a volume is made of comes before it.
    pub volumes: Vec<VolumeStatus>,
    /// Other names.
    pub aliases: Vec<Alias>,
    /// Mirrors of which the data is kept, though they are none any more.
    pub retired: Vec<RetiredMirror>,
    /// File systems of the configuration, and those that commands have mounted.
    #[serde(default)]
    pub mounts: Vec<MountStatus>,
}

/// A file system that is mounted, or is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MountStatus {
    /// Its name: that of the configuration, or of what it is on.
    pub name: String,
    /// The volume or device that it is on.
    pub volume: String,
    /// Where.
    pub at: PathBuf,
    /// Options that were given.
    pub options: String,
    /// Its external journal, if one was named.
    pub journal: Option<String>,
    /// It is mounted.
    pub mounted: bool,
    /// Why it is not, if nobody has unmounted it.
    pub problem: Option<String>,
}

/// Another name for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    /// The alias.
    pub name: String,
    /// What it stands for.
    pub target: String,
}

/// A mirror that was taken apart, and its data kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredMirror {
    /// The name that it had.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Names of its legs.
    pub components: Vec<String>,
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// An image file or a block device.
    File,
    /// Memory of the host process.
    RamDisk,
}

/// A device or RAM disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Path of the file or block device.
    pub path: Option<String>,
    /// Size in bytes; 0 if it is not there.
    pub bytes: u64,
    /// It does not count as keeping its contents without power.
    pub volatile: bool,
    /// Why it is not there.
    pub problem: Option<String>,
    /// The volume that it is a component of.
    pub used_by: Option<String>,
    /// Where the data of that volume begins, in bytes; before it are label and map.
    pub data_start: Option<u64>,
    /// Of a mirror's leg: blocks of 4096 bytes that each copy of the region map has.
    pub map_blocks: Option<u32>,
    /// How many have its file open.
    pub open: u32,
    /// The kernel's block device over it, if [`Request::AttachKernel`](super::Request) made one.
    pub kernel: Option<String>,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its name.
    pub name: String,
    /// UUID, as its labels have it.
    pub uuid: String,
    /// What it is.
    pub kind: LayoutKind,
    /// Size in bytes; 0 if it is not assembled.
    pub bytes: u64,
    /// Names of its components: of a mirror those that are attached, in the order in which they
    /// were; of others as the data lies.
    pub components: Vec<String>,
    /// Bytes of each component in turn, of a stripe.
    pub interlace: Option<u32>,
    /// It does not keep its contents without power.
    pub volatile: bool,
    /// Why it is not assembled, and what to do.
    pub problem: Option<String>,
    /// The volume that it is a component of.
    pub used_by: Option<String>,
    /// Where the data of that volume begins, in bytes.
    pub data_start: Option<u64>,
    /// Of a mirror's leg: blocks of 4096 bytes that each copy of the region map has.
    pub map_blocks: Option<u32>,
    /// How many have its file open.
    pub open: u32,
    /// The kernel's block device over it, if [`Request::AttachKernel`](super::Request) made one.
    pub kernel: Option<String>,
    /// What it lacks of the redundancy that it should have, each with what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub degraded: Vec<String>,
    /// More, if it is a mirror that is assembled.
    pub mirror: Option<MirrorStatus>,
}

impl VolumeStatus {
    /// Whether it needs no attention.
    pub fn is_sound(&self) -> bool {
        self.problem.is_none() && self.degraded.is_empty() && self.mirror.iter().all(|m| m.whole)
    }
}

impl StackStatus {
    /// The volume of this name, or with this other name.
    pub fn into_volume(self, name: &str) -> Option<VolumeStatus> {
        let alias = self.aliases.iter().find(|alias| alias.name == name);
        let name = alias.map_or(name, |alias| alias.target.as_str());
        self.volumes.into_iter().find(|volume| volume.name == name)
    }

    /// What needs attention, a line each: what is not there or not mounted, and what has lost
    /// redundancy.
    pub fn problems(&self) -> Vec<String> {
        let line = |kind: &str, name: &str, what: &String| format!("{kind} '{name}': {what}");
        let mut all = Vec::new();
        for device in &self.devices {
            all.extend(device.problem.iter().map(|what| line("device", &device.name, what)));
        }
        for volume in &self.volumes {
            let name = &volume.name;
            all.extend(volume.problem.iter().map(|what| line("volume", name, what)));
            let degraded = volume.degraded.iter().map(|what| format!("degraded: {what}"));
            all.extend(degraded.map(|what| line("volume", name, &what)));
        }
        for mount in &self.mounts {
            all.extend(mount.problem.iter().map(|what| line("mount", &mount.name, what)));
        }
        all
    }
}

/// A mirror.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MirrorStatus {
    /// Legs in the order in which they were attached; those that are not attached come last.
    pub legs: Vec<LegStatus>,
    /// Names of the spares.
    pub spares: Vec<String>,
    /// Read policy, as [`Set`](super::Set) takes it.
    pub read: String,
    /// Write policy.
    pub write: String,
    /// When it is resynced, of several.
    pub pass: u8,
    /// Bytes of a region.
    pub region_bytes: u64,
    /// It keeps checksums.
    #[serde(default)]
    pub checksums: bool,
    /// Written bytes that no checksum covers.
    #[serde(default)]
    pub unchecked_bytes: u64,
    /// How many regions are in which state.
    pub regions: RegionCounts,
    /// Generation of the labels.
    pub generation: u64,
    /// A resync that runs.
    pub resync: Option<Progress>,
    /// Whether every durable leg is there and Okay.
    pub whole: bool,
    /// Why nothing can be written any more.
    pub failed: Option<String>,
}

/// A leg of a mirror.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LegStatus {
    /// Its place in the labels, which it keeps.
    pub slot: usize,
    /// UUID.
    pub uuid: String,
    /// Name of its component.
    pub component: String,
    /// `Okay`, `Resyncing`, `Needs maintenance`, `Last Erred`, `Offline` or `Unavailable`.
    pub state: String,
    /// It does not count as keeping its contents without power.
    pub volatile: bool,
    /// False: a leg of a mirror that was taken up again, which nobody has attached since. It holds
    /// the data all the same.
    pub attached: bool,
    /// Bytes of the volume that it lacks and is to be given; 0 of a partial leg.
    pub lacking_bytes: u64,
    /// Of a partial leg: bytes of the volume that it holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_bytes: Option<u64>,
    /// Bytes of data that it has room for.
    #[serde(default)]
    pub room: u64,
    /// The last error, if it failed.
    pub error: Option<String>,
    /// What it was asked for since the mirror was assembled.
    #[serde(flatten)]
    pub counters: steadfast_volume::mirror::Counters,
    /// Mean time of a read in nanoseconds; 0: none yet.
    pub read_latency_ns: u64,
}

/// How many regions of a mirror are in which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RegionCounts {
    /// Never written, or discarded.
    pub unwritten: u32,
    /// Their first write is in flight.
    pub filling: u32,
    /// A write may be in flight.
    pub dirty: u32,
    /// The same on all legs that do not lack them.
    pub clean: u32,
}

/// How far a resync is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes copied, of all legs.
    pub done_bytes: u64,
    /// Bytes that were lacking when it began.
    pub total_bytes: u64,
}

impl Progress {
    /// Whole percent.
    pub fn percent(&self) -> u64 {
        match self.total_bytes {
            0 => 100,
            total => (u128::from(self.done_bytes) * 100 / u128::from(total)) as u64,
        }
    }
}

/// Counters of everything with a name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StackCounters {
    /// Nanoseconds since the host was started, when they were read.
    pub now_ns: u64,
    /// Devices and RAM disks by name, then volumes as in [`StackStatus::volumes`].
    pub of: Vec<Counters>,
}

/// What went through a device or volume since the host was started. They only grow. Times are in
/// nanoseconds; nobody waits before a device here, so all of it is service time (`rtime` and
/// `rlentime` of Solaris's `kstat_io`; its wait queue is always empty).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Name of the device or volume.
    pub name: String,
    /// Reads that were done.
    pub reads: u64,
    /// Writes that were done.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes that were done.
    pub flushes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Requests that are not answered yet.
    pub in_flight: u64,
    /// Time with at least one request in flight.
    pub run_ns: u64,
    /// Time multiplied by the number of requests in flight.
    pub run_len_ns: u64,
}
