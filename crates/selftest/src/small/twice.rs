//! The same exploration with pruning and without, side by side.

use std::time::{Duration, Instant};

use steadfast_crash::Result;
use steadfast_crash::explore::Plan;

use super::explore::{Explorer, SequenceReport};
use super::machine::SmallMachine;
use super::prune::Pruning;
use super::sequence::Sequence;

/// How long something took.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeSpent {
    /// On the clock.
    pub wall: Duration,
    /// Of the processor.
    pub cpu: Duration,
}

/// What both showed.
#[derive(Debug, Clone, Default)]
pub struct PruningCheck {
    /// With pruning.
    pub pruned: SequenceReport,
    /// Each state recovered.
    pub unpruned: SequenceReport,
    /// States of which both said the same, word by word.
    pub agreed: u64,
    /// States of which they did not.
    pub differing: u64,
    /// Time with pruning: recording, enumerating, judging, all of it.
    pub pruned_time: TimeSpent,
    /// And without.
    pub unpruned_time: TimeSpent,
}

/// Explores each sequence in both ways; who is first changes. Every n-th state (`keep_every`; 0:
/// none) is kept in [`SequenceReport::kept`]. `cpu` is the processor time used so far. `progress`
/// gets what there is after each sequence.
///
/// # Errors
/// If a sequence could not be recorded, in words.
pub fn explore_twice(
    machine: &SmallMachine,
    sequences: &[Sequence],
    (plan, keep_every): (&Plan, u64),
    cpu: &dyn Fn() -> Duration,
    progress: &dyn Fn(&PruningCheck),
) -> Result<PruningCheck> {
    explore_both(machine, sequences, (plan, keep_every), Pruning::ON, cpu, progress)
}

pub(super) fn explore_both(
    machine: &SmallMachine,
    sequences: &[Sequence],
    (plan, keep_every): (&Plan, u64),
    pruning: Pruning,
    cpu: &dyn Fn() -> Duration,
    progress: &dyn Fn(&PruningCheck),
) -> Result<PruningCheck> {
    let mut pruned = Explorer::with(machine, plan, pruning);
    // What is kept is the same for both.
    pruned.keep_every = keep_every;
    let mut unpruned = Explorer::with(machine, plan, Pruning::OFF);
    let mut twice = PruningCheck::default();
    for (number, sequence) in sequences.iter().enumerate() {
        for is_pruned in [number % 2 == 0, number % 2 != 0] {
            let explorer = if is_pruned { &mut pruned } else { &mut unpruned };
            explorer.verdict_hashes = Some(Vec::new());
            let (begun, before) = (Instant::now(), cpu());
            explorer.sequence(machine, number, sequence)?;
            let time = if is_pruned { &mut twice.pruned_time } else { &mut twice.unpruned_time };
            time.cpu += cpu().saturating_sub(before);
            time.wall += begun.elapsed();
        }
        let sorted = |explorer: &mut Explorer| {
            let mut hashes = explorer.verdict_hashes.take().unwrap_or_default();
            hashes.sort_unstable();
            hashes
        };
        let (of_pruned, of_unpruned) = (sorted(&mut pruned), sorted(&mut unpruned));
        let agreed = of_pruned.iter().zip(&of_unpruned).filter(|(a, b)| a == b).count();
        twice.agreed += agreed as u64;
        twice.differing += (of_pruned.len().max(of_unpruned.len()) - agreed) as u64;
        twice.pruned = pruned.figures.clone();
        twice.unpruned = unpruned.figures.clone();
        progress(&twice);
    }
    Ok(twice)
}
