//! What describes a solid-state disk.

use crate::model::parameters::{Source, choice, parameters};

choice! {
    /// What completes a write.
    pub enum SsdCache {
        /// Being in a buffer that capacitors save: nothing completed is lost, flushes cost nothing.
        #[default]
        Protected = "protected",
        /// Being in a buffer that a power cut empties; a flush programs it and the mapping.
        Volatile = "volatile",
        /// Being in flash.
        Off = "off",
    }
}

const SHEET: Source = Source::Sheet("Intel, SSD DC S3700 Series Product Specification");
const ONFI: Source = Source::Assumed("as of ONFI 2 parts of that time");

parameters! {
    /// The parameters of an [`Ssd`](super::Ssd). Default: Intel DC S3700, 400 GB.
    /// What comes from where is in the text of [`ssd`](super).
    pub struct SsdParams {
        /// What it is, for people.
        description: String = "SATA SSD, 400 GB (model of Intel DC S3700)".into(), "",
            Source::Choice;
        /// Capacity in sectors of 512 bytes.
        sectors: u64 = 781_422_768, [1, 1 << 40], "sectors of 512 bytes", SHEET;
        /// Time of the controller for a command, one after the other.
        command_us: f64 = 13.3, "us",
            Source::Follows("75,000 random reads a second (product specification)");
        /// Rate of the link.
        interface_mb_per_s: f64 = 500.0, "MB/s", SHEET;
        /// Commands that the drive accepts at a time.
        queue_depth: u32 = 32, [1, 1 << 20], "commands", SHEET;
        /// Channels to the flash.
        channels: u32 = 8, [1, 1024], "", Source::Sheet("reviews that opened the drive");
        /// Dies at each channel.
        dies_per_channel: u32 = 4, [1, 1024], "",
            Source::Assumed("16 KiB each in 1.14 ms make 460 MB/s");
        /// Rate of a channel.
        channel_mb_per_s: f64 = 166.0, "MB/s", ONFI;
        /// What a die reads or programs at a time, in KiB.
        page_kb: u32 = 16, [1, 1 << 16], "KiB", Source::Assumed("two planes of 8 KiB");
        /// From the array to the register.
        read_us: f64 = 50.0, "us", ONFI;
        /// From the register to the array.
        program_us: f64 = 1140.0, "us",
            Source::Follows("sequential writes of 460 MB/s (product specification)");
        /// What a read that comes into a program costs both.
        suspend_us: f64 = 20.0, "us", Source::Assumed("not published");
        /// Pages in an erase block.
        pages_per_block: u32 = 256, [1, 1 << 20], "pages", ONFI;
        /// Erasing a block.
        erase_ms: f64 = 3.0, "ms", ONFI;
        /// Bytes programmed for each byte of a random write, collection included; at least 1.
        random_write_amplification: f64 = 3.1, [1, 1000], "",
            Source::Follows("36,000 random writes a second (product specification)");
        /// What completes a write.
        write_cache: SsdCache = SsdCache::Protected, "", Source::Choice;
        /// Buffer for writes in KiB.
        write_buffer_kb: u32 = 4096, [1, 1 << 24], "KiB",
            Source::Assumed("not published");
        /// From a write's being in the buffer to the host's knowing.
        buffer_us: f64 = 43.5, "us",
            Source::Follows("a typical write latency of 65 us (product specification)");
        /// What a flush of a volatile buffer costs beside programming it: the mapping's own pages.
        flush_us: f64 = 1140.0, "us", Source::Assumed("one program of a die");
    }
}
