//! What describes an NVRAM card.

use crate::model::Battery;
use crate::model::parameters::{Source, parameters};

const DATA: Source = Source::Sheet("Micro Memory, MM-5425CN");
const DRIVER: Source = Source::Sheet("Linux, drivers/block/umem.c, version 2.3");

parameters! {
    /// The parameters of an [`Nvram`](super::Nvram). Default: Micro Memory MM-5425CN, 256 MB.
    /// What comes from where is in the text of [`nvram`](super).
    pub struct NvramParams {
        /// What it is, for people.
        description: String = "NVRAM card, 256 MB (model of Micro Memory MM-5425CN)".into(), "",
            Source::Choice;
        /// Capacity in MiB.
        size_mib: u32 = 256, [1, 1 << 16], "MiB", DATA;
        /// Width of the bus in bits.
        bus_width_bits: u32 = 64, [8, 1024], "bits", DATA;
        /// Clock of the bus in MHz.
        bus_clock_mhz: f64 = 66.667, "MHz", DATA;
        /// Bytes moved between two arbitrations of the bus.
        burst_bytes: u32 = 512, [8, 1 << 20], "bytes", Source::Assumed("not published");
        /// Clocks that a burst costs beside its data.
        burst_overhead_clocks: u32 = 16, [0, 1 << 20], "clocks",
            Source::Follows("PCI: a target has 16 clocks to its first data phase");
        /// Bytes that one descriptor moves at most.
        descriptor_bytes: u32 = 4096, [512, 1 << 24], "bytes", DRIVER;
        /// Time that a descriptor costs beside its data.
        descriptor_overhead_us: f64 = 2.5, "us",
            Source::Assumed("41 clocks of the bus, and the engine's own work");
        /// Descriptors in a chain at most.
        chain_descriptors: u32 = 128, [1, 1 << 20], "descriptors", DRIVER;
        /// From the end of a chain until its requests are answered and the next is started.
        interrupt_us: f64 = 10.0, "us",
            Source::Assumed("not published");
        /// Requests that the driver holds at a time.
        queue_depth: u32 = 128, [1, 1 << 20], "requests", Source::Assumed("not published");
        /// State of the two batteries.
        batteries: [Battery; 2] = [Battery::Good; 2], "", Source::Choice;
        /// How many of them must be good for the contents to survive.
        batteries_needed: u32 = 1, [1, 2], "batteries",
            Source::Assumed("not published");
        /// Whether the memory has been written once.
        initialised: bool = true, "", Source::Choice;
    }
}
