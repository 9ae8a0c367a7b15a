//! What describes an NVDIMM.

use crate::model::Battery;
use crate::model::parameters::{Source, choice, parameters};

choice! {
    /// What is saved beside the memory's own cells when the power fails.
    pub enum PowerFailDomain {
        /// What the memory controller has accepted (ADR). The caches of the processors are lost.
        #[default]
        Adr = "adr",
        /// The caches, too (eADR): what was stored is durable.
        Eadr = "eadr",
    }
}

const MODULE: Source = Source::Sheet("HPE 8GB NVDIMM Single Rank x4 DDR4-2133 Module, 2016");
const JEDEC: Source = Source::Sheet("JEDEC, JESD79-4 DDR4 SDRAM, speed bin DDR4-2133P");
const CHIP: Source = Source::Follows("JESD79-4, devices of 4 Gbit and 4 bits");
const INTEL: Source = Source::Sheet("Intel 64 and IA-32 Architectures Optimization Reference");

parameters! {
    /// The parameters of an [`Nvdimm`](super::Nvdimm). Default: HPE 8GB NVDIMM
    /// Single Rank x4 DDR4-2133. What comes from where is in the text of [`nvdimm`](super).
    pub struct NvdimmParams {
        /// What it is, for people.
        description: String = "NVDIMM-N, 8 GB (model of HPE 8GB DDR4-2133)".into(), "",
            Source::Choice;
        /// Capacity in MiB.
        size_mib: u32 = 8192, [1, 1 << 24], "MiB", MODULE;
        /// Transfers of the channel a second, in millions.
        data_rate_mt_per_s: u32 = 2133, [1, 1 << 20], "MT/s", MODULE;
        /// Width of the channel, without the bits of the check code.
        channel_bits: u32 = 64, [8, 1024], "bits", JEDEC;
        /// From the column's address to the first data (CL).
        column_ns: f64 = 14.06, "ns", JEDEC;
        /// From the row's address to the column's (tRCD).
        row_ns: f64 = 14.06, "ns", JEDEC;
        /// Closing the row that was open (tRP).
        precharge_ns: f64 = 14.06, "ns", JEDEC;
        /// Banks, each of which holds one row open.
        banks: u32 = 16, [1, 1024], "banks", JEDEC;
        /// Bytes of a row over all devices of the rank.
        row_bytes: u32 = 8192, [LINE as i64, 1 << 24], "bytes", CHIP;
        /// How long a refresh keeps the rank busy (tRFC).
        refresh_ns: f64 = 260.0, "ns", CHIP;
        /// From one refresh to the next (tREFI).
        refresh_interval_us: f64 = 7.8, "us", JEDEC;
        /// Way of a line between the processor and the controller's queue, both ways: what a load
        /// takes beside the memory, and a fence for the line that came last.
        controller_ns: f64 = 50.0, "ns",
            Source::Assumed("loads of 80 to 90 ns on such servers, less the memory's share");
        /// Lines that a processor has in flight at a time.
        fill_buffers: u32 = 10, [1, 1024], "lines", INTEL;
        /// Lines that the controller holds before the memory has taken them.
        write_queue_lines: u32 = 64, [1, 1 << 16], "lines", Source::Assumed("not published");
        /// Writing a line back from the caches (clwb), one after the other.
        write_back_ns: f64 = 11.4, "ns",
            Source::Follows("measured: 64 clwb and a fence take 0.78 us of 1.34 us");
        /// What is saved when the power fails.
        power_fail_domain: PowerFailDomain = PowerFailDomain::Adr, "", MODULE;
        /// State of the battery or the supercapacitors.
        energy_source: Battery = Battery::Good, "", Source::Choice;
        /// Whether the host has armed the module, so that it saves itself when the power fails.
        armed: bool = true, "", Source::Choice;
    }
}

/// Bytes of a cache line, which is what a burst moves.
pub(super) const LINE: u64 = 64;
