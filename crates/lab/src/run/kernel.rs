//! One of the kernel's file systems under the workload of files: its run, made in real time, is cut
//! and judged as ours is.

use steadfast_crash::explore::explore;
use steadfast_crash::risk::{RecordedRun, Speed};
use steadfast_peers::RiskVariant;

use super::files::{cut, files_row};
use super::{JobResult, Report, Setting};
use crate::VariantError;
use crate::results::{ClockKind, Path};
use crate::scenario::Variant;

/// Cuts the run of a kernel's file system, and counts what the cuts take.
pub(super) fn run(
    setting: &Setting,
    variant: &Variant,
    (speeds, peer, ran): (&[Speed], &RiskVariant, RecordedRun),
    report: &Report,
) -> Result<JobResult, VariantError> {
    let RecordedRun { recorded, speed, programs } = ran;
    let cut_run = Some(speed.operations_per_second());
    let rows = files_row(variant, Path::Kernel, ClockKind::Wall, speeds, cut_run);
    cut(
        setting,
        variant,
        (recorded, programs),
        rows.into_iter().collect(),
        report,
        &|recorded, plan, progress| explore(peer.system(), recorded, plan, progress),
    )
}
