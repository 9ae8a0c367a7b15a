//! Interleavings times crash states: tasks at once, every schedule with a few preemptions, and of
//! each every cut and every state, as of a sequence by itself.
//!
//! A schedule ([`Schedule`]) says which task begins and at which points
//! ([`steadfast_runtime::Preemption`]) the running task is preempted: where a transaction begins,
//! where a commit is asked for, and where it takes a lock if [`Schedules::locks`] says so. The run
//! without preemptions has some number of points; each run with one preemption more is found from
//! one that was made, by a later point of it.
//!
//! What leaves nothing new is left out three times: schedules before they are run (`prune`),
//! recordings before they are cut (`distinct`), states before they recover (as of sequences by
//! themselves, over all tasks and schedules). [`compare_pruning`] runs everything, to prove the
//! first.

mod case;
mod compare;
mod distinct;
mod prune;
mod shrink;
mod tasks;
#[cfg(test)]
mod tests;

use steadfast_block::rng::Rng;
use steadfast_crash::Result;
use steadfast_crash::explore::Plan;
use steadfast_runtime::PreemptionPoint;

use self::distinct::{Distinct, RunKey};
use self::prune::begins_and_ends;
use super::explore::{Explorer, SequenceReport};
use super::machine::{SequenceRun, SmallMachine};

pub use case::ScheduledCase;
pub use compare::{ComparisonReport, compare_pruning};
pub use prune::Prune;
pub use shrink::ShrunkCase;
pub use steadfast_crash::schedule::Schedule;
pub use tasks::TaskSequences;

/// Cases kept of those that showed something wrong.
const CASES_KEPT: usize = 12;

/// Which schedules.
#[derive(Debug, Clone)]
pub struct Schedules {
    /// Preemptions of a run, at the most.
    pub preemptions: usize,
    /// Locks are points too: there are many.
    pub locks: bool,
    /// Not all, but the one without preemptions and so many drawn from a seed.
    pub drawn: Option<(u64, u64)>,
    /// Which to leave out.
    pub prune: Prune,
}

impl Schedules {
    /// All with up to so many preemptions, those left out that leave nothing new.
    pub const fn all(preemptions: usize) -> Schedules {
        Schedules { preemptions, locks: false, drawn: None, prune: Prune::Equal }
    }
}

/// What was explored.
#[derive(Debug, Clone, Default)]
pub struct ScheduleReport {
    /// Tasks side by side: pairs, mostly.
    pub pairs: u64,
    /// Schedules that were run.
    pub schedules: u64,
    /// Schedules that were left out before they were run; what would have been found from them is
    /// not counted.
    pub pruned: u64,
    /// Of those run, schedules that left a recording for which none before them stands.
    pub distinct: u64,
    /// The most points of a run.
    pub points_max: u64,
    /// Their cuts and states; what `sequences` counts is the distinct recordings.
    pub explored: SequenceReport,
    /// The first schedules that showed something wrong.
    pub wrong: Vec<ScheduledCase>,
}

impl std::fmt::Display for ScheduleReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ScheduleReport { pairs, schedules, pruned, distinct, points_max, explored, .. } = self;
        write!(
            f,
            "{pairs} pairs, {schedules} schedules ({pruned} pruned, {distinct} distinct, \
             {points_max} points at most), {explored}"
        )
    }
}

