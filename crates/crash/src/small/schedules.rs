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
use super::sequence::{Sequence, Start};

/// What two tasks do.
#[derive(Debug, Clone)]
pub struct Pair {
    /// Its place in the list that it is from.
    pub number: usize,
    /// Of the first task, and of the second.
    pub sequences: [Sequence; 2],
}

impl Pair {
    /// Each sequence of up to so many operations beside a write and its fsync.
    pub fn beside_an_fsync(longest: usize) -> Vec<Pair> {
        let fsync = Sequence::written_and_synced(Start::Populated);
        let pair = |(number, sequence)| Pair { number, sequences: [sequence, fsync.clone()] };
        Sequence::all(longest).into_iter().enumerate().map(pair).collect()
    }

    /// Two sequences of two operations each; of all such pairs one in `every`.
    pub fn of_two(every: usize) -> Vec<Pair> {
        let all: Vec<Sequence> = Sequence::all(2).into_iter().filter(|s| s.len() == 2).collect();
        let count = all.len();
        let pair = |number: usize| Pair {
            number,
            sequences: [all[number / count].clone(), all[number % count].clone()],
        };
        (0..count * count).step_by(every.max(1)).map(pair).collect()
    }
}

/// Which schedules.
#[derive(Debug, Clone)]
pub struct Schedules {
    /// Preemptions of a run, at the most.
    pub preemptions: usize,
    /// Locks are points too: there are many.
    pub locks: bool,
    /// The schedule that everything begins with; the rest adds to it.
    pub first: Vec<u64>,
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

/// Explores pairs of sequences, each pair carried out by two tasks at once. `progress` is told
/// after each pair what there is so far. Findings name the pair and the points: example
/// `schedules` makes them again.
///
/// # Errors
/// If a run could not be recorded, in words: with the schedule that shows it.
pub fn explore_schedules(
    machine: &SmallMachine,
    pairs: &[Pair],
    schedules: &Schedules,
    plan: &Plan,
    progress: &dyn Fn(&Scheduled),
) -> Result<Scheduled, String> {
    let mut explorer = Explorer::new(machine, plan);
    let mut done = Scheduled::default();
    for Pair { number, sequences } in pairs {
        let mut seen = HashSet::new();
        // Schedules to be run; longer ones are found from them.
        let mut waiting = vec![schedules.first.clone()];
        while let Some(points) = waiting.pop() {
            let preemption = Preemption::at(&points);
            let preemption = if schedules.locks { preemption.with_locks() } else { preemption };
            let words = in_words(sequences);
            let name = format!("pair {number}, {words}; preempted at points {points:?}");
            let run = machine.record(sequences, Some(&preemption));
            let run = run.map_err(|why| format!("{name}: {why}"))?;
            done.schedules += 1;
            done.points_max = done.points_max.max(preemption.points());
            if points.len() < schedules.preemptions {
                let later = points.last().map_or(0, |last| last + 1)..preemption.points();
                waiting.extend(later.map(|next| [&points[..], &[next]].concat()));
            }
            if seen.insert(digest(&run.recorded.recording)) {
                done.distinct += 1;
                explorer.sequences(&name, sequences, run);
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
