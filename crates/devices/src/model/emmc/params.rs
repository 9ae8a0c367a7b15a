//! What describes an embedded flash chip.

use crate::model::ModelError;
use crate::model::checker::{ByteRate, ParameterChecker};
use crate::model::parameters::{Source, parameters};

const SHEET: Source = Source::Sheet("Samsung, announcement of eMMC Pro Class 1500, August 2012");
const JEDEC: Source = Source::Sheet("JEDEC JESD84-B45");

parameters! {
    /// The parameters of an [`Emmc`](super::Emmc). Default: [`EmmcParams::pro_class_1500_16`].
    pub struct EmmcParams {
        /// What it is, for people.
        description: String = "eMMC 4.5, 16 GB (model of Samsung eMMC Pro Class 1500)".into(), "",
            Source::Choice;
        /// Capacity in sectors of 512 bytes.
        sectors: u64 = 30_777_344, "sectors of 512 bytes",
            Source::Assumed("not published");
        /// Command and response on the bus, and the host's handling of them.
        command_us: f64 = 20.0, "us",
            Source::Assumed("not published");
        /// Rate of the bus.
        bus_mb_per_s: f64 = 200.0, "MB/s", JEDEC;
        /// Before the first byte of a read that does not continue the one before.
        read_access_us: f64 = 236.0, "us",
            Source::Follows("3,500 random reads a second (announcement)");
        /// Rate at which the flash is read.
        read_mb_per_s: f64 = 140.0, "MB/s", SHEET;
        /// For a write beside its bytes: programming the last page and the mapping.
        write_access_us: f64 = 544.0, "us",
            Source::Follows("1,500 random writes a second (announcement)");
        /// Rate at which the flash is programmed.
        write_mb_per_s: f64 = 50.0, "MB/s", SHEET;
        /// Size of an erase group in KiB.
        erase_group_kb: u32 = 512, "KiB", Source::Sheet("`erase_size` that such parts report");
        /// Erase groups that can be written to at a time.
        open_groups: u32 = 64, "groups", Source::Assumed("not published");
        /// Erasing a group.
        erase_ms: f64 = 2.0, "ms", Source::Assumed("not published");
        /// Whether the volatile cache is on.
        cache: bool = false, "", Source::Choice;
        /// Its size in KiB.
        cache_kb: u32 = 512, "KiB", Source::Assumed("not published");
        /// What a flush costs beside writing out the cache.
        flush_us: f64 = 565.0, "us", Source::Assumed("not published");
    }
}

impl EmmcParams {
    /// Samsung eMMC Pro Class 1500, 16 GB. What comes from where is in the text of
    /// [`emmc`](super).
    pub fn pro_class_1500_16() -> Self {
        EmmcParams::default()
    }
}

/// The parameters in the units the model computes with.
#[derive(Debug)]
pub(super) struct EmmcTimings {
    pub command_ns: u64,
    pub bus: ByteRate,
    pub read_access_ns: u64,
    pub read: ByteRate,
    pub write_access_ns: u64,
    pub write: ByteRate,
    pub group: u64,
    pub open_groups: usize,
    pub erase_ns: u64,
    pub cache: bool,
    pub cache_bytes: u64,
    pub flush_ns: u64,
}

impl EmmcParams {
    pub(super) fn derive(&self) -> Result<EmmcTimings, ModelError> {
        let c = ParameterChecker("emmc");
        c.count("sectors", self.sectors, 1, 1 << 40)?;
        Ok(EmmcTimings {
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
