//! What describes an NVDIMM.

use serde::{Deserialize, Serialize};

use crate::model::ModelError;
use crate::model::checker::ParameterChecker;
use crate::model::parameters::{Source, parameters};

/// The state of what feeds the module while it saves itself: a battery or supercapacitors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnergySource {
    /// Charged and healthy.
    #[default]
    Good,
    /// Not yet charged: a save may not end.
    Charging,
    /// Broken.
    Failed,
    /// Not there, or switched off.
    Disabled,
}

impl EnergySource {
    pub(super) fn in_words(self) -> &'static str {
        match self {
            EnergySource::Good => "is good",
            EnergySource::Charging => "is charging",
            EnergySource::Failed => "has failed",
            EnergySource::Disabled => "is disabled",
        }
    }
}

/// What is saved beside the memory's own cells when the power fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PowerFailDomain {
    /// What the memory controller has accepted (ADR). The caches of the processors are lost.
    #[default]
    Adr,
    /// The caches, too (eADR): what was stored is durable.
    Eadr,
}

const MODULE: Source = Source::Sheet("HPE 8GB NVDIMM Single Rank x4 DDR4-2133 Module, 2016");
const JEDEC: Source = Source::Sheet("JEDEC, JESD79-4 DDR4 SDRAM, speed bin DDR4-2133P");
const CHIP: Source = Source::Follows("JESD79-4, devices of 4 Gbit and 4 bits");
const INTEL: Source = Source::Sheet("Intel 64 and IA-32 Architectures Optimization Reference");

parameters! {
    /// The parameters of an [`Nvdimm`](super::Nvdimm). Default: [`NvdimmParams::hpe_8gb`].
    pub struct NvdimmParams {
        /// What it is, for people.
        description: String = "NVDIMM-N, 8 GB (model of HPE 8GB DDR4-2133)".into(), "",
            Source::Choice;
        /// Capacity in MiB.
        size_mib: u32 = 8192, "MiB", MODULE;
        /// Transfers of the channel a second, in millions.
        data_rate_mt_per_s: u32 = 2133, "MT/s", MODULE;
        /// Width of the channel, without the bits of the check code.
        channel_bits: u32 = 64, "bits", JEDEC;
        /// From the column's address to the first data (CL).
        column_ns: f64 = 14.06, "ns", JEDEC;
        /// From the row's address to the column's (tRCD).
        row_ns: f64 = 14.06, "ns", JEDEC;
        /// Closing the row that was open (tRP).
        precharge_ns: f64 = 14.06, "ns", JEDEC;
        /// Banks, each of which holds one row open.
        banks: u32 = 16, "banks", JEDEC;
        /// Bytes of a row over all devices of the rank.
        row_bytes: u32 = 8192, "bytes", CHIP;
        /// How long a refresh keeps the rank busy (tRFC).
        refresh_ns: f64 = 260.0, "ns", CHIP;
        /// From one refresh to the next (tREFI).
        refresh_interval_us: f64 = 7.8, "us", JEDEC;
        /// Way of a line between the processor and the controller's queue, both ways: what a load
        /// takes beside the memory, and a fence for the line that came last.
        controller_ns: f64 = 50.0, "ns",
            Source::Assumed("loads of 80 to 90 ns on such servers, less the memory's share");
        /// Lines that a processor has in flight at a time.
        fill_buffers: u32 = 10, "lines", INTEL;
        /// Lines that the controller holds before the memory has taken them.
        write_queue_lines: u32 = 64, "lines", Source::Assumed("not published");
        /// Writing a line back from the caches (clwb), one after the other.
        write_back_ns: f64 = 11.4, "ns",
            Source::Follows("measured: 64 clwb and a fence take 0.78 us of 1.34 us");
        /// What is saved when the power fails.
        power_fail_domain: PowerFailDomain = PowerFailDomain::Adr, "", MODULE;
        /// State of the battery or the supercapacitors.
        energy_source: EnergySource = EnergySource::Good, "", Source::Choice;
        /// Whether the host has armed the module, so that it saves itself when the power fails.
        armed: bool = true, "", Source::Choice;
    }
}

impl NvdimmParams {
    /// HPE 8GB NVDIMM Single Rank x4 DDR4-2133. What comes from where is in the text of
    /// [`nvdimm`](super).
    pub fn hpe_8gb() -> Self {
        NvdimmParams::default()
    }
}

/// Bytes of a cache line, which is what a burst moves.
pub(super) const LINE: u64 = 64;

/// The parameters in the units the model computes with.
#[derive(Debug, Clone)]
pub(super) struct NvdimmTimings {
    pub size: u64,
    /// A line on the channel, with its share of the refreshes.
    pub burst_ns: f64,
    pub column_ns: f64,
    /// What a line in a row that is not open costs more.
    pub row_miss_ns: f64,
    pub banks: usize,
    pub row_bytes: u64,
    pub controller_ns: f64,
    pub fill_buffers: f64,
    pub write_queue_lines: usize,
    pub write_back_ns: f64,
    pub saves_caches: bool,
}

impl NvdimmParams {
    pub(super) fn derive(&self) -> Result<NvdimmTimings, ModelError> {
        let c = ParameterChecker("nvdimm");
        let ns = |name, value: f64| c.us(name, value / 1e3).map(|_| value);
        let width = c.count("channel_bits", self.channel_bits.into(), 8, 1024)? / 8;
        let rate = c.count("data_rate_mt_per_s", self.data_rate_mt_per_s.into(), 1, 1 << 20)?;
        let refresh = ns("refresh_ns", self.refresh_ns)?;
        let interval = c.us("refresh_interval_us", self.refresh_interval_us)? as f64;
        if refresh >= interval {
            let why = format!("must be less than refresh_interval_us, {} us", interval / 1e3);
            return Err(c.refuse("refresh_ns", refresh, why));
        }
        let row = c.count("row_bytes", self.row_bytes.into(), LINE, 1 << 24)?;
        if !row.is_power_of_two() {
            return Err(c.refuse("row_bytes", row, "must be a power of two"));
        }
        let burst_ns = (LINE.div_ceil(width)) as f64 * 1e3 / rate as f64;
        let buffers = c.count("fill_buffers", self.fill_buffers.into(), 1, 1024)?;
        let queue = c.count("write_queue_lines", self.write_queue_lines.into(), 1, 1 << 16)?;
        Ok(NvdimmTimings {
            size: c.count("size_mib", self.size_mib.into(), 1, 1 << 24)? << 20,
            burst_ns: burst_ns / (1.0 - refresh / interval),
            column_ns: ns("column_ns", self.column_ns)?,
            row_miss_ns: ns("precharge_ns", self.precharge_ns)? + ns("row_ns", self.row_ns)?,
            banks: c.count("banks", self.banks.into(), 1, 1024)? as usize,
            row_bytes: row,
            controller_ns: ns("controller_ns", self.controller_ns)?,
            fill_buffers: buffers as f64,
            write_queue_lines: queue as usize,
            write_back_ns: ns("write_back_ns", self.write_back_ns)?,
            saves_caches: self.power_fail_domain == PowerFailDomain::Eadr,
        })
    }
}
