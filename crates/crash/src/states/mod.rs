//! The crash states of a recorded run: what a power cut may leave, one after the other.
//!
//! [`States`] is an iterator: at each of its crash points ([`CrashPoints`]), in the order of time,
//! it makes the contents that the devices may hold then. What a device had promised is there. Of
//! the rest, which is *in doubt*, any atomic unit is there or not, on each device independently;
//! which of these combinations are made says a [`StateBound`]: by rule as far as it goes, then
//! drawn from a seed.
//!
//! # Invariants
//!
//! 1. The same recording, places, bound and seed give the same states with the same numbers, so a
//!    number is all that is needed to reproduce a state.
//! 2. But for trials ([`Rule::Trial`]) no two states are the same: neither the same contents for
//!    the same *age* (`States::with_age`: what had been promised by then), nor, therefore, the
//!    same case for a judge.

mod bound;
mod instants;
mod pages;
mod places;
mod trial;
mod uncertainty;
pub mod versions;

use std::collections::{BTreeSet, HashSet, VecDeque};

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{AtCrashPoint, DeviceId, Event, Media, Moment, Recording};
use steadfast_devices::store::Store;

use crate::explore::CutSource;

pub use bound::{Rule, StateBound};
pub use instants::ActiveTime;
pub use places::CrashPoints;

use pages::Pages;
use trial::Trials;
use uncertainty::{Pick, Uncertainty};
use versions::{CutStates, Units};

/// Which crash states of a run are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// At which crash points.
    pub places: CrashPoints,
    /// How many states of a crash point.
    pub bound: StateBound,
    /// Decides what is drawn.
    pub seed: u64,
}

/// An atomic unit of a write (or a piece of a discard) that a cut leaves in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// Index of the device.
    pub device: u32,
    /// Tick at which the write was submitted: its name in the recording.
    pub submitted: u64,
    /// Where the unit lies on the device, in bytes.
    pub offset: u64,
}

/// What a power cut may leave.
#[derive(Clone)]
pub struct State {
    /// Counts the states of an exploration from 0.
    pub number: u64,
    /// The crash point: what has a lower tick had happened.
    pub cut: Moment,
    /// Of trials: the number of the first one that found every device with the same requests
    /// settled and the same in doubt. Else the number of the crash point.
    pub place: u64,
    /// What each device holds, in the order of the recording.
    pub contents: Vec<Store>,
    /// The units in doubt that make a difference (of trials: all of them), device by device and in
    /// the order of submission. (What a unit holds may be there already.)
    pub in_doubt: Vec<Unit>,
    /// Of each of them, whether it is there.
    pub kept: Vec<bool>,
    /// For what is drawn next: whether recovery is cut, where, and what survives that.
    pub choices: Rng,
}

impl State {
    /// How many units in doubt are there.
    pub fn kept(&self) -> usize {
        self.kept.iter().filter(|kept| **kept).count()
    }
}

/// The states, in the order of the crash points.
pub struct States<'r> {
    recording: &'r Recording,
    choice: Choice,
    ages: Box<dyn Fn(u64) -> u64 + Send + 'r>,
    maker: Maker,
    moments: VecDeque<Moment>,
    /// Crash points that have a bound of their own.
    dense: (BTreeSet<u64>, StateBound),
    seen: HashSet<(u64, u128)>,
    number: u64,
    cuts: u64,
}

/// Who makes the states: one for each [`Rule`].
enum Maker {
    Trials(Trials),
    Writes { devices: Vec<(SettledContents, Pages)>, at: Option<CrashPointCursor> },
    Versions { units: Units, bases: Vec<Store>, at: Option<VersionsAt> },
}

/// The crash point whose states are being made.
struct CrashPointCursor {
    moment: Moment,
    uncertainty: Uncertainty,
    picks: VecDeque<Pick>,
}

struct VersionsAt {
    moment: Moment,
    cut_states: CutStates,
    sure: Vec<Store>,
    choices: VecDeque<versions::Choice>,
}

impl<'r> States<'r> {
    /// Cuts `recording`, which began with the devices holding `bases`.
    pub fn new(bases: &[Store], recording: &'r Recording, choice: Choice) -> Self {
        States::within(bases, recording, choice, &[])
    }

