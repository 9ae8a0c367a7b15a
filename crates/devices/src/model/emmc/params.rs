//! What describes an embedded flash chip.

use crate::model::parameters::{Source, choice, parameters};

choice! {
    /// What the part knows the place of.
    pub enum EmmcMapping {
        /// Erase groups: one that is closed before all of it was rewritten is copied.
        #[default]
        Groups = "groups",
        /// Pages: what is written goes where there is room, and a group is erased for as many
        /// bytes as it holds. What else collecting costs is part of a write's other times.
        Pages = "pages",
    }
}

const SHEET: Source = Source::Sheet("Samsung, announcement of eMMC Pro Class 1500, August 2012");
const JEDEC: Source = Source::Sheet("JEDEC JESD84-B45");

parameters! {
    /// The parameters of an [`Emmc`](super::Emmc). Default: Samsung eMMC Pro Class
    /// 1500, 16 GB. What comes from where is in the text of [`emmc`](super).
    pub struct EmmcParams {
        /// What it is, for people.
        description: String = "eMMC 4.5, 16 GB (model of Samsung eMMC Pro Class 1500)".into(), "",
            Source::Choice;
        /// Capacity in sectors of 512 bytes.
        sectors: u64 = 30_777_344, [1, 1 << 40], "sectors of 512 bytes",
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
        erase_group_kb: u32 = 512, [4, 1 << 20], "KiB",
            Source::Sheet("`erase_size` that such parts report");
        /// What the part knows the place of.
        mapping: EmmcMapping = EmmcMapping::Groups, "", Source::Assumed("not published");
        /// Erase groups that can be written to at a time, where groups are mapped.
        open_groups: u32 = 64, [1, 1 << 16], "groups",
            Source::Assumed("not published");
        /// Erasing a group.
        erase_ms: f64 = 2.0, "ms", Source::Assumed("not published");
        /// Whether the volatile cache is on.
        cache: bool = false, "", Source::Choice;
        /// Its size in KiB.
        cache_kb: u32 = 512, [4, 1 << 24], "KiB", Source::Assumed("not published");
        /// What a flush costs beside writing out the cache.
        flush_us: f64 = 565.0, "us", Source::Assumed("not published");
    }
}
