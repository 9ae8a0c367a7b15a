//! What describes a solid-state disk.

use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::model::checker::{ByteRate, ParameterChecker};
use crate::model::parameters::{Source, parameters};

/// What completes a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SsdCache {
    /// Being in a buffer that capacitors save: nothing completed is lost, flushes cost nothing.
    #[default]
    Protected,
    /// Being in a buffer that a power cut empties; a flush programs it and the mapping.
    Volatile,
    /// Being in flash.
    Off,
}

const SHEET: Source = Source::Sheet("Intel, SSD DC S3700 Series Product Specification");
const ONFI: Source = Source::Assumed("as of ONFI 2 parts of that time");

parameters! {
    /// The parameters of an [`Ssd`](super::Ssd). Default: [`SsdParams::dc_s3700_400`].
    pub struct SsdParams {
        /// What it is, for people.
        description: String = "SATA SSD, 400 GB (model of Intel DC S3700)".into(), "",
            Source::Choice;
        /// Capacity in sectors of 512 bytes.
        sectors: u64 = 781_422_768, "sectors of 512 bytes", SHEET;
        /// Time of the controller for a command, one after the other.
        command_us: f64 = 13.3, "us",
            Source::Follows("75,000 random reads a second (product specification)");
        /// Rate of the link.
        interface_mb_per_s: f64 = 500.0, "MB/s", SHEET;
        /// Commands that the drive accepts at a time.
        queue_depth: u32 = 32, "commands", SHEET;
        /// Channels to the flash.
        channels: u32 = 8, "", Source::Sheet("reviews that opened the drive");
        /// Dies at each channel.
        dies_per_channel: u32 = 4, "", Source::Assumed("16 KiB each in 1.14 ms make 460 MB/s");
        /// Rate of a channel.
        channel_mb_per_s: f64 = 166.0, "MB/s", ONFI;
        /// What a die reads or programs at a time, in KiB.
        page_kb: u32 = 16, "KiB", Source::Assumed("two planes of 8 KiB");
        /// From the array to the register.
        read_us: f64 = 50.0, "us", ONFI;
        /// From the register to the array.
        program_us: f64 = 1140.0, "us",
            Source::Follows("sequential writes of 460 MB/s (product specification)");
        /// What a read that comes into a program costs both.
        suspend_us: f64 = 20.0, "us", Source::Assumed("not published");
        /// Pages in an erase block.
        pages_per_block: u32 = 256, "pages", ONFI;
        /// Erasing a block.
        erase_ms: f64 = 3.0, "ms", ONFI;
        /// Bytes programmed for each byte of a random write, collection included; at least 1.
        random_write_amplification: f64 = 3.1, "",
            Source::Follows("36,000 random writes a second (product specification)");
        /// What completes a write.
        write_cache: SsdCache = SsdCache::Protected, "", Source::Choice;
        /// Buffer for writes in KiB.
        write_buffer_kb: u32 = 4096, "KiB", Source::Assumed("not published");
        /// From a write's being in the buffer to the host's knowing.
        buffer_us: f64 = 43.5, "us",
            Source::Follows("a typical write latency of 65 us (product specification)");
        /// What a flush of a volatile buffer costs beside programming it: the mapping's own pages.
        flush_us: f64 = 1140.0, "us", Source::Assumed("one program of a die");
    }
}

impl SsdParams {
    /// Intel DC S3700, 400 GB. What comes from where is in the text of [`ssd`](super).
    pub fn dc_s3700_400() -> Self {
        SsdParams::default()
    }
}

/// The parameters in the units the model computes with.
#[derive(Debug)]
pub(super) struct SsdTimings {
    pub command_ns: u64,
    pub interface: ByteRate,
    pub channels: usize,
    pub dies: usize,
    pub channel: ByteRate,
    pub page: u64,
    pub read_ns: u64,
    pub program_ns: u64,
    pub suspend_ns: u64,
    pub pages_per_block: u64,
    pub erase_ns: u64,
    pub amplification: f64,
    pub cache: SsdCache,
    pub buffer: u64,
    pub buffer_ns: u64,
    pub flush_ns: u64,
}

impl SsdParams {
    pub(super) fn derive(&self) -> Result<SsdTimings, ModelError> {
        let c = ParameterChecker("ssd");
        c.count("sectors", self.sectors, 1, 1 << 40)?;
        c.count("queue_depth", self.queue_depth.into(), 1, 1 << 20)?;
        let channels = c.count("channels", self.channels.into(), 1, 1024)?;
        let per_channel = c.count("dies_per_channel", self.dies_per_channel.into(), 1, 1024)?;
        let page = c.count("page_kb", self.page_kb.into(), 1, 1 << 16)? * 1024;
        let amplification =
            c.share("random_write_amplification", self.random_write_amplification, 1000.0)?;
        if amplification < 1.0 {
            return Err(c.refuse("random_write_amplification", amplification, "must be 1 or more"));
        }
        Ok(SsdTimings {
            command_ns: c.us("command_us", self.command_us)?,
            interface: c.rate("interface_mb_per_s", self.interface_mb_per_s)?,
            channels: channels as usize,
            dies: (channels * per_channel) as usize,
            channel: c.rate("channel_mb_per_s", self.channel_mb_per_s)?,
            page,
            read_ns: c.us("read_us", self.read_us)?,
            program_ns: c.us("program_us", self.program_us)?,
            suspend_ns: c.us("suspend_us", self.suspend_us)?,
            pages_per_block: c.count("pages_per_block", self.pages_per_block.into(), 1, 1 << 20)?,
            erase_ns: c.ms("erase_ms", self.erase_ms)?,
            amplification,
            cache: self.write_cache,
            buffer: c.count("write_buffer_kb", self.write_buffer_kb.into(), 1, 1 << 24)? * 1024,
            buffer_ns: c.us("buffer_us", self.buffer_us)?,
            flush_ns: c.us("flush_us", self.flush_us)?,
        })
    }
}
