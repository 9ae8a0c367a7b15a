//! What describes an embedded flash chip.

use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::model::params::{Checker, Rate};

/// The parameters of an [`Emmc`](super::Emmc). Default: [`EmmcParams::pro_class_1500_16`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmmcParams {
    /// What it is, for people.
    pub description: String,
    /// Capacity in sectors of 512 bytes.
    pub sectors: u64,
    /// Command and response on the bus, and the host's handling of them.
    pub command_us: f64,
    /// Rate of the bus.
    pub bus_mb_per_s: f64,
    /// Before the first byte of a read that does not continue the one before.
    pub read_access_us: f64,
    /// Rate at which the flash is read.
    pub read_mb_per_s: f64,
    /// For a write beside its bytes: programming the last page and the mapping.
    pub write_access_us: f64,
    /// Rate at which the flash is programmed.
    pub write_mb_per_s: f64,
    /// Size of an erase group in KiB.
    pub erase_group_kb: u32,
    /// Erase groups that can be written to at a time.
    pub open_groups: u32,
    /// Erasing a group.
    pub erase_ms: f64,
    /// Whether the volatile cache is on.
    pub cache: bool,
    /// Its size in KiB.
    pub cache_kb: u32,
    /// What a flush costs beside writing out the cache.
    pub flush_us: f64,
}

impl Default for EmmcParams {
    fn default() -> Self {
        EmmcParams::pro_class_1500_16()
    }
}

impl EmmcParams {
    /// Samsung eMMC Pro Class 1500, 16 GB. What comes from where is in the text of
    /// [`emmc`](super).
    pub fn pro_class_1500_16() -> Self {
        EmmcParams {
            description: "eMMC 4.5, 16 GB (model of Samsung eMMC Pro Class 1500)".into(),
            sectors: 30_777_344,
            command_us: 20.0,
            bus_mb_per_s: 200.0,
            read_access_us: 236.0,
            read_mb_per_s: 140.0,
            write_access_us: 544.0,
            write_mb_per_s: 50.0,
            erase_group_kb: 512,
            open_groups: 64,
            erase_ms: 2.0,
            cache: false,
            cache_kb: 512,
            flush_us: 565.0,
        }
    }
}

/// The parameters in the units the model computes with.
#[derive(Debug)]
pub(super) struct Derived {
    pub command_ns: u64,
    pub bus: Rate,
    pub read_access_ns: u64,
    pub read: Rate,
    pub write_access_ns: u64,
    pub write: Rate,
    pub group: u64,
    pub open_groups: usize,
    pub erase_ns: u64,
    pub cache: bool,
    pub cache_bytes: u64,
    pub flush_ns: u64,
}

impl EmmcParams {
    pub(super) fn derive(&self) -> Result<Derived, ModelError> {
        let c = Checker("emmc");
        c.count("sectors", self.sectors, 1, 1 << 40)?;
        Ok(Derived {
            command_ns: c.us("command_us", self.command_us)?,
            bus: c.rate("bus_mb_per_s", self.bus_mb_per_s)?,
            read_access_ns: c.us("read_access_us", self.read_access_us)?,
            read: c.rate("read_mb_per_s", self.read_mb_per_s)?,
            write_access_ns: c.us("write_access_us", self.write_access_us)?,
            write: c.rate("write_mb_per_s", self.write_mb_per_s)?,
            group: c.count("erase_group_kb", self.erase_group_kb.into(), 4, 1 << 20)? * 1024,
            open_groups: c.count("open_groups", self.open_groups.into(), 1, 1 << 16)? as usize,
            erase_ns: c.ms("erase_ms", self.erase_ms)?,
            cache: self.cache,
            cache_bytes: c.count("cache_kb", self.cache_kb.into(), 4, 1 << 24)? * 1024,
            flush_ns: c.us("flush_us", self.flush_us)?,
        })
    }
}
