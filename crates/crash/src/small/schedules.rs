//! Interleavings times crash states: two tasks, every schedule with a few preemptions, and of each
//! every cut and every state, as of a sequence by itself.
//!
//! A task is preempted at a [point](steadfast_runtime::Preemption): where a transaction begins,
//! where a commit is asked for, and where it takes a lock if [`Schedules::locks`] says so. The run
//! without preemptions has some number of points; each run with one preemption more is found from
//! one that was made, by a later point of it. A run that asks the devices for the same, in the same
//! order and with the same answers in between, leaves the same: it is not cut again.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use steadfast_devices::filter::record::{Action, Recording};
use steadfast_runtime::Preemption;

use super::explore::{Explored, Explorer, Plan};
use super::machine::{SmallMachine, in_words};
use super::sequence::Sequence;

/// Which schedules.
#[derive(Debug, Clone, Copy)]
pub struct Schedules {
    /// Preemptions of a run, at the most.
    pub preemptions: usize,
    /// Locks are points too: there are many.
    pub locks: bool,
    /// Of the schedules with more than one preemption every n-th; 1: all.
    pub every: u64,
}

/// What was explored.
#[derive(Debug, Clone, Default)]
pub struct Scheduled {
    /// Pairs of sequences.
    pub pairs: u64,
    /// Schedules that were run.
    pub schedules: u64,
    /// Of these, schedules that left a recording which none before them had left.
    pub distinct: u64,
    /// The most points of a run.
    pub points_max: u64,
    /// Their cuts and states; what `sequences` counts is the distinct recordings.
    pub explored: Explored,
}

impl std::fmt::Display for Scheduled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Scheduled { pairs, schedules, distinct, points_max, explored } = self;
        write!(
            f,
            "{pairs} pairs, {schedules} schedules ({distinct} distinct, {points_max} points at \
             most), {explored}"
        )
    }
}

/// Explores pairs of sequences, each pair carried out by two tasks at once. `progress` is told after
/// each pair what there is so far.
///
/// # Errors
/// If a run could not be recorded, in words: with the schedule that shows it.
pub fn explore_schedules(
    machine: &SmallMachine,
    pairs: &[[Sequence; 2]],
    schedules: Schedules,
    plan: &Plan,
    progress: &dyn Fn(&Scheduled),
) -> Result<Scheduled, String> {
    let mut explorer = Explorer::new(machine, plan);
    let mut done = Scheduled::default();
    for pair in pairs {
        let mut seen = HashSet::new();
        let mut number = 0;
        // Schedules to be run; longer ones are found from them.
        let mut waiting = vec![Vec::new()];
        while let Some(points) = waiting.pop() {
            let preemption = Preemption::at(&points);
            let preemption = if schedules.locks { preemption.with_locks() } else { preemption };
            let name = format!("{}; preempted at points {points:?}", in_words(pair));
            let run = machine.record(pair, Some(&preemption));
            let run = run.map_err(|why| format!("{name}: {why}"))?;
            done.schedules += 1;
            done.points_max = done.points_max.max(preemption.points());
            if points.len() < schedules.preemptions {
                for next in points.last().map_or(0, |last| last + 1)..preemption.points() {
                    number += 1;
                    let left_out = !points.is_empty() && number % schedules.every != 0;
                    if !left_out {
                        waiting.push([&points[..], &[next]].concat());
                    }
                }
            }
            if seen.insert(digest(&run.recorded.recording)) {
                done.distinct += 1;
                explorer.sequences(&name, pair, run);
            }
        }
        done.pairs += 1;
        done.explored = explorer.figures.clone();
        progress(&done);
    }
    Ok(done)
}

/// A number that is the same for runs that asked for the same in the same order, whenever that was.
fn digest(recording: &Recording) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut happenings: Vec<(u64, u64, u64)> = Vec::new();
    for (number, event) in recording.events().iter().enumerate() {
        happenings.push((event.submitted.tick, 0, number as u64));
        if let Some(completed) = event.completed {
            happenings.push((completed.tick, 1, number as u64));
        }
        (event.device.0, event.failed).hash(&mut hasher);
        match &event.action {
            Action::Write { offset, data, fua } => {
                (0, offset, data.unpack(), fua).hash(&mut hasher)
            }
            Action::Flush => 1.hash(&mut hasher),
            Action::Discard { offset, len } => (2, offset, len).hash(&mut hasher),
            Action::Store { offset, data } => (3, offset, data.unpack()).hash(&mut hasher),
            Action::Persist { offset, len } => (4, offset, len).hash(&mut hasher),
            Action::Fence => 5.hash(&mut hasher),
        }
    }
    for note in recording.notes() {
        happenings.push((note.moment.tick, 2, 0));
        note.detail.hash(&mut hasher);
    }
    happenings.sort();
    let order: Vec<(u64, u64)> = happenings.into_iter().map(|(_, what, who)| (what, who)).collect();
    order.hash(&mut hasher);
    hasher.finish()
}
