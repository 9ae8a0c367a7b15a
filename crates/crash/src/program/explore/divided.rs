//! An exploration that several processes divide among them, by instants.
//!
//! A state has the number that it has in the whole exploration, so a process goes through all
//! states before its own too: they are made, which takes little time, and not judged.

use std::iter::Peekable;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::progress::{ExploreProgress, InstantsReport};
use super::{Exploration, ExplorationReport, Judging};
use crate::error::Result;
use crate::states::States;

/// Explores some of the instants of a run at a time.
pub struct DividedExploration<'a> {
    exploration: &'a Exploration<'a>,
    judging: Judging,
    states: Peekable<States<'a>>,
    /// The states from this instant on are still to come.
    next: u64,
    instants: u64,
}

impl<'a> Exploration<'a> {
    /// At how many instants the power is cut. (Not of trials, each of which has one of its own.)
    pub fn instants(&self) -> u64 {
        self.cuts().cuts_left() as u64
    }

    /// The same, to be explored in parts.
    ///
    /// # Errors
    /// The file system before the run cannot be read.
    pub fn divided(&'a self) -> Result<DividedExploration<'a>> {
        let (judging, states) = (self.judging()?, self.cuts());
        let instants = states.cuts_left() as u64;
        let states = states.peekable();
        Ok(DividedExploration { exploration: self, judging, states, next: 0, instants })
    }
}

impl DividedExploration<'_> {
    /// Recovers and judges all states of these instants, one after the other.
    pub fn explore(&mut self, instants: Range<u64>) -> InstantsReport {
        let instants = instants.start..instants.end.min(self.instants);
        if instants.start < self.next {
            self.states = self.exploration.cuts().peekable();
        }
        self.next = instants.end;
        let shared = Mutex::new(ExploreProgress::default());
        while let Some(state) = self.states.next_if(|state| state.place < instants.end) {
            if instants.contains(&state.place) {
                self.exploration.one(&state, &self.judging, &shared);
            }
        }
        let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        shared.handed_on(instants.end.saturating_sub(instants.start))
    }
}

/// Joins what was found at all instants.
#[derive(Default)]
pub struct ExplorationSum {
    cuts: u64,
    progress: ExploreProgress,
    troubles: Vec<String>,
}

impl ExplorationSum {
    /// Takes in a part; they come in the order of the instants.
    ///
    /// # Errors
    /// It is not as it was handed on.
    pub fn take(&mut self, report: InstantsReport) -> Result<()> {
        let cuts = self.progress.join(report)?;
        self.cuts = self.cuts.saturating_add(cuts);
        Ok(())
    }

    /// Notes a part that could not be explored.
    pub fn take_trouble(&mut self, why: String) {
        self.troubles.push(why);
    }

    /// What one process would have found that explores all.
    pub fn report(self) -> ExplorationReport {
        let mut report = self.progress.report();
        report.cuts = self.cuts;
        report.troubles.extend(self.troubles);
        report
    }
}
