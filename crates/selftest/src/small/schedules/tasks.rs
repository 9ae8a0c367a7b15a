//! What tasks do side by side, and the lists of it.

use steadfast_block::rng::Rng;

use crate::small::sequence::{Sequence, Start};

/// Sequences that tasks carry out at once, each in a folder of its own.
#[derive(Debug, Clone)]
pub struct TaskSequences {
    /// Its place in the list that it is from.
    pub number: usize,
    /// Of each task.
    pub sequences: Vec<Sequence>,
}

impl TaskSequences {
    /// Each sequence of up to so many operations beside a write and its fsync.
    pub fn beside_an_fsync(longest: usize) -> Vec<TaskSequences> {
        let fsync = Sequence::written_and_synced(Start::Populated);
        let pair =
            |(number, sequence)| TaskSequences { number, sequences: vec![sequence, fsync.clone()] };
        Sequence::all(longest).into_iter().enumerate().map(pair).collect()
    }

    /// All pairs of sequences of two operations each. Whoever begins is part of the schedule, so
    /// that of (A, B) and (B, A) there is one.
    pub fn of_two() -> Vec<TaskSequences> {
        let all = TaskSequences::of_two_operations();
        let mut found = Vec::new();
        for (first, one) in all.iter().enumerate() {
            for other in &all[first..] {
                found.push(TaskSequences {
                    number: found.len(),
                    sequences: vec![one.clone(), other.clone()],
                });
            }
        }
        found
    }

    /// So many times three sequences of two operations each, drawn.
    pub fn of_three(count: usize, seed: u64) -> Vec<TaskSequences> {
        let all = TaskSequences::of_two_operations();
        let mut rng = Rng::new(seed);
        let mut drawn = || all[rng.below(all.len() as u64) as usize].clone();
        let three = |number| TaskSequences { number, sequences: (0..3).map(|_| drawn()).collect() };
        (0..count).map(three).collect()
    }

    fn of_two_operations() -> Vec<Sequence> {
        Sequence::all(2).into_iter().filter(|s| s.len() == 2).collect()
    }
}
