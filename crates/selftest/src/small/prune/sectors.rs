//! The sectors of all devices in a state, as numbers: equal numbers, equal contents.
//!
//! A content has a number from the first time that it is met, by a digest of 128 bits. What a state
//! differs in from the base is set over the base's numbers, which are made once.

use std::collections::HashMap;
use std::sync::Arc;

use steadfast_crash::states::versions::{CutStates, Units};
use steadfast_devices::store::{Digest, Store};

use super::traced::{Look, MAGIC, SECTOR};
use super::trie::Answer;

/// The sectors of some devices.
pub(in crate::small) struct Base {
    /// First sector of each device; then one beyond the last.
    pub(super) first: Vec<u32>,
    numbers: Vec<Answer>,
}

/// The numbers of contents.
#[derive(Default)]
pub(super) struct Numbers {
    known: HashMap<u128, Answer>,
    /// Of each number, whether the content begins with the journal's magic number.
    begins: Vec<bool>,
    bases: HashMap<Vec<u128>, Arc<Base>>,
}

impl Numbers {
    fn of(&mut self, sector: &[u8]) -> Answer {
        let next = self.begins.len() as Answer;
        let number = *self.known.entry(Digest::of(sector)).or_insert(next);
        if number == next {
            self.begins.push(sector.starts_with(&MAGIC));
        }
        number
    }

    /// Of devices that hold this; `digests` are those of the stores.
    pub(super) fn base(&mut self, digests: &[u128], stores: &[Store]) -> Arc<Base> {
        if let Some(known) = self.bases.get(digests) {
            return Arc::clone(known);
        }
        let (mut first, mut numbers) = (vec![0], Vec::new());
        for store in stores {
            for at in (0..store.size()).step_by(SECTOR as usize) {
                let len = SECTOR.min(store.size() - at);
                numbers.push(self.of(&store.read(at, len)));
            }
            first.push(numbers.len() as u32);
        }
        let base = Arc::new(Base { first, numbers });
        self.bases.insert(digests.to_vec(), Arc::clone(&base));
        base
    }

    /// What a look finds in a state.
    pub(super) fn answer(&self, state: &[Answer], look: Look) -> Answer {
        let number = state[look.sector()];
        match look.is_beginning() {
            true => Answer::from(self.begins[number as usize]),
            false => number,
        }
    }
}

/// A sector of which a cut leaves parts in doubt.
struct TornSector {
    sector: usize,
    sure: Vec<u8>,
    /// Which units in doubt lie in it, and where.
    units: Vec<(usize, usize)>,
}

/// The sectors in one state of a cut after the other.
pub(super) struct SectorContents {
    numbers: Vec<Answer>,
    /// Units in doubt that are a sector: the sector, and the number of each option.
    whole: Vec<(usize, usize, Vec<Answer>)>,
    torn: Vec<TornSector>,
}

impl SectorContents {
    /// Of a cut that leaves `doubts`; `sure` is what is beyond doubt.
    pub(super) fn at(
        numbers: &mut Numbers,
        base: &Base,
        units: &Units,
        cut_states: &CutStates,
        sure: &[Store],
    ) -> SectorContents {
        let mut sectors =
            SectorContents { numbers: base.numbers.clone(), whole: Vec::new(), torn: Vec::new() };
        let sector = |(device, offset): (u32, u64)| {
            base.first[device as usize] as usize + (offset / SECTOR) as usize
        };
        let read = |(device, offset): (u32, u64)| {
            let store = &sure[device as usize];
            let at = offset / SECTOR * SECTOR;
            store.read(at, SECTOR.min(store.size() - at))
        };
        let mut last = None;
        for (unit, content) in &cut_states.fixed {
            let place = units.place(*unit);
            let at = sector(place);
            let content = units.content(*content);
            let is_whole = content.len() as u64 == SECTOR;
            // What is in one sector follows one another.
            if is_whole {
                sectors.numbers[at] = numbers.of(content);
            } else if last.replace(at) != Some(at) {
                sectors.numbers[at] = numbers.of(&read(place));
            }
        }
        for (unit, (number, options)) in cut_states.options.iter().enumerate() {
            let place = units.place(*number);
            let at = sector(place);
            if units.content(options[0]).len() as u64 == SECTOR {
                let of = |content: &usize| numbers.of(units.content(*content));
                sectors.whole.push((unit, at, options.iter().map(of).collect()));
                continue;
            }
            if sectors.torn.last().is_none_or(|torn| torn.sector != at) {
                let sure = read(place).to_vec();
                sectors.torn.push(TornSector { sector: at, sure, units: Vec::new() });
            }
            if let Some(torn) = sectors.torn.last_mut() {
                torn.units.push((unit, (place.1 % SECTOR) as usize));
            }
        }
        sectors
    }

    /// The sectors in the state in which `choice` was made.
    pub(super) fn chosen(
        &mut self,
        numbers: &mut Numbers,
        units: &Units,
        cut_states: &CutStates,
        choice: &[u8],
    ) -> &[Answer] {
        for (unit, sector, options) in &self.whole {
            self.numbers[*sector] = options[usize::from(choice[*unit])];
        }
        for TornSector { sector, sure, units: parts } in &self.torn {
            let mut bytes = sure.clone();
            for (unit, at) in parts {
                let options = &cut_states.options[*unit].1;
                let part = units.content(options[usize::from(choice[*unit])]);
                bytes[*at..*at + part.len()].copy_from_slice(part);
            }
            self.numbers[*sector] = numbers.of(&bytes);
        }
        &self.numbers
    }
}