    /// The crash states of a run whose judge knows when something was unsynced, and what had been
    /// promised.
    pub fn of(recorded: &'r CutSource, choice: Choice) -> Self {
        let CutSource { bases, recording, judge } = recorded;
        States::within(bases, recording, choice, &judge.unsynced()).with_age(|tick| judge.age(tick))
    }

    fn within(
        bases: &[Store],
        recording: &'r Recording,
        choice: Choice,
        unsynced: &[(u64, u64)],
    ) -> Self {
        let mut moments = choice.places.moments(recording, unsynced, choice.seed);
        let follow = |base: &Store| (SettledContents::new(base), Pages::of(base));
        // What becomes of units on other media is more than a choice of versions.
        let is_plain = recording.devices().iter().all(|d| d.media == Media::Sectors);
        let maker = match choice.bound.rule {
            Rule::Trial => Maker::Trials(Trials::new(bases)),
            Rule::Versions { .. } if is_plain => Maker::Versions {
                units: Units::new(recording, bases),
                bases: bases.to_vec(),
                at: None,
            },
            Rule::Writes | Rule::Versions { .. } => {
                Maker::Writes { devices: bases.iter().map(follow).collect(), at: None }
            }
        };
        if !matches!(maker, Maker::Trials(_)) {
            moments.dedup_by_key(|moment| moment.tick);
        }
        States {
            recording,
            choice,
            ages: Box::new(|_| 0),
            maker,
            moments: moments.into(),
            dense: (BTreeSet::new(), choice.bound),
            seen: HashSet::new(),
            number: 0,
            cuts: 0,
        }
    }

    /// Distinguishes equal contents at crash points of different age: a number that grows whenever
    /// more has been promised, by tick. Without it the first one that leaves some contents stands
    /// for all.
    pub(crate) fn with_age(mut self, ages: impl Fn(u64) -> u64 + Send + 'r) -> Self {
        self.ages = Box::new(ages);
        self
    }

    /// Cuts only within these parts of the run, if there are any: from their first to their last
    /// crash points.
    pub(crate) fn within_parts(mut self, parts: &[(u64, u64)]) -> Self {
        if !parts.is_empty() {
            let mut ticks =
                self.choice.places.ticks_within(self.recording, parts, self.choice.seed);
            ticks.dedup();
            self.moments = ticks.into_iter().map(|tick| self.moment(tick)).collect();
        }
        self
    }

    fn moment(&self, tick: u64) -> Moment {
        Moment { tick, at: self.recording.time_of(tick) }
    }

    /// Cuts at these crash points too, with a bound of their own.
    pub(crate) fn and_at(mut self, ticks: impl Iterator<Item = u64>, bound: StateBound) -> Self {
        self.dense = (ticks.collect(), bound);
        let drawn: BTreeSet<u64> = self.moments.iter().map(|moment| moment.tick).collect();
        let more = self.dense.0.difference(&drawn).map(|tick| self.moment(*tick));
        let more: Vec<Moment> = more.collect();
        if !more.is_empty() {
            let mut both: Vec<Moment> = self.moments.drain(..).chain(more).collect();
            both.sort_by_key(|moment| moment.tick);
            self.moments = both.into();
        }
        self
    }

    /// How many crash points have been begun.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// How many crash points are still to come.
    pub(crate) fn cuts_left(&self) -> usize {
        self.moments.len()
    }

    fn seed(&self, number: u64) -> u64 {
        self.choice.seed ^ (number + 1).wrapping_mul(0xa076_1d64_78bd_642f)
    }

    /// Moves on to the next crash point.
    fn advance(&mut self) -> Option<()> {
        let moment = self.moments.pop_front()?;
        let (tick, seed) = (moment.tick, self.seed(self.cuts));
        let bound = if self.dense.0.contains(&tick) { self.dense.1 } else { self.choice.bound };
        let States { recording, maker, .. } = self;
        match maker {
            Maker::Trials(_) => {}
            Maker::Writes { devices, at } => {
                for ((device, pages), id) in devices.iter_mut().zip(0..) {
                    let settled = device.follow(&recording.at(DeviceId(id), tick));
                    pages.moved(&device.base, settled);
                }
                let bases = devices.iter().map(|(d, _)| (&d.base, d.settled));
                let uncertainty = Uncertainty::at(recording, tick, bases);
                let picks = uncertainty.picks(bound, &mut Rng::new(seed)).into();
                *at = Some(CrashPointCursor { moment, uncertainty, picks });
            }
            Maker::Versions { units, bases, at } => {
                let cut_states = units.at(recording, tick);
                let sure = units.sure(&cut_states, bases);
                let choices = cut_states.choices(bound, seed).into();
                *at = Some(VersionsAt { moment, cut_states, sure, choices });
            }
        }
        self.cuts += 1;
        Some(())
    }

