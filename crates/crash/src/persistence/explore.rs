//! All that may survive of a run's calls under a model: put together, judged, counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use steadfast_devices::filter::record::Moment;

use super::model::{Model, StepOrder, StepSet};
use super::states::{self, Instant, Survivors};
use super::steps::{Steps, Sync};
use super::world::World;
use crate::error::Result;
use crate::program::explore::{NotExplored, Verdict, Wrong, WrongState, verdict};
use crate::program::{Judges, ProgramRun, RecoveredTree};
use crate::tree::Tree;

/// How to explore.
pub struct ModelExploration<'a> {
    /// What is cut.
    pub run: &'a ProgramRun,
    /// The files before it.
    pub base: &'a Tree,
    /// Who judges; without, the rules do.
    pub judge: Option<&'a dyn Judges>,
    /// Instants, at most.
    pub cuts: usize,
    /// States of each, at most.
    pub states: usize,
    /// Decides what is drawn.
    pub seed: u64,
    /// Threads.
    pub workers: usize,
}

/// A state that is wrong.
#[derive(Debug, Clone)]
pub struct ModelFinding {
    /// Its number, its cut, what is wrong.
    pub found: WrongState,
    /// What was there.
    pub survivors: Survivors,
}

/// What came of it; written down without its findings.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ModelReport {
    /// Instants at which the power was cut.
    pub cuts: u64,
    /// Sets of steps that were put together.
    pub states: u64,
    /// Different trees that they gave.
    pub trees: u64,
    /// Those that were judged: a tree again where more had been printed.
    pub judged: u64,
    /// Sets that were wrong.
    pub bad_states: u64,
    /// Of these, one for each tree, in the order of the states.
    #[serde(skip)]
    pub findings: Vec<ModelFinding>,
    /// What could not be judged, with the reason.
    pub unmeasured: BTreeSet<String>,
    /// What failed on this machine.
    pub troubles: Vec<String>,
    /// What was left when it was not to go on.
    pub not_explored: Option<NotExplored>,
}

impl ModelReport {
    /// Findings by what is wrong: the first of each kind, and how many states there are.
    pub fn grouped(&self) -> Vec<(String, &ModelFinding, u64)> {
        let found: Vec<WrongState> = self.findings.iter().map(|f| f.found.clone()).collect();
        let groups = crate::program::explore::grouped(&found);
        let by_state: HashMap<u64, &ModelFinding> =
            self.findings.iter().map(|finding| (finding.found.state, finding)).collect();
        groups
            .into_iter()
            .filter_map(|(what, first, states)| Some((what, *by_state.get(&first.state)?, states)))
            .collect()
    }
}

/// So many calls are lost of a set that is among the first: one alone, or none.
const FEW_LOST: usize = 1;

/// Which sets of an instant are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    /// All of the steps, all but one call's, or what is durable alone.
    First,
    Others,
}

impl Part {
    fn takes(self, ordered: &StepOrder<'_>, chosen: &StepSet, tick: u64, more: &[Sync]) -> bool {
        let is_first = || {
            let begun = ordered.steps.all.iter().zip(chosen);
            let lost = begun.filter(|(step, there)| step.started < tick && !**there);
            let calls: BTreeSet<usize> = lost.map(|(step, _)| step.call).collect();
            calls.len() <= FEW_LOST || ordered.durable(tick, more) == *chosen
        };
        match self {
            Part::All => true,
            Part::First => is_first(),
            Part::Others => !is_first(),
        }
    }
}

#[derive(Default)]
struct Progress {
    report: ModelReport,
    trees: BTreeSet<u128>,
    /// By tree and what the judge knew: where the finding is, if it is one.
    verdicts: HashMap<(u128, u64), Option<usize>>,
}

