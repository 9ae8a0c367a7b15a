//! The states that a power cut may leave of a recorded run, one after the other.
//!
//! [`Cuts`] is an iterator: at each of its [`Places`], in the order of time, it makes the contents
//! that the devices may hold then. What a device had promised is there. Of the rest, which is *in
//! doubt*, any atomic unit is there or not, on each device independently; which of these
//! combinations are made says a [`Bound`]: by rule as far as it goes, then drawn from a seed.
//!
//! # Invariants
//!
//! 1. The same recording, places, bound and seed give the same states with the same numbers, so a
//!    number is all that is needed to make a state again.
//! 2. No two states are the same: neither the same contents for the same *age*
//!    ([`Cuts::with_age`]: what had been promised by then), nor, therefore, the same case for a
//!    judge.

mod doubt;
mod pages;
mod places;

use std::collections::{HashSet, VecDeque};

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{DeviceId, Event, Moment, Recording};
use steadfast_devices::store::Store;

pub use doubt::{Bound, Pick, Unit};
pub use places::Places;

use doubt::Doubt;
use pages::Pages;

/// Which states of a run are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Where it is cut.
    pub places: Places,
    /// How many states a cut.
    pub bound: Bound,
    /// Decides what is drawn.
    pub seed: u64,
}

/// What a power cut may leave.
#[derive(Clone)]
pub struct State {
    /// Counts the states of an exploration from 0.
    pub number: u64,
    /// The cut: what has a lower tick had happened.
    pub cut: Moment,
    /// What each device holds, in the order of the recording.
    pub contents: Vec<Store>,
    /// The units in doubt that make a difference, device by device and in the order of submission.
    /// (What a unit holds may be there already.)
    pub in_doubt: Vec<Unit>,
    /// Of each of them, whether it is there.
    pub kept: Vec<bool>,
    /// The rule by which that was chosen.
    pub pick: Pick,
}

impl State {
    /// How many units in doubt are there.
    pub fn kept(&self) -> usize {
        self.kept.iter().filter(|kept| **kept).count()
    }
}

/// One device as far as no later cut can doubt it.
struct Followed {
    base: Store,
    settled: usize,
    pages: Pages,
}

/// The states, in the order of the cuts.
pub struct Cuts<'r> {
    recording: &'r Recording,
    choice: Choice,
    ages: Box<dyn Fn(u64) -> u64 + Send + 'r>,
    devices: Vec<Followed>,
    ticks: VecDeque<u64>,
    at: Option<At>,
    seen: HashSet<(u64, u128)>,
    number: u64,
    cuts: u64,
}

/// The cut whose states are being made.
struct At {
    moment: Moment,
    doubt: Doubt,
    picks: VecDeque<Pick>,
}

impl<'r> Cuts<'r> {
    /// Cuts `recording`, which began with the devices holding `bases`.
    pub fn new(bases: &[Store], recording: &'r Recording, choice: Choice) -> Self {
        let follow =
            |base: &Store| Followed { base: base.clone(), settled: 0, pages: Pages::of(base) };
        Cuts {
            recording,
            choice,
            ages: Box::new(|_| 0),
            devices: bases.iter().map(follow).collect(),
            ticks: choice.places.ticks(recording, choice.seed).into(),
            at: None,
            seen: HashSet::new(),
            number: 0,
            cuts: 0,
        }
    }

    /// Tells apart equal contents at cuts of different age: a number that grows whenever more has
    /// been promised, by tick. Without it the first cut that leaves some contents stands for all.
    pub fn with_age(mut self, ages: impl Fn(u64) -> u64 + Send + 'r) -> Self {
        self.ages = Box::new(ages);
        self
    }

    /// How many cuts have been begun.
    pub fn cuts(&self) -> u64 {
        self.cuts
    }

    /// How many cuts are still to come.
    pub fn cuts_left(&self) -> usize {
        self.ticks.len()
    }

    /// Moves on to the next cut.
    fn advance(&mut self) -> Option<()> {
        let tick = self.ticks.pop_front()?;
        for (device, id) in self.devices.iter_mut().zip(0..) {
            device.follow(self.recording, DeviceId(id), tick);
        }
        let bases = self.devices.iter().map(|d| (&d.base, d.settled));
        let doubt = Doubt::at(self.recording, tick, bases);
        let seed = self.choice.seed ^ (self.cuts + 1).wrapping_mul(0xa076_1d64_78bd_642f);
        let picks = doubt.picks(self.choice.bound, &mut Rng::new(seed)).into();
        self.cuts += 1;
        let moment = Moment { tick, at: self.recording.time_of(tick) };
        self.at = Some(At { moment, doubt, picks });
        Some(())
    }

    fn make(&self, at: &At, pick: Pick) -> (State, u128) {
        let kept = at.doubt.kept(pick);
        let all = at.doubt.all_kept(&kept);
        let mut next = all.into_iter();
        let mut digest = 0;
        let contents = self
            .devices
            .iter()
            .zip(0..)
            .map(|(device, id)| {
                let left = self.recording.at(DeviceId(id), at.moment.tick);
                let keep = |_: &Event, _| next.next().unwrap_or(false);
                let store = left.contents_where(&device.base, device.settled, keep);
                let touched = left.changes(device.settled).map(|(event, _)| event);
                digest ^= device.pages.digest(&store, touched).rotate_left(id * 7);
                store
            })
            .collect();
        let in_doubt = at.doubt.units().to_vec();
        let (number, cut) = (self.number, at.moment);
        (State { number, cut, contents, in_doubt, kept, pick }, digest)
    }
}

impl Iterator for Cuts<'_> {
    type Item = State;

    fn next(&mut self) -> Option<State> {
        loop {
            let pick = self.at.as_mut().and_then(|at| at.picks.pop_front());
            let (Some(pick), Some(at)) = (pick, self.at.take()) else {
                self.advance()?;
                continue;
            };
            let (state, digest) = self.make(&at, pick);
            let age = (self.ages)(at.moment.tick);
            self.at = Some(at);
            if self.seen.insert((age, digest)) {
                self.number += 1;
                return Some(state);
            }
        }
    }
}

impl Followed {
    fn follow(&mut self, recording: &Recording, device: DeviceId, tick: u64) {
        let at = recording.at(device, tick);
        let settled = at.settled(self.settled);
        at.advance(&mut self.base, self.settled, settled);
        self.pages.moved(&self.base, at.requests(self.settled, settled));
        self.settled = settled;
    }
}

/// Contents of all devices at a cut, where `keep` decides of each unit in doubt.
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
