//! The order in which the states of a run are judged: one after the other, or those first that are
//! most likely to show something.
//!
//! A state's number comes from going through all states from the first one on. So every pass goes
//! through all of them, and takes only its own: numbers are the same in any order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::states::{State, States};

/// Of so many instants one is among those of the first passes.
const SPREAD: u64 = 8;
/// After so many states that are not of a pass it is asked whether to go on.
const ASKED_EVERY: u64 = 64;

/// Which states are judged on one way through all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// All.
    All,
    /// Those in which nothing of what is in doubt is there, or all of it: at some instants, or at
    /// the others.
    Extremes { some: bool },
    /// The others.
    Between { some: bool },
}

impl Pass {
    /// All states, those first that are most likely to show something.
    pub(super) const BY_VALUE: [Pass; 4] = [
        Pass::Extremes { some: true },
        Pass::Extremes { some: false },
        Pass::Between { some: true },
        Pass::Between { some: false },
    ];

    fn takes(self, state: &State) -> bool {
        let is_extreme = state.kept.iter().all(|kept| *kept == state.kept[0]);
        let is_some = state.place.is_multiple_of(SPREAD);
        match self {
            Pass::All => true,
            Pass::Extremes { some } => is_extreme && some == is_some,
            Pass::Between { some } => !is_extreme && some == is_some,
        }
    }
}

/// What was left when an exploration was not to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotExplored {
    /// Instants of which no state was judged.
    pub instants: u64,
    /// Instants of which some states were judged, and not all.
    pub partly: u64,
    /// States that were not judged, where they were counted.
    pub states: Option<u64>,
}

/// What is met on the way, with how many crash points have been begun in this pass, of how many.
pub(super) enum Step<'s> {
    /// A state to be judged.
    Judge(&'s State, u64, u64),
    /// A state of another pass.
    Skip(u64, u64),
}

/// How far it went.
pub(super) struct Walk {
    /// Instants of which something was judged.
    pub cuts: u64,
    /// What was left.
    pub left: Option<NotExplored>,
}

/// States of each instant.
#[derive(Default)]
struct Counts {
    /// Those that there are, and those that were judged.
    of: Vec<(u64, u64)>,
    /// The first pass has gone through all of them.
    all_seen: bool,
}

/// Goes through all states once for each pass, by so many threads; `each` judges, and says whether
/// to go on.
pub(super) fn walk<'r>(
    order: &[Pass],
    workers: usize,
    states: &(dyn Fn() -> States<'r> + Sync),
    each: &(dyn Fn(Step<'_>) -> bool + Sync),
) -> Walk {
    let counts = Mutex::new(Counts::default());
    let stop = AtomicBool::new(false);
    let (mut all, mut begun) = (0, 0);
    for (number, pass) in order.iter().enumerate() {
        let states = states();
        all = states.cuts_left() as u64;
        let is_first = number == 0;
        if is_first {
            lock(&counts).of.resize(states.cuts_left(), (0, 0));
        }
        let way =
            PassStates { pass: *pass, is_first, all, states: Mutex::new(states), counts: &counts };
        std::thread::scope(|scope| {
            for _ in 0..workers.max(1) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let Some((state, cuts)) = way.next(each, &stop) else { break };
                        let go_on = each(Step::Judge(&state, cuts, all));
                        if let Some(count) = lock(&counts).of.get_mut(place(&state)) {
                            count.1 += 1;
                        }
                        if !go_on {
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        begun = lock(&way.states).cuts();
        if stop.load(Ordering::Relaxed) {
            break;
        }
        lock(&counts).all_seen |= is_first;
    }
    let counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let left = counts.left();
    let cuts = match (order, left) {
        ([Pass::All], _) => begun,
        (_, left) => all - left.map_or(0, |left| left.instants),
    };
    Walk { cuts, left }
}

struct PassStates<'w, 'r> {
    pass: Pass,
    is_first: bool,
    all: u64,
    states: Mutex<States<'r>>,
    counts: &'w Mutex<Counts>,
}

impl PassStates<'_, '_> {
    /// The next state of this pass, with how many crash points have been begun.
    fn next(
        &self,
        each: &(dyn Fn(Step<'_>) -> bool + Sync),
        stop: &AtomicBool,
    ) -> Option<(State, u64)> {
        let mut states = lock(&self.states);
        for skipped in 1.. {
            let state = states.next()?;
            if self.is_first
                && let Some(count) = lock(self.counts).of.get_mut(place(&state))
            {
                count.0 += 1;
            }
            if self.pass.takes(&state) {
                return Some((state, states.cuts()));
            }
            let asks = skipped % ASKED_EVERY == 0;
            if asks && !each(Step::Skip(states.cuts(), self.all)) {
                stop.store(true, Ordering::Relaxed);
            }
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        None
    }
}

impl Counts {
    fn left(&self) -> Option<NotExplored> {
        let count = |is: &dyn Fn(u64, u64) -> bool| {
            self.of.iter().filter(|(seen, judged)| is(*seen, *judged)).count() as u64
        };
        let instants = count(&|seen, judged| judged == 0 && (seen > 0 || !self.all_seen));
        let partly = count(&|seen, judged| judged > 0 && judged < seen);
        let states = self.of.iter().map(|(seen, judged)| seen - judged).sum();
        (instants + partly > 0).then_some(NotExplored {
            instants,
            partly,
            states: self.all_seen.then_some(states),
        })
    }
}

fn place(state: &State) -> usize {
    usize::try_from(state.place).unwrap_or(usize::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
