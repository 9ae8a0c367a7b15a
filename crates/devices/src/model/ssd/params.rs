//! What describes a solid-state disk.

use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::model::params::{Checker, Rate};

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

/// The parameters of an [`Ssd`](super::Ssd). Default: [`SsdParams::dc_s3700_400`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SsdParams {
    /// What it is, for people.
    pub description: String,
    /// Capacity in sectors of 512 bytes.
    pub sectors: u64,
    /// Time of the controller for a command, one after the other.
    pub command_us: f64,
    /// Rate of the link.
    pub interface_mb_per_s: f64,
    /// Commands that the drive accepts at a time.
    pub queue_depth: u32,
    /// Channels to the flash.
    pub channels: u32,
    /// Dies at each channel.
    pub dies_per_channel: u32,
    /// Rate of a channel.
    pub channel_mb_per_s: f64,
    /// What a die reads or programs at a time, in KiB.
    pub page_kb: u32,
    /// From the array to the register.
    pub read_us: f64,
    /// From the register to the array.
    pub program_us: f64,
    /// What a read that comes into a program costs both.
    pub suspend_us: f64,
    /// Pages in an erase block.
    pub pages_per_block: u32,
    /// Erasing a block.
    pub erase_ms: f64,
    /// Bytes programmed for each byte of a random write, collection included; at least 1.
    pub random_write_amplification: f64,
    /// What completes a write.
    pub write_cache: SsdCache,
    /// Buffer for writes in KiB.
    pub write_buffer_kb: u32,
    /// From a write's being in the buffer to the host's knowing.
    pub buffer_us: f64,
    /// What a flush of a volatile buffer costs beside programming it: the mapping's own pages.
    pub flush_us: f64,
}

impl Default for SsdParams {
    fn default() -> Self {
        SsdParams::dc_s3700_400()
    }
}

impl SsdParams {
    /// Intel DC S3700, 400 GB. What comes from where is in the text of [`ssd`](super).
    pub fn dc_s3700_400() -> Self {
        SsdParams {
            description: "SATA SSD, 400 GB (model of Intel DC S3700)".into(),
            sectors: 781_422_768,
            command_us: 13.3,
            interface_mb_per_s: 500.0,
            queue_depth: 32,
            channels: 8,
            dies_per_channel: 4,
            channel_mb_per_s: 166.0,
            page_kb: 16,
            read_us: 50.0,
            program_us: 1140.0,
            suspend_us: 20.0,
            pages_per_block: 256,
            erase_ms: 3.0,
            random_write_amplification: 3.1,
            write_cache: SsdCache::Protected,
            write_buffer_kb: 4096,
            buffer_us: 43.5,
            flush_us: 1140.0,
        }
    }
}

/// The parameters in the units the model computes with.
#[derive(Debug)]
pub(super) struct Derived {
    pub command_ns: u64,
    pub interface: Rate,
    pub channels: usize,
    pub dies: usize,
    pub channel: Rate,
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
    pub(super) fn derive(&self) -> Result<Derived, ModelError> {
        let c = Checker("ssd");
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
        Ok(Derived {
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