    /// The next state of this crash point, with a digest; `None` if there is none.
    fn make(&mut self) -> Option<(State, u128)> {
        let number = self.number;
        let choices = Rng::new(self.seed(number));
        let (recording, place) = (self.recording, self.cuts.saturating_sub(1));
        let (cut, contents, digest, (in_doubt, kept)) = match &mut self.maker {
            Maker::Trials(_) => return None,
            Maker::Writes { devices, at } => {
                let at = at.as_mut()?;
                let pick = at.picks.pop_front()?;
                let kept = at.uncertainty.kept(pick);
                let mut next = at.uncertainty.all_kept(&kept).into_iter();
                let mut digest = 0;
                let contents = devices
                    .iter()
                    .zip(0..)
                    .map(|((device, pages), id)| {
                        let left = recording.at(DeviceId(id), at.moment.tick);
                        let keep = |_: &Event, _| next.next().unwrap_or(false);
                        let store = left.contents_where(&device.base, device.settled, keep);
                        let touched = left.changes(device.settled).map(|(event, _)| event);
                        digest ^= pages.digest(&store, touched).rotate_left(id * 7);
                        store
                    })
                    .collect();
                (at.moment, contents, digest, (at.uncertainty.units().to_vec(), kept))
            }
            Maker::Versions { units, at, .. } => {
                let at = at.as_mut()?;
                let choice = at.choices.pop_front()?;
                let contents = units.contents(&at.cut_states, &at.sure, &choice);
                let digest = units.digest(&at.cut_states, &choice);
                let chosen = units.chosen(recording, at.moment.tick, &at.cut_states, &choice);
                (at.moment, contents, digest, chosen)
            }
        };
        Some((State { number, cut, place, contents, in_doubt, kept, choices }, digest))
    }

    /// The next trial.
    fn trial(&mut self) -> Option<State> {
        let (number, cut) = (self.number, self.moments.pop_front()?);
        let choices = Rng::new(self.seed(number));
        (self.number, self.cuts) = (number + 1, self.cuts + 1);
        match &mut self.maker {
            Maker::Trials(trials) => Some(trials.make(self.recording, number, cut, choices)),
            _ => None,
        }
    }
}

impl Iterator for States<'_> {
    type Item = State;

    fn next(&mut self) -> Option<State> {
        if matches!(self.maker, Maker::Trials(_)) {
            return self.trial();
        }
        loop {
            let Some((state, digest)) = self.make() else {
                self.advance()?;
                continue;
            };
            let age = (self.ages)(state.cut.tick);
            if self.seen.insert((age, digest)) {
                self.number += 1;
                return Some(state);
            }
        }
    }
}

/// A device's contents as far as no later crash point can doubt them.
#[derive(Clone)]
struct SettledContents {
    base: Store,
    /// How many of its requests that is.
    settled: usize,
}

impl SettledContents {
    fn new(base: &Store) -> SettledContents {
        SettledContents { base: base.clone(), settled: 0 }
    }

    /// Goes on to a crash point; the requests that this settles.
    fn follow<'r>(&mut self, at: &AtCrashPoint<'r>) -> impl Iterator<Item = &'r Event> + use<'r> {
        let (from, to) = (self.settled, at.settled(self.settled));
        at.advance(&mut self.base, from, to);
        self.settled = to;
        at.requests(from, to)
    }
}

/// Contents of all devices at a crash point, where `keep` decides of each unit in doubt.
pub fn contents_where(
    bases: &[Store],
    recording: &Recording,
    tick: u64,
    mut keep: impl FnMut(Unit) -> bool,
) -> Vec<Store> {
    let left = |(base, device): (&Store, u32)| {
        let at = recording.at(DeviceId(device), tick);
        at.contents_where(base, 0, |event, offset| {
            keep(Unit { device, submitted: event.submitted.tick, offset })
        })
    };
    bases.iter().zip(0..).map(left).collect()
}

#[cfg(test)]
mod tests;
