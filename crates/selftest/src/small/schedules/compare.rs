//! What is left out, compared with runs of everything: the proof of the pruning, on a sample.

use steadfast_crash::Result;

use super::distinct::{Distinct, RunKey};
use super::{Counts, Prune, Schedules, TaskSequences, each_run};
use crate::small::machine::SmallMachine;

/// What a comparison has shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ComparisonReport {
    /// Tasks side by side that were compared.
    pub pairs: u64,
    /// All their schedules.
    pub all: u64,
    /// Schedules that pruning leaves.
    pub run: u64,
    /// Of all schedules, those whose recording no schedule that is left stands for. Must be 0.
    pub lost: u64,
    /// The same of the control, which prunes [too much](Prune::TooMuch). Must not be 0.
    pub lost_by_control: u64,
}

impl std::fmt::Display for ComparisonReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ComparisonReport { pairs, all, run, lost, lost_by_control } = self;
        write!(
            f,
            "{pairs} pairs: pruning leaves {run} of {all} schedules and loses {lost} recordings; \
             the control loses {lost_by_control}"
        )
    }
}

/// Runs the schedules of the pairs three times: all of them, those that pruning leaves, and those
/// that the control leaves. Nothing is cut.
///
/// # Errors
/// If a run could not be recorded, in words: with the case that shows it.
pub fn compare_pruning(
    machine: &SmallMachine,
    pairs: &[TaskSequences],
    preemptions: usize,
) -> Result<ComparisonReport> {
    let mut compared = ComparisonReport::default();
    let schedules = |prune| Schedules { prune, ..Schedules::all(preemptions) };
    for tasks in pairs {
        let (all, counts) = recordings(machine, tasks, &schedules(Prune::Nothing))?;
        let lost = |prune| -> steadfast_crash::Result<(u64, u64)> {
            let (seen, counts) = recordings(machine, tasks, &schedules(prune))?;
            let mut distinct = Distinct::default();
            for seen in seen {
                distinct.insert(seen);
            }
            let lost = all.iter().filter(|seen| !distinct.covers(seen)).count();
            Ok((lost as u64, counts.run))
        };
        let (lost_by_pruning, run) = lost(Prune::Equal)?;
        compared.pairs += 1;
        compared.all += counts.run;
        compared.run += run;
        compared.lost += lost_by_pruning;
        compared.lost_by_control += lost(Prune::TooMuch)?.0;
    }
    Ok(compared)
}

fn recordings(
    machine: &SmallMachine,
    tasks: &TaskSequences,
    schedules: &Schedules,
) -> Result<(Vec<RunKey>, Counts)> {
    let joint = machine.setup.points.is_some();
    let mut seen = Vec::new();
    let counts = each_run(machine, tasks, schedules, &mut |_, run| {
        seen.push(RunKey::of(&run.recorded.recording, joint));
        true
    })?;
    Ok((seen, counts))
}
