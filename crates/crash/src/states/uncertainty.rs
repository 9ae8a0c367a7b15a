//! What is in doubt at one crash point, and which combinations of it are made by whole writes and
//! units ([`Rule::Writes`](super::Rule::Writes)).

use std::collections::HashMap;

use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{Action, DeviceId, Event, Recording};
use steadfast_devices::store::Store;

use super::{StateBound, Unit};

/// Which of what is in doubt is there. Units and writes are numbered among those in doubt, in the
/// order of submission, device by device.
#[derive(Clone, Copy)]
pub(super) enum Pick {
    /// All that is in doubt on this device, and nothing on the others.
    Device(u32),
    /// These units.
    Units(Subset),
    /// Whole writes: these.
    Writes(Subset),
}

/// Some of a number of things.
#[derive(Clone, Copy)]
pub(super) enum Subset {
    First(usize),
    AllBut(usize),
    Only(usize),
    /// Those whose bit is set.
    Bits(u64),
    /// Each in so many of 100 cases.
    Drawn {
        seed: u64,
        percent: u64,
    },
}

impl Subset {
    /// Of so many things, which are in it.
    fn of(self, count: usize) -> Vec<bool> {
        let mut rng = Rng::new(if let Subset::Drawn { seed, .. } = self { seed } else { 0 });
        let is_in = |n: usize| match self {
            Subset::First(first) => n < first,
            Subset::AllBut(but) => n != but,
            Subset::Only(only) => n == only,
            Subset::Bits(bits) => bits >> n & 1 == 1,
            Subset::Drawn { percent, .. } => rng.percent(percent),
        };
        (0..count).map(is_in).collect()
    }
}

/// What is in doubt at a cut.
pub(super) struct Uncertainty {
    /// Of every unit, live or not, its number among the live ones.
    numbers: Vec<Option<usize>>,
    /// The units that make a difference.
    units: Vec<Unit>,
    /// For each of them the number of its write.
    writes: Vec<usize>,
}

/// A unit that the devices were asked for, before it is known whether it makes a difference.
struct UnitRequest<'e> {
    unit: Unit,
    event: &'e Event,
}

impl Uncertainty {
    /// What a cut leaves in doubt, of devices whose contents so far and number of settled requests
    /// are `bases`.
    pub fn at<'s>(
        recording: &Recording,
        tick: u64,
        bases: impl Iterator<Item = (&'s Store, usize)>,
    ) -> Uncertainty {
        let mut uncertainty =
            Uncertainty { numbers: Vec::new(), units: Vec::new(), writes: Vec::new() };
        for ((base, settled), device) in bases.zip(0..) {
            let at = recording.at(DeviceId(device), tick);
            let mut asked = Vec::new();
            // Events are named, not kept, by the closure; they are found again by their tick.
            let sure = at.chosen(base, settled, |event, offset| {
                asked.push(Unit { device, submitted: event.submitted.tick, offset });
                false
            });
            let events: HashMap<u64, &Event> =
                at.changes(settled).map(|(event, _)| (event.submitted.tick, event)).collect();
            let found = asked.into_iter().filter_map(|unit| {
                events.get(&unit.submitted).map(|event| UnitRequest { unit, event })
            });
            let atomic = recording.devices()[device as usize].unit();
            uncertainty.add(&sure, &found.collect::<Vec<_>>(), atomic);
        }
        uncertainty
    }

