//! How a scenario is run, and what all jobs of a seed share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use smart_default::SmartDefault;
use steadfast_bench::iozone;
use steadfast_setup::Overwrite;

use super::reals::Reals;
use super::recordings::Recordings;
use super::workload::Workload;
use crate::results::VariantTime;
use crate::scenario::{Scenario, Variant};

/// How to run a scenario; by default it is the quick run.
#[derive(Debug, Clone, SmartDefault)]
pub struct RunOptions {
    /// At the published size.
    pub full: bool,
    /// Cuts a variant; `None`: as many as the scenario says.
    pub cuts: Option<u64>,
    /// Seed of every random choice.
    #[default(1)]
    pub seed: u64,
    /// Run the kernel's file systems beside, in real time, as root.
    pub peers: bool,
    /// Measure in real time, without a simulation and without cuts, one at a time: what devices
    /// that are paths of this machine need. Says whether what is on them may be overwritten.
    pub real: Option<Overwrite>,
    /// Measure every combination of what `[band]` leaves unknown, too.
    pub band: bool,
    /// Where recordings and a row for each cut are written, if anywhere. What cannot be written
    /// is no failure of the run: see [`Recordings::take_failure`].
    pub record: Option<Arc<Recordings>>,
}

/// Who looks on while a scenario runs.
pub struct Watch<'a> {
    /// Called now and then with the share that is done and what is going on.
    pub progress: &'a dyn Fn(f64, &str),
    /// Once it is true no further part is begun, and the results are those of the parts that have
    /// ended.
    pub stop: &'a AtomicBool,
}

/// A variant's benchmark or its power cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Speed,
    Risk,
}

/// What all jobs of a seed share.
pub(super) struct Setting {
    pub scenario: Scenario,
    /// The scenario with the devices of the benchmark: scale models, at a reduced size.
    pub measured: Scenario,
    pub options: RunOptions,
    pub loads: Vec<Box<dyn Workload>>,
    pub cuts: u64,
    /// Cuts of the measured run itself.
    pub loss_cuts: u64,
    /// What was run in real time before.
    pub reals: Reals,
}

/// A variant that is run, and how.
#[derive(Clone, Copy)]
pub(super) struct Subject<'s> {
    pub setting: &'s Setting,
    pub variant: &'s Variant,
}

impl Subject<'_> {
    /// Whether its power is cut.
    pub fn is_cut(self) -> bool {
        self.variant.run.risk() && self.setting.cuts > 0
    }

    /// The part that is measured, if it `takes_part`.
    pub fn measured_if(self, takes_part: bool) -> Vec<Part> {
        let is_measured = self.variant.run.speed() && takes_part;
        is_measured.then_some(Part::Speed).into_iter().collect()
    }

    /// How long its simulation was, and how often its log was filled.
    pub fn took(self, virtual_seconds: f64, log_used: Option<f64>) -> VariantTime {
        VariantTime { variant: self.variant.name.clone(), virtual_seconds, log_used }
    }
}

/// Reports how far a job is, 0 to 1.
pub(super) type Report = Arc<dyn Fn(f64) + Send + Sync>;

impl Setting {
    /// Cuts of a variant: as many as were asked for, else as the scenario says.
    pub fn cuts_of(&self, variant: &Variant) -> u64 {
        let kernels = self.scenario.workload.kernel_cuts.filter(|_| variant.kernel.is_some());
        self.options.cuts.or(kernels).unwrap_or(self.cuts)
    }

    /// As many cuts as the kernel's variants have, where some were run beside this one of ours.
    pub fn cuts_beside(&self, variant: &Variant) -> Option<u64> {
        let kernels = self.scenario.variants.iter().find(|v| v.kernel.is_some())?;
        let beside = variant.kernel.is_none() && self.reals.load.is_some();
        Some(self.cuts_of(kernels)).filter(|cuts| beside && *cuts < self.cuts_of(variant))
    }

    /// The page cache of a variant's machine, where the scenario says it.
    pub fn memory_of(&self, variant: &Variant) -> Option<u64> {
        self.scenario.machine_of(variant).memory_mb.map(|mb| mb << 20)
    }

    /// The page cache of a variant's machine, for a run of `iozone`.
    pub fn page_cache_bytes(&self, iozone: &iozone::Options, variant: &Variant) -> u64 {
        let data = iozone.data_bytes();
        self.scenario.machine_of(variant).page_cache_bytes(Some(data))
    }
}
