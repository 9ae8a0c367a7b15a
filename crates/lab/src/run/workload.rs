//! What a scenario's variants run: one implementation a kind of workload.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steadfast_crash::explore::{CutSource, Plan, RebootTarget};
use steadfast_crash::risk::FilesRun;
use steadfast_devices::filter::record::RecordLog;
use steadfast_peers::Begin;
use steadfast_vfs::FileSystem;

use super::setting::{Part, Report, Subject};
use crate::Result;
use crate::results::Measurement;
use crate::scenario::{self, Variant};

/// A kind of workload, ready to be run on a scenario's variants: over a file system, or over block
/// devices.
///
/// What it does is done on a stack that it asks for ([`Setting::on_stack`]), in a simulation of its
/// own or in real time. What is cut is recorded with an account of what was promised
/// ([`steadfast_crash::account`]), and comes to the judges as a [`CutSource`]. What it brings are
/// [`Measurement`]s.
pub(super) trait Workload: Send + Sync {
    /// What is measured, in words or as a command line; `None`: nothing, it is only cut.
    fn command(&self) -> Option<String> {
        None
    }

    /// What is cut, where that is something else than what is measured.
    fn risk_command(&self) -> Option<String> {
        None
    }

    /// Which parts of it a variant takes part in; each is a job. If nothing else is said: it is
    /// measured, and not cut.
    fn parts(&self, of: Subject<'_>) -> Vec<Part> {
        of.measured_if(true)
    }

    /// Runs a part on a variant.
    fn run(&self, of: Subject<'_>, part: Part, report: Report) -> Result<JobResult>;

    /// What it does to a mounted file system, where that is all that it needs: in real time it can
    /// be run on one of the kernel's, too.
    fn on_file_system(&self, _: Subject<'_>) -> Option<FileSystemWork> {
        None
    }

    /// The run whose power is cut, run once more; `None`: it has none.
    fn recorded(&self, _: Subject<'_>) -> Option<Result<Cuttable>> {
        None
    }

    /// About how long a variant's measurement takes, beside the others': the longest is begun
    /// first.
    fn weight(&self, _variant: &Variant) -> u64 {
        1
    }

    /// Its runs in real time, where a scenario with variants of the kernel's can have it.
    fn in_real_time(&self, _: &scenario::Workload) -> Option<RealRuns> {
        None
    }

    /// Whether a run without `--full` is a reduced one.
    fn is_reduced_by_default(&self) -> bool {
        false
    }
}

/// Runs on a mounted file system.
type FileSystemFn = dyn FnOnce(Arc<dyn FileSystem>) -> Result<JobResult> + Send;

/// What is done to a file system, and what comes of it.
pub(super) struct FileSystemWork {
    /// Page cache of the machine.
    pub memory_bytes: u64,
    /// The work.
    pub run: Box<FileSystemFn>,
}

/// Makes calls to a file system, and notes what they were promised; and what is to be said of it.
pub(super) type RealRun = dyn Fn(
    &Arc<dyn FileSystem>,
    &RecordLog,
    Begin<'_>,
) -> steadfast_crash::Result<(FilesRun, Option<String>)>;

/// A workload in real time, on a file system of the kernel's or ours.
pub(super) struct RealRuns {
    /// A run for the speed.
    pub measured: Box<RealRun>,
    /// The run that is cut.
    pub cut: Box<RealRun>,
}

/// A recorded run, the machine that it is of, and how it is cut.
pub(super) struct Cuttable {
    pub machine: Arc<dyn RebootTarget>,
    pub recorded: CutSource,
    pub plan: Plan,
}

/// What one job brought.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// What it measured.
    pub measurements: Vec<Measurement>,
    /// Said of the run.
    pub notes: Vec<String>,
    /// This machine cannot run it, and why.
    pub left_out: Option<String>,
}

impl JobResult {
    /// Rows of one kind.
    pub(super) fn of(rows: impl IntoIterator<Item: Into<Measurement>>) -> JobResult {
        JobResult::default().with(rows)
    }

    /// The outcome with further rows.
    pub(super) fn with(mut self, rows: impl IntoIterator<Item: Into<Measurement>>) -> JobResult {
        self.measurements.extend(rows.into_iter().map(Into::into));
        self
    }
}