    fn add(&mut self, sure: &Store, asked: &[UnitRequest<'_>], atomic: u32) {
        let mut times: HashMap<u64, u32> = HashMap::new();
        asked.iter().for_each(|a| *times.entry(a.unit.offset).or_default() += 1);
        let discards = asked.iter().any(|a| matches!(a.event.action, Action::Discard { .. }));
        for UnitRequest { unit, event } in asked {
            let alone = times[&unit.offset] == 1 && !discards;
            if alone && !changes(sure, event, unit.offset, atomic) {
                self.numbers.push(None);
                continue;
            }
            let of_write = match (self.units.last(), self.writes.last()) {
                (Some(last), Some(write))
                    if (last.device, last.submitted) == (unit.device, unit.submitted) =>
                {
                    *write
                }
                (_, last) => last.map_or(0, |write| write + 1),
            };
            self.numbers.push(Some(self.units.len()));
            self.units.push(*unit);
            self.writes.push(of_write);
        }
    }

    /// The units that make a difference.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// How many writes they belong to.
    fn write_count(&self) -> usize {
        self.writes.last().map_or(0, |last| last + 1)
    }

    /// Of the units that make a difference, which are there.
    pub fn kept(&self, pick: Pick) -> Vec<bool> {
        match pick {
            Pick::Device(device) => self.units.iter().map(|unit| unit.device == device).collect(),
            Pick::Units(part) => part.of(self.units.len()),
            Pick::Writes(part) => {
                let there = part.of(self.write_count());
                self.writes.iter().map(|write| there[*write]).collect()
            }
        }
    }

    /// Of all units, which are there if `live` says so of those that make a difference.
    pub fn all_kept(&self, live: &[bool]) -> Vec<bool> {
        self.numbers.iter().map(|number| number.is_none_or(|n| live[n])).collect()
    }

    /// The combinations to be made, within the bound.
    pub fn picks(&self, bound: StateBound, rng: &mut Rng) -> Vec<Pick> {
        let (units, writes) = (self.units.len(), self.write_count());
        let within = |n: usize| n < 63 && 1u64 << n <= bound.combinations;
        let first = [Pick::Units(Subset::First(0)), Pick::Units(Subset::First(units))];
        let mut named = Vec::new();
        if within(units) {
            named.extend((1..1u64 << units).map(|bits| Pick::Units(Subset::Bits(bits))));
        } else {
            let devices = self.units.last().map_or(0, |unit| unit.device + 1);
            named.extend((0..devices).map(Pick::Device));
            if within(writes) {
                named.extend((1..1u64 << writes).map(|bits| Pick::Writes(Subset::Bits(bits))));
            } else {
                named.extend((1..writes).map(|n| Pick::Writes(Subset::First(n))));
                named.extend((0..writes).map(|n| Pick::Writes(Subset::AllBut(n))));
                named.extend((0..writes).map(|n| Pick::Writes(Subset::Only(n))));
            }
            named.extend((0..units).map(|n| Pick::Units(Subset::AllBut(n))));
            named.extend((0..units).map(|n| Pick::Units(Subset::Only(n))));
        }
        let room = usize::try_from(bound.states).unwrap_or(usize::MAX).saturating_sub(first.len());
        let drawn = if within(units) { 0 } else { bound.drawn.min(bound.states / 3) as usize };
        let mut picks: Vec<Pick> = first.into_iter().take(bound.states as usize).collect();
        picks.extend(some(named, room.saturating_sub(drawn), rng));
        for number in 0..drawn.min(room) {
            let drawn = Subset::Drawn { seed: rng.bits(), percent: 10 + rng.below(81) };
            picks.push(if number % 2 == 0 { Pick::Writes(drawn) } else { Pick::Units(drawn) });
        }
        picks
    }
}

/// Up to `count` of them, drawn where they are more, in their order.
fn some(mut named: Vec<Pick>, count: usize, rng: &mut Rng) -> Vec<Pick> {
    if named.len() <= count {
        return named;
    }
    // A partial shuffle of their numbers.
    let mut numbers: Vec<usize> = (0..named.len()).collect();
    for i in 0..count {
        let j = i + rng.below((numbers.len() - i) as u64) as usize;
        numbers.swap(i, j);
    }
    numbers.truncate(count);
    numbers.sort_unstable();
    named = numbers.into_iter().map(|n| named[n]).collect();
    named
}

/// Whether a unit of a write differs from what is there without it.
fn changes(sure: &Store, event: &Event, offset: u64, atomic: u32) -> bool {
    let Action::Write { offset: start, data, .. } = &event.action else { return true };
    let from = (offset - start) as usize;
    let len = (atomic as usize).min(data.len() - from);
    let mut new = vec![0; len];
    data.copy_to(from, &mut new);
    sure.read(offset, len as u64) != new
}
