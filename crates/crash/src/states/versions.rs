//! What may be on the devices at a crash point, version by version: every legal state within a
//! bound ([`Rule::Versions`]).
//!
//! The unit is a device's atomic write: old or new, never mixed. A unit that no flush covers
//! holds what was there, or what any of the writes in doubt brought; units are independent of
//! each other, and devices too. So the states of a crash point are the product of the units'
//! versions. Up to [`StateBound::combinations`] of them, all are taken. Beyond it, in this order:
//!
//! 1. nothing in doubt is there; all of it is;
//! 2. whole writes: every subset if that is within the bound; else each beginning and each end of
//!    their order, each one alone, all but each one;
//! 3. single units, if the rule says so: each alone, all but each, each beginning of their order;
//! 4. [`StateBound::drawn`] states drawn from a seed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use bytes::Bytes;
use steadfast_block::rng::Rng;
use steadfast_devices::filter::record::{Action, CutEffect, DeviceId, Recording};
use steadfast_devices::store::Store;

use super::{Rule, StateBound, Unit};

/// Where a unit is: (device, byte offset).
pub type UnitAddress = (u32, u64);
/// A unit that is written, by number, in the order of the places: there is one for each word of a
/// memory, and each cut goes through all that was written before it.
pub type UnitNo = u32;
/// Contents of a unit, by number.
pub type ContentNumber = usize;
/// For each unit in doubt, which of its options; the first is what was there.
pub type Choice = Vec<u8>;

/// A recording cut into units.
pub struct Units {
    contents: Vec<Bytes>,
    hashes: Vec<u64>,
    /// Where each unit is, ascending.
    places: Vec<UnitAddress>,
    /// What each unit holds at first.
    base: Vec<ContentNumber>,
    /// What each event of the recording writes.
    writes: Vec<Vec<(UnitNo, ContentNumber)>>,
}

/// What is collected before the units have numbers.
#[derive(Default)]
struct UnitWrites {
    contents: Vec<Bytes>,
    hashes: Vec<u64>,
    known: HashMap<Bytes, ContentNumber>,
    base: BTreeMap<UnitAddress, ContentNumber>,
    writes: Vec<Vec<(UnitAddress, ContentNumber)>>,
}

/// The states that a cut may leave.
#[derive(Debug, PartialEq, Eq)]
pub struct CutStates {
    /// Beyond doubt, and different from the base; ascending.
    pub fixed: Vec<(UnitNo, ContentNumber)>,
    /// What each unit in doubt may hold: two things at least; ascending.
    pub options: Vec<(UnitNo, Vec<ContentNumber>)>,
    /// The writes in doubt: which option of which unit they bring.
    writes: Vec<Vec<(usize, u8)>>,
}

impl Units {
    /// Cuts what devices that held `bases` were asked.
    pub fn new(recording: &Recording, bases: &[Store]) -> Units {
        let mut units = UnitWrites::default();
        // What is there if everything is: a store may be part of a word.
        let mut newest = bases.to_vec();
        for event in recording.events() {
            let device = event.device.0;
            let unit = recording.devices()[device as usize].unit() as usize;
            let (offset, data) = match &event.action {
                Action::Write { offset, data, .. } => (*offset, data.unpack()),
                Action::Store { offset, data } => {
                    let data = data.unpack();
                    let (from, end) = (*offset, offset + data.len() as u64);
                    let newest = &mut newest[device as usize];
                    newest.write_slice(from, &data);
                    let from = from / unit as u64 * unit as u64;
                    (from, newest.read(from, end.next_multiple_of(unit as u64) - from))
                }
                Action::Discard { offset, len } => {
                    let range = *offset..offset + len;
                    let base = &bases[device as usize];
                    let discard = units.discarded(device, range, unit as u64, base);
                    newest[device as usize].discard(*offset, *len);
                    units.writes.push(discard);
                    continue;
                }
                Action::Flush | Action::Persist { .. } | Action::Fence => {
                    units.writes.push(Vec::new());
                    continue;
                }
            };
            newest[device as usize].write_slice(offset, &data);
            let mut writes = Vec::new();
            for at in (0..data.len()).step_by(unit) {
                let part = data.slice(at..data.len().min(at + unit));
                let place = (device, offset + at as u64);
                if !units.base.contains_key(&place) {
                    let old = bases[device as usize].read(place.1, part.len() as u64);
                    let old = units.intern(old);
                    units.base.insert(place, old);
                }
                writes.push((place, units.intern(part)));
            }
            units.writes.push(writes);
        }
        units.numbered()
    }

    /// Where a unit is.
    pub fn place(&self, unit: UnitNo) -> UnitAddress {
        self.places[unit as usize]
    }

    /// The bytes of a unit.
    pub fn content(&self, number: ContentNumber) -> &Bytes {
        &self.contents[number]
    }

