//! One state of a model again, and what became of each call in it.

use std::collections::BTreeMap;
use std::fmt;

use super::explore::{ModelExploration, tree_of};
use super::model::{Model, StepOrder};
use super::states::{self, Instant};
use super::steps::Steps;
use crate::error::Result;
use crate::program::explore::Verdict;
use crate::tree::Tree;

/// What became of a call that had begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFate {
    /// It was synced: it is there in every state.
    Synced,
    /// It is there, and need not be.
    There,
    /// So many of its steps are there, of so many.
    Partly(usize, usize),
    /// It is lost.
    Lost,
}

impl fmt::Display for CallFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallFate::Synced => f.pad("synced"),
            CallFate::There => f.pad("there"),
            CallFate::Partly(there, all) => f.pad(&format!("{there} of {all}")),
            CallFate::Lost => f.pad("lost"),
        }
    }
}

/// A state of a model.
#[derive(Debug, Clone)]
pub struct ModelState {
    /// When the power went.
    pub cut: Instant,
    /// By their places among the run's calls, of those that change something.
    pub calls: BTreeMap<usize, CallFate>,
    /// The files.
    pub tree: Tree,
    /// What is wrong with them.
    pub verdict: Verdict,
}

impl ModelExploration<'_> {
    /// The state of this number, as [`explore`](Self::explore) counts them; `None`: there is none.
    ///
    /// # Errors
    /// The judge could not be asked.
    pub fn state(&self, model: Model, number: u64) -> Result<Option<ModelState>> {
        let steps = Steps::of(&self.run.calls, self.base, model.halves_renames());
        let ordered = StepOrder::new(&steps, model);
        let instants = self.instants();
        let of_each = instants.iter().map(|(_, states)| *states).max().unwrap_or(0) as u64;
        let Some(cut) = number.checked_div(of_each).and_then(|n| usize::try_from(n).ok()) else {
            return Ok(None);
        };
        let Some((cut, most)) = instants.get(cut).copied() else { return Ok(None) };
        let place = (number % of_each) as usize;
        let sets = states::at(&ordered, cut, &[], most, self.seed);
        let Some(chosen) = sets.into_iter().nth(place) else { return Ok(None) };
        let kept = ordered.durable(cut.at.tick, &[]);
        // Of each call: its steps, those that are there, those that were synced.
        let mut calls: BTreeMap<usize, (usize, usize, usize)> = BTreeMap::new();
        for (place, step) in steps.all.iter().enumerate() {
            if step.started < cut.at.tick {
                let (all, there, synced) = calls.entry(step.call).or_default();
                *all += 1;
                *there += usize::from(chosen[place]);
                *synced += usize::from(kept[place]);
            }
        }
        let fate = |(all, there, synced)| match there {
            _ if synced == all => CallFate::Synced,
            0 => CallFate::Lost,
            _ if there == all => CallFate::There,
            _ => CallFate::Partly(there, all),
        };
        let calls = calls.into_iter().map(|(call, counts)| (call, fate(counts))).collect();
        let tree = tree_of(&ordered, &chosen);
        let verdict = self.judge(&tree, cut)?;
        Ok(Some(ModelState { cut, calls, tree, verdict }))
    }
}
