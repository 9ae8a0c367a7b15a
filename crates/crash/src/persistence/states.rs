//! What may survive a cut: sets of steps that hold what is durable, and of each step what it needs.

use std::collections::{BTreeSet, HashSet};

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::Moment;

use super::explore::tree_of;
use super::model::{Model, StepOrder, StepSet};
use super::steps::{Steps, Sync};

/// So many steps in doubt are few: all their sets are made.
const FEW: usize = 9;
/// With more steps in doubt than this there is no list of all trees.
const ALL_MAX: usize = 13;
/// Sets that are drawn, beside those by rule.
const DRAWN: usize = 16;
/// Where there is room for more than that: of so many sets one is drawn.
const DRAWN_OF: usize = 6;

/// An instant at which the power may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// What has a smaller tick has happened.
    pub at: Moment,
    /// Lines that had been printed.
    pub printed: usize,
}

/// What may be there after a cut.
#[derive(Debug, Clone)]
pub struct Survivors {
    /// When the power went.
    pub cut: Instant,
    /// The steps that are there.
    pub chosen: StepSet,
}

/// All sets of a cut, most valuable first, each once, at most `most`; `more` are syncs that the
/// program did not make.
pub fn at(
    ordered: &StepOrder<'_>,
    cut: Instant,
    more: &[Sync],
    most: usize,
    seed: u64,
) -> Vec<StepSet> {
    let mut made: Vec<StepSet> = Vec::new();
    for kept in ordered.durable_or_soon(cut.at.tick, more) {
        let left = most.saturating_sub(made.len());
        made.extend(beside(ordered, cut, kept, left, seed));
    }
    made
}

/// Those beside what is durable.
fn beside(
    ordered: &StepOrder<'_>,
    cut: Instant,
    kept: StepSet,
    most: usize,
    seed: u64,
) -> Vec<StepSet> {
    let all = &ordered.steps.all;
    let begun = all.partition_point(|step| step.started < cut.at.tick);
    let open: Vec<usize> = (0..begun).filter(|place| !kept[*place]).collect();
    let (seen, made) = (HashSet::new(), Vec::new());
    let mut sets = Sets { ordered, kept: &kept, begun, seen, made, most };
    let everything: StepSet = (0..all.len()).map(|place| place < begun).collect();
    sets.add(everything.clone());
    sets.add(kept.clone());
    // With more room all sets of more steps are made, and more are drawn.
    if open.len() <= FEW.max(most.max(1).ilog2() as usize) {
        subsets(&kept, &open).for_each(|chosen| sets.add(chosen));
        return sets.made;
    }
    let mut rng = Rng::new(seed ^ cut.at.tick);
    // A call is lost, a call is all that is left, all contents of a file are lost, and the calls
    // up to one are there. The last calls first: what came before was in doubt at earlier cuts.
    let calls: BTreeSet<usize> = open.iter().map(|place| all[*place].call).collect();
    for call in calls.iter().rev() {
        sets.without(&everything, |place| all[place].call == *call);
        sets.only(|place| all[place].call == *call);
    }
    let files: BTreeSet<u64> = open.iter().map(|place| all[*place].effect.file()).collect();
    for file in files.iter().rev() {
        let effect = |place: usize| &all[place].effect;
        sets.without(&everything, |place| {
            effect(place).file() == *file && effect(place).is_contents()
        });
        sets.only(|place| effect(place).file() == *file && effect(place).is_contents());
    }
    sets.without(&everything, |place| all[place].effect.is_contents());
    sets.only(|place| all[place].effect.is_contents());
    for place in open.iter().rev() {
        sets.without(&everything, |other| other == *place);
        sets.only(|other| other == *place);
    }
    for call in calls.iter().rev() {
        sets.only(|place| all[place].call <= *call);
    }
    for _ in 0..DRAWN.max(most / DRAWN_OF) {
        let percent = [25, 50, 75][rng.below(3) as usize];
        let mut chosen = kept.clone();
        open.iter().for_each(|place| chosen[*place] = rng.percent(percent));
        sets.add(chosen);
    }
    sets.made
}

/// What is kept with each set of the steps in doubt.
fn subsets(kept: &StepSet, open: &[usize]) -> impl Iterator<Item = StepSet> {
    (0..1u32 << open.len()).map(move |subset| {
        let mut chosen = kept.clone();
        for (bit, place) in open.iter().enumerate() {
            chosen[*place] = subset >> bit & 1 == 1;
        }
        chosen
    })
}

/// Trees that a cut may leave, by their digests: all of them; `None`: there are too many.
pub fn all(steps: &Steps, model: Model, tick: u64) -> Option<HashSet<u128>> {
    let ordered = StepOrder::new(steps, model);
    let begun = steps.all.partition_point(|step| step.started < tick);
    let (mut seen, mut trees) = (HashSet::new(), HashSet::new());
    for kept in ordered.durable_or_soon(tick, &[]) {
        let open: Vec<usize> = (0..begun).filter(|place| !kept[*place]).collect();
        if open.len() > ALL_MAX {
            return None;
        }
        for mut chosen in subsets(&kept, &open) {
            ordered.open(&mut chosen, &kept);
            if seen.insert(chosen.clone()) {
                trees.insert(tree_of(&ordered, &chosen).digest());
            }
        }
    }
    Some(trees)
}

struct Sets<'o, 's> {
    ordered: &'o StepOrder<'s>,
    kept: &'o StepSet,
    /// So many steps have begun.
    begun: usize,
    seen: HashSet<StepSet>,
    made: Vec<StepSet>,
    most: usize,
}

impl Sets<'_, '_> {
    /// Adds a set, without what cannot be there.
    fn add(&mut self, mut chosen: StepSet) {
        if self.made.len() >= self.most {
            return;
        }
        self.ordered.open(&mut chosen, self.kept);
        if self.seen.insert(chosen.clone()) {
            self.made.push(chosen);
        }
    }

    /// Everything but some steps, and what needs them.
    fn without(&mut self, everything: &StepSet, lost: impl Fn(usize) -> bool) {
        let chosen = everything.iter().enumerate();
        let chosen = chosen.map(|(place, there)| *there && (self.kept[place] || !lost(place)));
        self.add(chosen.collect());
    }

    /// Nothing but some steps, and what they need.
    fn only(&mut self, left: impl Fn(usize) -> bool) {
        let chosen = (0..self.kept.len()).map(|place| place < self.begun && left(place));
        let mut chosen: StepSet = chosen.collect();
        self.ordered.close(&mut chosen);
        for (place, kept) in self.kept.iter().enumerate() {
            chosen[place] |= kept;
        }
        self.add(chosen);
    }
}
