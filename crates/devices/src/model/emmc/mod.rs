//! An embedded flash chip: one command at a time, erase groups, an optional cache.
//!
//! # Where the figures of the preset come from
//!
//! Samsung's announcement of the eMMC Pro Class 1500 (e.MMC 4.5, 16 to 64 GB, August 2012):
//! sequential reads 140 MB/s, sequential writes 50 MB/s, random reads 3,500 and random writes
//! 1,500 a second. JEDEC JESD84-B45: an 8-bit bus in HS200 mode carries 200 MB/s; one command at
//! a time (queues came with 5.1); the cache is volatile, off at power-up, emptied by FLUSH_CACHE.
//! Erase groups of 512 KiB: as such parts report it (`erase_size` 524288). From these follow the
//! access times beside the transfer: 3,500 a second is 286 us for 4 KiB, 1,500 a second 667 us.
//!
//! Assumed: the part can hold 64 erase groups open for writing; 2 ms to erase a group.
//!
//! # How it works
//!
//! A write goes into its erase group. A group that is not open must be opened, and then the least
//! recently written group is closed: its data that was not rewritten is copied (read and programmed
//! at the sequential rates), and the old group is erased. So random writes within 64 groups run at
//! the announced rate, and random writes all over the part pay a relocation of a group each. A part
//! that maps pages (`mapping = "pages"`) pays none: where the host writes makes no difference then.
//! Of three parts with published figures none is like the former (docs/validation.md).

mod chip;
mod params;

use steadfast_block::DeviceInfo;

use super::ModelParams;
use super::engine::Engine;
use super::parameters::{Describe, ModelKind, ParameterTable};
use super::units::sectors;
use chip::Chip;
pub use params::{EmmcMapping, EmmcParams};

/// A modelled embedded flash chip.
pub type Emmc = Engine<Chip>;

impl Describe for EmmcParams {
    const KIND: ModelKind = ModelKind {
        name: "emmc",
        title: "embedded flash chip",
        preset: "Samsung eMMC Pro Class 1500, 16 GB",
        physics: "one command at a time, erase groups, cache",
        parameters: Self::PARAMETERS,
        is_memory: false,
        default: || ModelParams::Emmc(EmmcParams::default()),
        test_disk_bytes_min: Some(1 << 20),
    };

    fn info(&self, name: &str) -> DeviceInfo {
        let mut info = DeviceInfo::new(name, self.description.clone(), sectors(self.sectors));
        info.physical_block = 4096;
        info.volatile_cache = self.cache;
        info
    }

    fn test_disk(self, bytes: u64) -> Self {
        EmmcParams { sectors: bytes / 512, cache: true, ..self }
    }
}

#[cfg(test)]
mod tests;
