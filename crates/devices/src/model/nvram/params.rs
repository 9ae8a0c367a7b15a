//! What describes an NVRAM card.

use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::model::params::Checker;

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

/// The parameters of an [`Nvram`](super::Nvram). Default: [`NvramParams::mm_5425cn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NvramParams {
    /// What it is, for people.
    pub description: String,
    /// Capacity in MiB.
    pub size_mib: u32,
    /// Width of the bus in bits.
    pub bus_width_bits: u32,
    /// Clock of the bus in MHz.
    pub bus_clock_mhz: f64,
    /// Bytes moved between two arbitrations of the bus.
    pub burst_bytes: u32,
    /// Clocks that a burst costs beside its data.
    pub burst_overhead_clocks: u32,
    /// Bytes that one descriptor moves at most.
    pub descriptor_bytes: u32,
    /// Time that a descriptor costs beside its data.
    pub descriptor_overhead_us: f64,
    /// Descriptors in a chain at most.
    pub chain_descriptors: u32,
    /// From the end of a chain until its requests are answered and the next is started.
    pub interrupt_us: f64,
    /// Requests that the driver holds at a time.
    pub queue_depth: u32,
    /// State of the two batteries.
    pub batteries: [Battery; 2],
    /// How many of them must be good for the contents to survive.
    pub batteries_needed: u32,
    /// Whether the memory has been written once.
    pub initialised: bool,
}

impl Default for NvramParams {
    fn default() -> Self {
        NvramParams::mm_5425cn()
    }
}

impl NvramParams {
    /// Micro Memory MM-5425CN, 256 MB. What comes from where is in the text of
    /// [`nvram`](super).
    pub fn mm_5425cn() -> Self {
        NvramParams {
            description: "NVRAM card, 256 MB (model of Micro Memory MM-5425CN)".into(),
            size_mib: 256,
            bus_width_bits: 64,
            bus_clock_mhz: 66.667,
            burst_bytes: 512,
            burst_overhead_clocks: 16,
            descriptor_bytes: 4096,
            descriptor_overhead_us: 2.5,
            chain_descriptors: 128,
            interrupt_us: 10.0,
            queue_depth: 128,
            batteries: [Battery::Good; 2],
            batteries_needed: 1,
            initialised: true,
        }
    }
}

/// The parameters in the units the model computes with.
#[derive(Debug)]
pub(super) struct Derived {
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
    pub(super) fn derive(&self) -> Result<Derived, ModelError> {
        let c = Checker("nvram");
        c.count("queue_depth", self.queue_depth.into(), 1, 1 << 20)?;
        c.count("batteries_needed", self.batteries_needed.into(), 1, 2)?;
        // A clock of so many MHz is a rate of as many million ticks a second.
        c.rate("bus_clock_mhz", self.bus_clock_mhz)?;
        let descriptor = c.count("descriptor_bytes", self.descriptor_bytes.into(), 512, 1 << 24)?;
        let overhead = self.burst_overhead_clocks;
        Ok(Derived {
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

impl Derived {
    /// Nanoseconds that one descriptor of `bytes` takes.
    pub(super) fn descriptor_time(&self, bytes: u64) -> u64 {
        let clocks = bytes.div_ceil(self.bytes_per_clock)
            + bytes.div_ceil(self.burst_bytes) * self.burst_overhead_clocks;
        (clocks as f64 * self.clock_ns).round() as u64 + self.descriptor_overhead_ns
    }
}
