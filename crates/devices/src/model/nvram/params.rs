//! What describes an NVRAM card.

use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::model::checker::ParameterChecker;
use crate::model::parameters::{Source, parameters};

/// The state of a battery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Battery {
    /// Charged and healthy.
    #[default]
    Good,
    /// Not yet charged: it cannot be relied on.
    Charging,
    /// Broken.
    Failed,
    /// Switched off.
    Disabled,
}

impl Battery {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Battery::Good => "is good",
            Battery::Charging => "is charging",
            Battery::Failed => "has failed",
            Battery::Disabled => "is disabled",
        }
    }
}

const DATA: Source = Source::Sheet("Micro Memory, MM-5425CN");
const DRIVER: Source = Source::Sheet("Linux, drivers/block/umem.c, version 2.3");

parameters! {
    /// The parameters of an [`Nvram`](super::Nvram). Default: [`NvramParams::mm_5425cn`].
    pub struct NvramParams {
        /// What it is, for people.
        description: String = "NVRAM card, 256 MB (model of Micro Memory MM-5425CN)".into(), "",
            Source::Choice;
        /// Capacity in MiB.
        size_mib: u32 = 256, "MiB", DATA;
        /// Width of the bus in bits.
        bus_width_bits: u32 = 64, "bits", DATA;
        /// Clock of the bus in MHz.
        bus_clock_mhz: f64 = 66.667, "MHz", DATA;
        /// Bytes moved between two arbitrations of the bus.
        burst_bytes: u32 = 512, "bytes", Source::Assumed("not published");
        /// Clocks that a burst costs beside its data.
        burst_overhead_clocks: u32 = 16, "clocks",
            Source::Follows("PCI: a target has 16 clocks to its first data phase");
        /// Bytes that one descriptor moves at most.
        descriptor_bytes: u32 = 4096, "bytes", DRIVER;
        /// Time that a descriptor costs beside its data.
        descriptor_overhead_us: f64 = 2.5, "us",
            Source::Assumed("41 clocks of the bus, and the engine's own work");
        /// Descriptors in a chain at most.
        chain_descriptors: u32 = 128, "descriptors", DRIVER;
        /// From the end of a chain until its requests are answered and the next is started.
        interrupt_us: f64 = 10.0, "us",
            Source::Assumed("not published");
        /// Requests that the driver holds at a time.
        queue_depth: u32 = 128, "requests", Source::Assumed("not published");
        /// State of the two batteries.
        batteries: [Battery; 2] = [Battery::Good; 2], "", Source::Choice;
        /// How many of them must be good for the contents to survive.
        batteries_needed: u32 = 1, "batteries",
            Source::Assumed("not published");
        /// Whether the memory has been written once.
        initialised: bool = true, "", Source::Choice;
    }
}

impl NvramParams {
    /// Micro Memory MM-5425CN, 256 MB. What comes from where is in the text of
    /// [`nvram`](super).
    pub fn mm_5425cn() -> Self {
        NvramParams::default()
    }
}

/// The parameters in the units the model computes with.
#[derive(Debug)]
pub(super) struct NvramTimings {
    pub size: u64,
    pub clock_ns: f64,
    pub bytes_per_clock: u64,
    pub burst_bytes: u64,
    pub burst_overhead_clocks: u64,
    pub descriptor_bytes: u64,
    pub descriptor_overhead_ns: u64,
    pub chain_descriptors: u64,
    pub interrupt_ns: u64,
}

impl NvramParams {
    pub(super) fn derive(&self) -> Result<NvramTimings, ModelError> {
        let c = ParameterChecker("nvram");
        c.count("queue_depth", self.queue_depth.into(), 1, 1 << 20)?;
        c.count("batteries_needed", self.batteries_needed.into(), 1, 2)?;
        // A clock of so many MHz is a rate of as many million ticks a second.
        c.rate("bus_clock_mhz", self.bus_clock_mhz)?;
        let descriptor = c.count("descriptor_bytes", self.descriptor_bytes.into(), 512, 1 << 24)?;
        let overhead = self.burst_overhead_clocks;
        Ok(NvramTimings {
            size: c.count("size_mib", self.size_mib.into(), 1, 1 << 16)? << 20,
            clock_ns: 1e3 / self.bus_clock_mhz,
            bytes_per_clock: c.count("bus_width_bits", self.bus_width_bits.into(), 8, 1024)? / 8,
            burst_bytes: c.count("burst_bytes", self.burst_bytes.into(), 8, 1 << 20)?,
            burst_overhead_clocks: c.count("burst_overhead_clocks", overhead.into(), 0, 1 << 20)?,
            descriptor_bytes: descriptor,
            descriptor_overhead_ns: c.us("descriptor_overhead_us", self.descriptor_overhead_us)?,
            chain_descriptors: c.count(
                "chain_descriptors",
                self.chain_descriptors.into(),
                1,
                1 << 20,
            )?,
            interrupt_ns: c.us("interrupt_us", self.interrupt_us)?,
        })
    }
}

impl NvramTimings {
    /// Nanoseconds that one descriptor of `bytes` takes.
    pub(super) fn descriptor_time(&self, bytes: u64) -> u64 {
        let clocks = bytes.div_ceil(self.bytes_per_clock)
            + bytes.div_ceil(self.burst_bytes) * self.burst_overhead_clocks;
        (clocks as f64 * self.clock_ns).round() as u64 + self.descriptor_overhead_ns
    }
}
