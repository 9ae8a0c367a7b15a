//! One of the kernel's file systems under the workload of files: its run, made in real time, is cut
//! and judged as ours is.

use steadfast_crash::risk::{RecordedRun, explore_peer};
use steadfast_peers::AtRisk;

use super::files::{Spoken, cut};
use super::{Outcome, Report, Setting};
use crate::results::Clock;
use crate::scenario::Variant;

/// Cuts the run of a kernel's file system, and counts what the cuts take.
pub(super) fn run(
    setting: &Setting,
    variant: &Variant,
    (peer, ran): (&AtRisk, RecordedRun),
    report: &Report,
) -> Result<Outcome, String> {
    let RecordedRun { recorded, speed } = ran;
    let spoken = Spoken { speed, clock: Clock::Wall, virtual_operations_per_s: None };
    cut(setting, variant, recorded, spoken, report, &|recorded, plan, progress| {
        explore_peer(peer, &recorded, plan, progress)
    })
}