impl ModelExploration<'_> {
    /// Explores one model; `more` are syncs that the program did not make. `go_on` is asked with
    /// the share that is done.
    pub fn explore(
        &self,
        model: Model,
        more: &[Sync],
        go_on: &(dyn Fn(f64) -> bool + std::marker::Sync),
    ) -> ModelReport {
        let parts = |cuts: usize| (0..cuts).map(|cut| (cut, Part::All)).collect();
        self.in_order(model, more, &parts, go_on)
    }

    /// The same sets with the same numbers, but the smallest losses first, of instants all over the
    /// run: for whoever may not have the time for all of them.
    pub fn explore_by_value(
        &self,
        model: Model,
        go_on: &(dyn Fn(f64) -> bool + std::marker::Sync),
    ) -> ModelReport {
        let parts = |cuts: usize| {
            let of = |part| spread(cuts).into_iter().map(move |cut| (cut, part));
            of(Part::First).chain(of(Part::Others)).collect()
        };
        self.in_order(model, &[], &parts, go_on)
    }

    /// `parts` says in which order instants are looked at, of so many.
    fn in_order(
        &self,
        model: Model,
        more: &[Sync],
        parts: &dyn Fn(usize) -> Vec<(usize, Part)>,
        go_on: &(dyn Fn(f64) -> bool + std::marker::Sync),
    ) -> ModelReport {
        let steps = Steps::of(&self.run.calls, self.base, model.halves_renames());
        let ordered = StepOrder::new(&steps, model);
        let cuts = self.instants();
        let parts = parts(cuts.len());
        let most = cuts.iter().map(|(_, states)| *states).max().unwrap_or(0);
        let whole = Mutex::new(vec![0; cuts.len()]);
        let shared = Mutex::new(Progress::default());
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..self.workers.clamp(1, cuts.len().max(1)) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some((number, part)) = parts.get(number).copied() else { break };
                        let done = next.load(Ordering::Relaxed) as f64 / parts.len() as f64;
                        let go_on = || go_on(done.min(1.0)) && !stop.load(Ordering::Relaxed);
                        let which = ((number, most), cuts[number], part);
                        if !self.cut(&ordered, which, more, &shared, &go_on) {
                            stop.store(true, Ordering::Relaxed);
                            break;
                        }
                        lock(&whole)[number] += 1;
                    }
                });
            }
        });
        let Progress { mut report, trees, verdicts } =
            shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        report.trees = trees.len() as u64;
        report.judged = verdicts.len() as u64;
        report.unmeasured.extend(steps.unknown.iter().cloned());
        report.findings.sort_by_key(|finding| finding.found.state);
        let parts_each = parts.len().checked_div(cuts.len()).unwrap_or(0);
        let whole = lock(&whole);
        let count = |is: &dyn Fn(usize) -> bool| whole.iter().filter(|n| is(**n)).count() as u64;
        let (instants, partly) = (count(&|n| n == 0), count(&|n| n > 0 && n < parts_each));
        report.cuts = cuts.len() as u64 - instants;
        report.not_explored = (instants + partly > 0 && parts_each > 0).then_some(NotExplored {
            instants,
            partly,
            states: None,
        });
        report
    }

    /// Instants between which something has happened, most of them of calls, and how many states
    /// each gets: in the parts that the program has named, and where it wants to be cut.
    pub(super) fn instants(&self) -> Vec<(Instant, usize)> {
        let parts = self.run.parts();
        let calls = self.run.calls.iter();
        let calls = calls.flat_map(|call| [Some(call.started), call.returned]).flatten();
        let lines = self.run.lines.iter().map(|line| line.printed);
        let after = |at: Moment| Moment { tick: at.tick + 1, ..at };
        let ends: BTreeMap<u64, Moment> =
            calls.chain(lines).map(after).map(|at| (at.tick, at)).collect();
        let all: Vec<Moment> = ends.into_values().filter(|at| parts.has(at.tick)).collect();
        let most = self.cuts.max(1);
        let drawn = match all.len() <= most {
            true => all,
            // The last one is always one of them.
            false => (1..=most).map(|n| all[n * all.len() / most - 1]).collect(),
        };
        let dense = usize::try_from(parts.states(self.states as u64)).unwrap_or(self.states);
        let drawn = drawn.into_iter().map(|at| (at, self.states));
        // Those that were asked for come last, and count.
        let chosen: BTreeMap<u64, (Moment, usize)> = drawn
            .chain(parts.cuts.iter().map(|at| (*at, dense)))
            .map(|(at, states)| (at.tick, (at, states)))
            .collect();
        let instant = |at: Moment| Instant { at, printed: self.run.printed_before(at.tick) };
        chosen.into_values().map(|(at, states)| (instant(at), states)).collect()
    }

    /// Judges the sets of an instant, which has this number; whether it did all of that.
    fn cut(
        &self,
        ordered: &StepOrder<'_>,
        ((number, states_of_each), (cut, states), part): ((usize, usize), (Instant, usize), Part),
        more: &[Sync],
        shared: &Mutex<Progress>,
        go_on: &dyn Fn() -> bool,
    ) -> bool {
        let sets = states::at(ordered, cut, more, states, self.seed);
        // What all of them begin with is done once.
        let first = |place: usize| sets.iter().all(|set| set[place]);
        let common = (0..ordered.steps.all.len()).take_while(|place| first(*place)).count();
        let mut before = ordered.steps.base.clone();
        ordered.steps.all[..common].iter().for_each(|step| before.take(&step.effect));
        for (place, chosen) in sets.into_iter().enumerate() {
            if !part.takes(ordered, &chosen, cut.at.tick, more) {
                continue;
            }
            if !go_on() {
                return false;
            }
            let state = (number * states_of_each + place) as u64;
            let tree = tree_from(before.clone(), ordered, &chosen, common);
            let key = (tree.digest(), self.age(cut));
            let known = {
                let mut shared = lock(shared);
                shared.report.states += 1;
                shared.trees.insert(key.0);
                shared.verdicts.get(&key).copied()
            };
            if let Some(known) = known {
                if let Some(place) = known {
                    let report = &mut lock(shared).report;
                    report.bad_states += 1;
                    // OK to index: findings are only sorted at the end.
                    let ModelFinding { found, survivors } = &mut report.findings[place];
                    found.states += 1;
                    // Whichever thread, and in whichever order: the smallest number.
                    if state < found.state {
                        (found.state, found.cut) = (state, cut.at);
                        *survivors = Survivors { cut, chosen };
                    }
                }
                continue;
            }
            let said = self.judge(&tree, cut);
            let mut shared = lock(shared);
            match said {
                Ok(Verdict { wrong, unmeasured, .. }) => {
                    shared.report.unmeasured.extend(unmeasured);
                    let place = (!wrong.is_empty()).then(|| {
                        let found = WrongState { state, cut: cut.at, wrong, states: 1 };
                        let survivors = Survivors { cut, chosen };
                        shared.report.bad_states += 1;
                        shared.report.findings.push(ModelFinding { found, survivors });
                        shared.report.findings.len() - 1
                    });
                    shared.verdicts.insert(key, place);
                }
                Err(trouble) => shared.report.troubles.push(trouble.to_string()),
            }
        }
        true
    }

    /// What a judge knows beside the tree.
    fn age(&self, cut: Instant) -> u64 {
        match self.judge {
            Some(_) => cut.printed as u64,
            None => cut.at.tick,
        }
    }

    pub(super) fn judge(&self, tree: &Tree, cut: Instant) -> Result<Verdict> {
        let left = RecoveredTree { tree, contents: None };
        verdict(self.run, self.judge, &left, self.base, cut.at)
    }

    /// What is wrong with a set of steps at a cut.
    pub(super) fn wrong(
        &self,
        ordered: &StepOrder<'_>,
        chosen: &StepSet,
        cut: Instant,
    ) -> Vec<Wrong> {
        let judged = self.judge(&tree_of(ordered, chosen), cut);
        judged.map(|verdict| verdict.wrong).unwrap_or_default()
    }
}

/// The tree of a set of steps.
pub(super) fn tree_of(ordered: &StepOrder<'_>, chosen: &StepSet) -> Tree {
    tree_from(ordered.steps.base.clone(), ordered, chosen, 0)
}

/// The same, from a world in which the steps before `from` have been taken.
fn tree_from(mut world: World, ordered: &StepOrder<'_>, chosen: &StepSet, from: usize) -> Tree {
    for (step, there) in ordered.steps.all.iter().zip(chosen).skip(from) {
        if *there {
            world.take(&step.effect);
        }
    }
    world.tree()
}

/// Numbers up to `count`: the last one, then halfway between those that were, again and again.
fn spread(count: usize) -> Vec<usize> {
    let mut step = count.next_power_of_two();
    let (mut order, mut taken) = (Vec::new(), vec![false; count]);
    while step > 0 {
        // From the end: all calls have returned there.
        for number in (0..count).rev().step_by(step) {
            if !std::mem::replace(&mut taken[number], true) {
                order.push(number);
            }
        }
        step /= 2;
    }
    order
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn a_spread_has_each_number_once() {
        assert_eq!(spread(5), [4, 0, 2, 3, 1]);
        for count in 0..70 {
            let mut order = spread(count);
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }
}
