//! `[[variant]]` of a scenario file: what is run, on which of the devices and volumes.

use serde::Deserialize;
use steadfast_devices::model::ModelParams;
use steadfast_setup::tables::StackForm;
use steadfast_setup::{Machine, single_values, table};

table! {
    /// One variant.
    pub struct Variant: "[[variant]]",
        with stack: StackForm,
        beside #[cfg(feature = "planted-bugs")]
            planted: Option<steadfast_crash::planted::StackBug>
    {
        /// Short name, different from the others'.
        name: String;
        /// One line for people.
        label: String;
        /// Table: keys of `[machine]` that are others for this variant.
        machine: Option<Machine>, else "`[machine]`";
        /// The kernel's `ext2`, `ext3`, `ext4`, `xfs` or `btrfs` instead, in real time, as root:
        /// with `files` or `trace` left out without; with `iozone` run only with `--peers`.
        kernel: Option<String>, else "Steadfast's ext4";
        /// Ours, mounted by FUSE with these options of the mount (`writeback_cache`, or none: an
        /// empty text): with `files` the run that is cut is made in real time by system calls, as
        /// those of a variant with `kernel`, as root; left out without.
        fuse: Option<String>, else "the run that is cut is made in process";
        /// The variant that it is compared with.
        baseline: Option<String>, else "the first that is measured";
        /// `both`, `speed` or `risk`: what is measured, the power cuts, or both; not with `files`
        /// alone.
        run: RunKind = "both";
        /// What its cuts are: `power`, or `reset`: the machine is reset and its drives keep their
        /// power, which takes the caches only of those with `cache_at_reset = "lost"`.
        cut: CutKind = "power";
        /// What it costs, in the file's `currency`, for `lab compare`.
        price: Option<f64>, else "not known", from 0 to 1e12;
        /// Which configuration of the benchmark it is run with.
        configuration: Option<String>, else "needed with `workload.configuration`";
    }
}

single_values!(CutKind, RunKind);

/// What happens at a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum CutKind {
    /// The power fails.
    #[default]
    Power,
    /// The machine is reset, and the drives keep their power.
    Reset,
}

/// Which parts of a run a variant takes part in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum RunKind {
    /// Benchmark and power cuts.
    #[default]
    Both,
    /// Benchmark only.
    Speed,
    /// Power cuts only.
    Risk,
    /// The kernel's file system under the benchmark: beside the others, when somebody asks for it.
    #[serde(skip)]
    Peer,
}

impl RunKind {
    /// Whether the benchmark runs.
    pub fn speed(self) -> bool {
        matches!(self, RunKind::Both | RunKind::Speed)
    }

    /// Whether the power is cut.
    pub fn risk(self) -> bool {
        matches!(self, RunKind::Both | RunKind::Risk)
    }
}

impl Variant {
    /// Whether what is cut of it is a run in real time.
    pub(crate) fn is_cut_in_real_time(&self) -> bool {
        self.kernel.is_some() || self.fuse.is_some()
    }

    /// Whether it is one of those named, or none is.
    pub(crate) fn is_among(&self, named: &[String]) -> bool {
        named.is_empty() || named.contains(&self.name)
    }

    /// Whether a cut takes what is in the volatile cache of a device.
    pub(crate) fn loses_cache(&self, device: &ModelParams) -> bool {
        self.cut == CutKind::Power || device.forgets_at_reset()
    }
}
