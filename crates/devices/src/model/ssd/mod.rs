//! A solid-state disk: dies behind channels, a write buffer, garbage collection.
//!
//! # Where the figures of the preset come from
//!
//! Intel, *Solid-State Drive DC S3700 Series Product Specification* (400 GB, 2.5 inch, SATA):
//! random reads of 4 KB up to 75,000 a second and random writes up to 36,000 at queue depth 32,
//! sequential 500 and 460 MB/s, typical write latency 65 us, buffers protected by capacitors,
//! 25 nm MLC. Eight channels: reviews that opened it. From these follow:
//! * a command takes the controller 13.3 us, of which others wait: 75,000 a second;
//! * the link carries the sequential 500 MB/s;
//! * 32 dies that program 16 KiB (two planes of 8 KiB) at a time in 1.14 ms make 460 MB/s;
//! * a random write programs 3.1 times its bytes: 36,000 x 4 KiB is 147 MB/s of those 460.
//!
//! Assumed: four dies a channel; 50 us from the array to a die's register and 166 MB/s on a
//! channel (ONFI 2 parts of that time); blocks of 256 such pages, erased in 3 ms; a program
//! pauses for a read in 20 us.
//!
//! # How it works
//!
//! A read takes the controller, then each page its die and its channel, then the link. A write
//! goes over the link into the buffer; full pages are programmed in the background, dies in turn.
//! A write that does not continue one of the last few streams scatters over blocks that will have
//! to be collected: it causes `random_write_amplification` times its bytes of programming, and
//! each die erases a block after so many pages. So a fresh, empty drive is not modelled but a
//! full one in its steady state.

mod flash;
mod params;

use steadfast_block::DeviceInfo;

use super::ModelParams;
use super::engine::Engine;
use super::parameters::{Describe, ModelKind, ParameterTable};
use super::units::sectors;
use flash::Flash;
pub use params::{SsdCache, SsdParams};

/// A modelled solid-state disk.
pub type Ssd = Engine<Flash>;

impl Describe for SsdParams {
    const KIND: ModelKind = ModelKind {
        name: "ssd",
        title: "solid-state disk",
        preset: "Intel DC S3700, 400 GB",
        physics: "dies, channels, program and erase, protected or volatile cache",
        parameters: Self::PARAMETERS,
        is_memory: false,
        default: || ModelParams::Ssd(SsdParams::default()),
        test_disk_bytes_min: Some(1 << 20),
    };

    fn info(&self, name: &str) -> DeviceInfo {
        let mut info = DeviceInfo::new(name, self.description.clone(), sectors(self.sectors));
        info.physical_block = 4096;
        info.volatile_cache = self.write_cache == SsdCache::Volatile;
        info
    }

    fn test_disk(self, bytes: u64) -> Self {
        SsdParams { sectors: bytes / 512, write_cache: SsdCache::Volatile, ..self }
    }
}

#[cfg(test)]
mod tests;
