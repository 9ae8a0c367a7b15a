//! What a scenario's variants run: one implementation a kind of workload.
//!
//! A new kind is a file with a [`Load`], an arm in [`loads`], and what `scenario::read_workload`
//! says of reading it.

use std::sync::Arc;

use steadfast_crash::explore::{CutSource, Plan, RebootTarget};
use steadfast_crash::risk::FilesWorkload;

use super::benchmark::Throughput;
use super::copies::Copies;
use super::files::Files;
use super::legs::LegsLoad;
use super::matrix::Matrices;
use super::random_reads::RandomReads;
use super::reads::Reads;
use super::timings::Timings;
use super::{Part, Report, Setting};
use crate::results::Measurement;
use crate::scenario::{Scenario, Variant, WorkloadKind};
use crate::{ScenarioError, VariantError};

/// A workload of a scenario, ready to be run on its variants.
pub(super) trait Load: Send + Sync {
    /// What is measured, in words or as a command line; `None`: nothing, it is only cut.
    fn command(&self) -> Option<String>;

    /// What is cut, where that is something else than what is measured.
    fn risk_command(&self) -> Option<String> {
        None
    }

    /// Which parts of it a variant takes part in; each is a job. If nothing else is said: it is
    /// measured, and not cut.
    fn parts(&self, _: &Setting, variant: &Variant) -> Vec<Part> {
        variant.run.speed().then_some(Part::Speed).into_iter().collect()
    }

    /// Runs a part on a variant.
    fn run(
        &self,
        setting: &Setting,
        variant: &Variant,
        part: Part,
        report: Report,
    ) -> Result<JobResult, VariantError>;

    /// The run whose power is cut, run once more; `None`: it has none.
    fn recorded(&self, _: &Setting, _: &Variant) -> Option<Result<Cuttable, VariantError>> {
        None
    }

    /// About how long a variant's measurement takes, beside the others': the longest is begun
    /// first.
    fn weight(&self, _variant: &Variant) -> u64 {
        1
    }

    /// The workload of files, where it is also run in real time beside the kernel's file systems.
    fn in_real_time(&self) -> Option<&FilesWorkload> {
        None
    }

    /// Whether a run without `--full` is a reduced one.
    fn is_reduced_by_default(&self) -> bool {
        true
    }
}

/// A recorded run, the machine that it is of, and how it is cut.
pub(super) struct Cuttable {
    pub machine: Arc<dyn RebootTarget>,
    pub recorded: CutSource,
    pub plan: Plan,
}

/// What one job brought.
#[derive(Default)]
pub(super) struct JobResult {
    /// What it measured.
    pub measurements: Vec<Measurement>,
    /// Said of the run.
    pub notes: Vec<String>,
    /// This machine cannot run it, and why.
    pub left_out: Option<String>,
}

impl JobResult {
    /// Rows of one kind.
    pub fn of(rows: impl IntoIterator<Item: Into<Measurement>>) -> JobResult {
        JobResult::default().with(rows)
    }

    /// The outcome with further rows.
    pub fn with(mut self, rows: impl IntoIterator<Item: Into<Measurement>>) -> JobResult {
        self.measurements.extend(rows.into_iter().map(Into::into));
        self
    }
}

/// The workloads of a scenario; `measured`: with the devices as the measurement has them, which a
/// workload at a reduced size may scale.
pub(super) fn loads(
    scenario: &Scenario,
    measured: &mut Scenario,
    options: &super::RunOptions,
) -> Result<Vec<Box<dyn Load>>, ScenarioError> {
    let kinds = scenario.workload.kinds()?;
    let is_alone = kinds.len() == 1;
    let mut loads: Vec<Box<dyn Load>> = Vec::with_capacity(kinds.len());
    for kind in kinds {
        loads.push(match kind {
            WorkloadKind::Iozone { line, quick_size, risk_size } => {
                let sizes = (quick_size, risk_size);
                Box::new(Throughput::new(scenario, measured, line, sizes, options.full)?)
            }
            WorkloadKind::ReadUnderWrite(spec) => {
                Box::new(Reads::new(scenario, spec, options.full)?)
            }
            WorkloadKind::Dd(copies) => Box::new(Copies(copies.to_vec())),
            WorkloadKind::RandomReads(specs) => Box::new(RandomReads(specs.to_vec())),
            WorkloadKind::Hdparm(timings) => Box::new(Timings(timings.to_vec())),
            WorkloadKind::Matrix => Box::new(Matrices::new(scenario, options.full)?),
            WorkloadKind::Legs(spec) => Box::new(LegsLoad(spec.clone())),
            WorkloadKind::Files(spec) => Box::new(Files::new(spec, options.seed, is_alone)),
        });
    }
    Ok(loads)
}
