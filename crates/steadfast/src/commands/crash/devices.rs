//! The devices of a run: models in real time, with volatile caches.

use std::str::FromStr;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::model::emmc::EmmcParams;
use steadfast_devices::model::hdd::{HddParams, WriteCache};
use steadfast_devices::model::ssd::{SsdCache, SsdParams};
use steadfast_devices::model::{Model, ModelParams, NvramParams};
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;

/// Size of a journal card in MiB.
const CARD_MIB: u32 = 32;

/// Which disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// A solid-state disk.
    Ssd,
    /// A disk.
    Hdd,
    /// An embedded flash chip.
    Emmc,
    /// Memory that behaves as a disk with a cache, and takes no time.
    Ram,
}

/// Where the journal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalPlace {
    /// In the file system.
    Internal,
    /// On a battery-backed card.
    Nvram,
}

const DISKS: [(&str, Disk); 4] =
    [("ssd", Disk::Ssd), ("hdd", Disk::Hdd), ("emmc", Disk::Emmc), ("ram", Disk::Ram)];

impl Disk {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        DISKS.iter().find(|(_, disk)| *disk == self).map_or("", |(name, _)| *name)
    }

    /// The smallest one, in bytes: a disk of few cylinders has no curve of seek times.
    pub fn least_bytes(self) -> u64 {
        match self {
            Disk::Hdd => 1 << 30,
            Disk::Ssd | Disk::Emmc | Disk::Ram => 1 << 20,
        }
    }

    /// The parameters of its model; `None` for memory.
    pub fn params(self, size: u64) -> Option<ModelParams> {
        let sectors = size / 512;
        Some(match self {
            Disk::Ssd => ModelParams::Ssd(SsdParams {
                sectors,
                write_cache: SsdCache::Volatile,
                ..SsdParams::default()
            }),
            Disk::Hdd => ModelParams::Hdd(HddParams {
                sectors,
                write_cache: WriteCache::On,
                ..HddParams::default()
            }),
            Disk::Emmc => {
                ModelParams::Emmc(EmmcParams { sectors, cache: true, ..EmmcParams::default() })
            }
            Disk::Ram => return None,
        })
    }

    /// The disk, in the caller's world.
    pub fn build(self, size: u64) -> Result<Device, String> {
        match self.params(size) {
            Some(params) => Ok(Device::Model(params.build("disk").map_err(|e| e.to_string())?)),
            None => Ok(Device::Ram(Ram::new("disk", size).persistent().with_volatile_cache())),
        }
    }
}

impl FromStr for Disk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        DISKS.iter().find(|(name, _)| *name == text).map(|(_, disk)| *disk).ok_or_else(|| {
            let known = DISKS.map(|(name, _)| name).join(", ");
            format!("--device {text} is not known; known: {known}")
        })
    }
}

impl JournalPlace {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            JournalPlace::Internal => "internal",
            JournalPlace::Nvram => "nvram",
        }
    }

    /// The parameters of the model of the journal's own device, if it has one.
    pub fn params(self) -> Option<ModelParams> {
        if self == JournalPlace::Internal {
            return None;
        }
        let card = NvramParams { size_mib: CARD_MIB, initialised: true, ..NvramParams::default() };
        Some(ModelParams::Nvram(card))
    }

    /// The journal's own device, if it has one.
    pub fn build(self) -> Result<Option<Device>, String> {
        let model = |params: ModelParams| params.build("journal").map_err(|e| e.to_string());
        Ok(self.params().map(model).transpose()?.map(Device::Model))
    }
}

impl FromStr for JournalPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "internal" => Ok(JournalPlace::Internal),
            "nvram" => Ok(JournalPlace::Nvram),
            _ => Err(format!("--journal {text} is not known; known: internal, nvram")),
        }
    }
}

/// A device with its contents at hand.
pub enum Device {
    /// A model.
    Model(Arc<dyn Model>),
    /// Memory.
    Ram(Ram),
}

impl Device {
    /// The device itself.
    pub fn block(&self) -> Arc<dyn BlockDevice> {
        match self {
            Device::Model(model) => Arc::clone(model) as Arc<dyn BlockDevice>,
            Device::Ram(ram) => Arc::new(ram.clone()),
        }
    }

    /// Puts contents in, in no time.
    pub fn fill(&self, contents: Store) -> Result<(), String> {
        match self {
            Device::Model(model) => model.set_contents(contents).map_err(|e| e.to_string()),
            Device::Ram(ram) => {
                ram.replace(contents);
                Ok(())
            }
        }
    }
}