    /// What a cut leaves in doubt.
    pub fn at(&self, recording: &Recording, cut: u64) -> CutStates {
        let devices = recording.devices().len() as u32;
        let cuts: Vec<_> = (0..devices).map(|d| recording.at(DeviceId(d), cut)).collect();
        // What each unit surely held last, and what may be there instead.
        let mut sure = self.base.clone();
        let mut others: Vec<Vec<ContentNumber>> = vec![Vec::new(); self.places.len()];
        let mut in_doubt = Vec::new();
        for (number, event) in recording.events().iter().enumerate() {
            let Some(fate) = cuts[event.device.0 as usize].fate(event) else { continue };
            for (unit, content) in &self.writes[number] {
                let (sure, others) = (&mut sure[*unit as usize], &mut others[*unit as usize]);
                match fate {
                    CutEffect::Durable => {
                        *sure = *content;
                        others.clear();
                    }
                    CutEffect::InDoubt if sure != content && !others.contains(content) => {
                        others.push(*content);
                    }
                    CutEffect::InDoubt => {}
                }
            }
            if fate == CutEffect::InDoubt {
                in_doubt.push(number);
            }
        }
        let (mut fixed, mut options) = (Vec::new(), Vec::new());
        for (unit, (sure, others)) in (0..).zip(sure.into_iter().zip(others)) {
            if !others.is_empty() {
                options.push((unit, [&[sure], &others[..]].concat()));
            } else if self.base[unit as usize] != sure {
                fixed.push((unit, sure));
            }
        }
        let writes = in_doubt.iter().map(|number| {
            let of = |(unit, content): &(UnitNo, ContentNumber)| {
                let unit = options.binary_search_by_key(unit, |(u, _)| *u).ok()?;
                let option = options[unit].1.iter().position(|c| c == content)?;
                Some((unit, option as u8))
            };
            self.writes[*number].iter().filter_map(of).collect::<Vec<_>>()
        });
        let writes = writes.filter(|w| !w.is_empty()).collect();
        CutStates { fixed, options, writes }
    }

    /// A number that is the same for equal contents on equal bases.
    pub fn digest(&self, cut_states: &CutStates, choice: &[u8]) -> u128 {
        let chosen =
            cut_states.options.iter().zip(choice).map(|((u, o), c)| (*u, o[usize::from(*c)]));
        let differing = chosen.filter(|(unit, content)| self.base[*unit as usize] != *content);
        let differing = cut_states.fixed.iter().copied().chain(differing);
        differing.fold(0, |sum, (unit, content)| {
            let place = self.place(unit);
            let seed = self.hashes[content] ^ place.1.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut rng = Rng::new(seed ^ u64::from(place.0) << 60);
            sum ^ (u128::from(rng.bits()) << 64 | u128::from(rng.bits()))
        })
    }

    /// The devices with what is beyond doubt.
    pub fn sure(&self, cut_states: &CutStates, bases: &[Store]) -> Vec<Store> {
        let mut stores = bases.to_vec();
        for (unit, content) in &cut_states.fixed {
            let (device, offset) = self.place(*unit);
            stores[device as usize].write_slice(offset, &self.contents[*content]);
        }
        stores
    }

    /// The devices in one state; `sure` is from [`sure`](Self::sure).
    pub fn contents(&self, cut_states: &CutStates, sure: &[Store], choice: &[u8]) -> Vec<Store> {
        let mut stores = sure.to_vec();
        for ((unit, options), chosen) in cut_states.options.iter().zip(choice) {
            if *chosen > 0 || self.base[*unit as usize] != options[0] {
                let (device, offset) = self.place(*unit);
                let content = &self.contents[options[usize::from(*chosen)]];
                stores[device as usize].write_slice(offset, content);
            }
        }
        stores
    }

    /// The units of the writes in doubt at a crash point that make a difference, and which of them
    /// are there: those that a choice took its versions from.
    pub(crate) fn chosen(
        &self,
        recording: &Recording,
        cut: u64,
        cut_states: &CutStates,
        choice: &[u8],
    ) -> (Vec<Unit>, Vec<bool>) {
        let (mut units, mut kept) = (Vec::new(), Vec::new());
        for (number, event) in recording.events().iter().enumerate() {
            let device = event.device.0;
            if recording.at(DeviceId(device), cut).fate(event) != Some(CutEffect::InDoubt) {
                continue;
            }
            for (unit, content) in &self.writes[number] {
                let offset = self.place(*unit).1;
                let Ok(unit) = cut_states.options.binary_search_by_key(unit, |(u, _)| *u) else {
                    continue;
                };
                let options = &cut_states.options[unit].1;
                let submitted = event.submitted.tick;
                units.push(Unit { device, submitted, offset });
                kept.push(options[usize::from(choice[unit])] == *content && choice[unit] > 0);
            }
        }
        units_in_order(units, kept)
    }
}

