//! The devices of a run: those that the models' registry offers as disks, in real time, with
//! volatile caches.

use std::str::FromStr;
use std::sync::Arc;

use steadfast_devices::model::parameters::ModelKind;
use steadfast_devices::model::{KINDS, Model, ModelParams, NvramParams};
use steadfast_vfs::options::choose;

/// Size of a journal card in MiB.
const CARD_MIB: u32 = 32;

/// Which disk: a kind that can be the disk of a power-cut test.
#[derive(Debug, Clone, Copy)]
pub struct Disk {
    kind: &'static ModelKind,
    least_bytes: u64,
}

/// Where the journal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalMedium {
    /// In the file system.
    Internal,
    /// On a battery-backed card.
    Nvram,
}

impl Disk {
    /// All that can be named.
    pub fn all() -> impl Iterator<Item = Disk> {
        KINDS.iter().filter_map(|kind| {
            let least_bytes = kind.test_disk_bytes_min?;
            Some(Disk { kind, least_bytes })
        })
    }

    /// Their names.
    pub fn names() -> Vec<&'static str> {
        Disk::all().map(Disk::name).collect()
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.kind.name
    }

    /// The smallest one, in bytes.
    pub fn least_bytes(self) -> u64 {
        self.least_bytes
    }

    /// Its parameters.
    pub fn params(self, size: u64) -> ModelParams {
        (self.kind.default)().test_disk(size)
    }

    /// The disk, in the caller's world.
    pub fn build(self, size: u64) -> Result<Arc<dyn Model>, String> {
        self.params(size).build("disk").map_err(|e| e.to_string())
    }
}

impl FromStr for Disk {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Disk::all()
            .find(|disk| disk.name() == text)
            .ok_or_else(|| format!("--device {text} is unknown: {}", choose(Disk::names())))
    }
}

impl JournalMedium {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            JournalMedium::Internal => "internal",
            JournalMedium::Nvram => "nvram",
        }
    }

    /// The parameters of the model of the journal's own device, if it has one.
    pub fn params(self) -> Option<ModelParams> {
        if self == JournalMedium::Internal {
            return None;
        }
        let card = NvramParams { size_mib: CARD_MIB, initialised: true, ..NvramParams::default() };
        Some(ModelParams::Nvram(card))
    }

    /// The journal's own device, if it has one.
    pub fn build(self) -> Result<Option<Arc<dyn Model>>, String> {
        let model = |params: ModelParams| params.build("journal").map_err(|e| e.to_string());
        self.params().map(model).transpose()
    }
}

impl FromStr for JournalMedium {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "internal" => Ok(JournalMedium::Internal),
            "nvram" => Ok(JournalMedium::Nvram),
            _ => Err(format!("--journal {text} is unknown: choose internal or nvram")),
        }
    }
}