/// Explores tasks side by side. `progress` gets what there is after each pair. Findings
/// name the [case](ScheduledCase), which reproduces them.
///
/// # Errors
/// If a run could not be recorded, in words: with the case that shows it.
pub fn explore_schedules(
    machine: &SmallMachine,
    pairs: &[TaskSequences],
    schedules: &Schedules,
    plan: &Plan,
    progress: &dyn Fn(&ScheduleReport),
) -> Result<ScheduleReport> {
    let mut explorer = Explorer::new(machine, plan);
    let mut done = ScheduleReport::default();
    for tasks in pairs {
        let joint = machine.setup.points.is_some();
        let mut distinct = Distinct::default();
        let counts = each_run(machine, tasks, schedules, &mut |case, run| {
            if !distinct.insert(RunKey::of(&run.recorded.recording, joint)) {
                return true;
            }
            done.distinct += 1;
            let before = explorer.figures.wrong();
            explorer.sequences(&case.to_string(), &case.tasks, run);
            if explorer.figures.wrong() > before && done.wrong.len() < CASES_KEPT {
                done.wrong.push(case);
            }
            true
        })?;
        done.pairs += 1;
        done.schedules += counts.run;
        done.pruned += counts.pruned;
        done.points_max = done.points_max.max(counts.points_max);
        done.explored = explorer.figures.clone();
        progress(&done);
    }
    Ok(done)
}

/// How many schedules there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    run: u64,
    pruned: u64,
    points_max: u64,
}

/// A run that was made, and the points that it passed.
type ScheduleRun = (ScheduledCase, Vec<PreemptionPoint>);

/// Runs the schedules of some tasks, one after the other, as long as `each` wants more.
fn each_run(
    machine: &SmallMachine,
    tasks: &TaskSequences,
    schedules: &Schedules,
    each: &mut dyn FnMut(ScheduledCase, SequenceRun) -> bool,
) -> Result<Counts> {
    let mut counts = Counts::default();
    let mut run = |schedule: Schedule| -> steadfast_crash::Result<Option<ScheduleRun>> {
        let case = ScheduledCase {
            setup: machine.setup,
            tasks: tasks.sequences.clone(),
            schedule,
            locks: schedules.locks,
        };
        let (run, passed) = case.record(machine).map_err(|why| format!("{case}: {why}"))?;
        counts.run += 1;
        counts.points_max = counts.points_max.max(passed.len() as u64);
        Ok(each(case.clone(), run).then_some((case, passed)))
    };
    // Of tasks that do the same either may begin.
    let all_equal = tasks.sequences.iter().all(|s| *s == tasks.sequences[0]);
    let beginners = if all_equal { 1 } else { tasks.sequences.len() };
    let mut made = Vec::new();
    for begins in 0..beginners {
        let Some(base) = run(Schedule { begins, points: Vec::new() })? else { return Ok(counts) };
        made.push(base);
    }
    if let Some((count, seed)) = schedules.drawn {
        let mut rng = Rng::new(seed ^ (tasks.number as u64) << 20);
        for _ in 0..count {
            let begins = rng.below(beginners as u64) as usize;
            let points = made[begins].1.len() as u64;
            let mut drawn: Vec<u64> = (0..1 + rng.below(schedules.preemptions.max(1) as u64))
                .map(|_| rng.below(points.max(1)))
                .collect();
            drawn.sort_unstable();
            drawn.dedup();
            if run(Schedule { begins, points: drawn })?.is_none() {
                break;
            }
        }
        return Ok(counts);
    }
    // Of equal tasks the one run stands for both.
    let ends: Vec<bool> = made.iter().zip(0..).map(|((_, p), b)| begins_and_ends(p, b)).collect();
    let of_other = |begins: usize| ends.get(1 - begins.min(1)).copied().unwrap_or(ends[0]);
    let two = tasks.sequences.len() == 2;
    let mut pruned = 0;
    while let Some((ScheduledCase { schedule, .. }, passed)) = made.pop() {
        if schedule.points.len() >= schedules.preemptions {
            continue;
        }
        let from = schedule.points.last().map_or(0, |last| *last as usize + 1);
        for next in from..passed.len() {
            let other_ends = two && of_other(schedule.begins);
            if schedules.prune.leaves_out(&passed, &schedule, next, other_ends) {
                pruned += 1;
                continue;
            }
            let points = [&schedule.points[..], &[next as u64]].concat();
            match run(Schedule { begins: schedule.begins, points })? {
                Some(longer) => made.push(longer),
                None => return Ok(Counts { pruned, ..counts }),
            }
        }
    }
    Ok(Counts { pruned, ..counts })
}