impl UnitWrites {
    /// The units that a discard changes, and zeros. It may be of a whole device: units that held
    /// zeros at first, and that nobody has written since, are left out.
    fn discarded(
        &mut self,
        device: u32,
        range: Range<u64>,
        unit: u64,
        base: &Store,
    ) -> Vec<(UnitAddress, ContentNumber)> {
        let Range { start, end } = range;
        let written = self.base.range((device, start)..(device, end)).map(|((_, at), _)| *at);
        let mut offsets: BTreeSet<u64> = written.collect();
        for (from, len) in base.populated() {
            let (from, to) = (from.max(start), (from + len).min(end));
            if from < to {
                let first = from - (from - start) % unit;
                offsets.extend((first..to).step_by(unit as usize));
            }
        }
        let mut zeros = |at: u64| {
            let len = unit.min(end - at);
            let old = self.base.get(&(device, at)).copied();
            let old = old.unwrap_or_else(|| self.intern(base.read(at, len)));
            self.base.insert((device, at), old);
            ((device, at), self.intern(vec![0; len as usize].into()))
        };
        offsets.into_iter().map(&mut zeros).collect()
    }

    fn intern(&mut self, bytes: Bytes) -> ContentNumber {
        if let Some(number) = self.known.get(&bytes) {
            return *number;
        }
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        self.hashes.push(hasher.finish());
        self.contents.push(bytes.clone());
        self.known.insert(bytes, self.contents.len() - 1);
        self.contents.len() - 1
    }

    /// The units with their numbers.
    fn numbered(self) -> Units {
        let UnitWrites { contents, hashes, base, writes, .. } = self;
        let (places, base): (Vec<UnitAddress>, Vec<ContentNumber>) = base.into_iter().unzip();
        let number = |place: &UnitAddress| places.partition_point(|of| of < place) as UnitNo;
        let numbered = |of: Vec<(UnitAddress, ContentNumber)>| {
            of.into_iter().map(|(place, content)| (number(&place), content)).collect()
        };
        let writes = writes.into_iter().map(numbered).collect();
        Units { contents, hashes, places, base, writes }
    }
}

impl CutStates {
    /// How many states there are, as far as a number can hold.
    pub fn count(&self) -> usize {
        self.options.iter().fold(1, |n: usize, (_, o)| n.saturating_mul(o.len()))
    }

    /// The states to be looked at; some may be there twice.
    pub fn choices(&self, bound: StateBound, seed: u64) -> Vec<Choice> {
        if self.count() as u64 <= bound.combinations {
            return self.all();
        }
        let units = self.options.len();
        let mut found = self.whole_writes(bound);
        let old = vec![0; units];
        let new = self.after(0..self.writes.len());
        let mut beginning = old.clone();
        let single_units = matches!(bound.rule, Rule::Versions { single_units: true });
        for unit in (0..units).filter(|_| single_units) {
            let swapped = |of: &Choice, by: u8| {
                let mut choice = of.clone();
                choice[unit] = by;
                choice
            };
            for option in 0..self.options[unit].1.len() as u8 {
                found.push(swapped(&old, option));
                found.push(swapped(&new, option));
            }
            beginning[unit] = new[unit];
            found.push(beginning.clone());
        }
        let mut rng = Rng::new(seed);
        for _ in 0..bound.drawn {
            let keep = 10 + rng.below(81);
            let draw = |(_, options): &(UnitNo, Vec<ContentNumber>)| match rng.percent(keep) {
                true => 1 + rng.below(options.len() as u64 - 1) as u8,
                false => 0,
            };
            found.push(self.options.iter().map(draw).collect());
        }
        found
    }

    fn all(&self) -> Vec<Choice> {
        let mut found = vec![Vec::new()];
        for (_, options) in &self.options {
            let longer = |choice: &Choice| {
                (0..options.len() as u8).map(|o| [&choice[..], &[o]].concat()).collect::<Vec<_>>()
            };
            found = found.iter().flat_map(longer).collect();
        }
        found
    }

    /// What these writes in doubt leave, in their order.
    fn after(&self, writes: impl IntoIterator<Item = usize>) -> Choice {
        let mut choice = vec![0; self.options.len()];
        for write in writes {
            for (unit, option) in &self.writes[write] {
                choice[*unit] = *option;
            }
        }
        choice
    }

    fn whole_writes(&self, bound: StateBound) -> Vec<Choice> {
        let n = self.writes.len();
        if n < 63 && 1_u64 << n <= bound.combinations {
            let subset = |bits: usize| self.after((0..n).filter(|w| bits >> w & 1 == 1));
            return (0..1 << n).map(subset).collect();
        }
        let mut found = Vec::new();
        for w in 0..n {
            found.push(self.after(0..w));
            found.push(self.after(w..n));
            found.push(self.after([w]));
            found.push(self.after((0..n).filter(|other| *other != w)));
        }
        found
    }
}

/// Device by device, in the order of submission.
fn units_in_order(units: Vec<Unit>, kept: Vec<bool>) -> (Vec<Unit>, Vec<bool>) {
    let mut both: Vec<(Unit, bool)> = units.into_iter().zip(kept).collect();
    both.sort_by_key(|(unit, _)| (unit.device, unit.submitted, unit.offset));
    both.into_iter().unzip()
}
