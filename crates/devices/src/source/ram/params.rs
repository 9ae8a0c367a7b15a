//! What describes a RAM disk.

use steadfast_block::{DeviceInfo, Persistence};

use super::ram_info;
use crate::model::ModelParams;
use crate::model::parameters::{Describe, ModelKind, ParameterTable, Size, Source, parameters};

parameters! {
    /// The parameters of a RAM disk.
    pub struct RamParams {
        /// Its size, with k, m, g; a rest that is no whole block of 4096 bytes is not used.
        size: Size = Size(256 << 20), [4096, 1 << 50], "bytes", Source::Choice;
        /// Whether it says that its contents survive a power cut.
        persistent: bool = false, "", Source::Choice;
        /// Whether completed writes may be lost until a flush.
        volatile_cache: bool = false, "", Source::Choice;
    }
}

impl Describe for RamParams {
    const KIND: ModelKind = ModelKind {
        name: "ram",
        title: "RAM disk",
        preset: "",
        physics: "none: requests take no time",
        parameters: Self::PARAMETERS,
        is_memory: true,
        default: || ModelParams::Ram(RamParams::default()),
        test_disk_bytes_min: Some(1 << 20),
    };

    fn info(&self, name: &str) -> DeviceInfo {
        let mut info = ram_info(name, self.size.0 / 4096 * 4096);
        info.volatile_cache = self.volatile_cache;
        if self.persistent {
            info.persistence = Persistence::Persistent;
        }
        info
    }

    fn description(&self) -> String {
        let Size(bytes) = self.size;
        match bytes {
            0..0x10_0000 => format!("RAM disk of {} KiB", bytes >> 10),
            _ => format!("RAM disk of {} MiB", bytes >> 20),
        }
    }

    fn test_disk(self, bytes: u64) -> Self {
        RamParams { size: Size(bytes), persistent: true, volatile_cache: true }
    }
}
