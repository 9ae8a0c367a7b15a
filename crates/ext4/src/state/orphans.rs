//! Who is an orphan; how that is written is in `inode`.
//!
//! There may be a great many: whoever unlinks files that others still use, and removes trees faster
//! than front ends let go of them. Each operation costs the same however many there are.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use steadfast_ext4_format::ondisk::csum::InodeSeed;
use steadfast_ext4_format::ondisk::{InodeNo, orphan_slots};

/// The orphan file: it never changes its size or place.
#[derive(Debug)]
pub(crate) struct OrphanFile {
    pub blocks: Vec<u64>,
    pub seed: InodeSeed,
}

/// Where orphans are written: in the orphan file if there is one, else in the list. Who is one is
/// in [`OrphanSet`], under the metadata lock.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    pub file: Option<OrphanFile>,
}

/// Where an orphan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrphanLocation {
    /// In this slot of the orphan file.
    Slot(u32),
    /// In the list, between these.
    Listed { before: Option<InodeNo>, after: Option<InodeNo> },
}

/// What a transaction changes: new places, `None` for who is an orphan no more.
pub(crate) type OrphanEdit = BTreeMap<InodeNo, Option<OrphanLocation>>;

/// Who is an orphan, and where that is written. The metadata lock guards it.
#[derive(Debug, Default)]
pub(crate) struct OrphanSet {
    places: FxHashMap<InodeNo, OrphanLocation>,
    /// All slots from this one on are free, and `holes` below it.
    slots_end: u32,
    holes: BTreeSet<u32>,
}

impl OrphanSet {
    pub fn place(&self, no: InodeNo) -> Option<OrphanLocation> {
        self.places.get(&no).copied()
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// All, those of the file first, those of the list from its head on.
    pub fn all(&self) -> Vec<InodeNo> {
        let slots: BTreeMap<u32, InodeNo> = self
            .places
            .iter()
            .filter_map(|(no, place)| match place {
                OrphanLocation::Slot(slot) => Some((*slot, *no)),
                OrphanLocation::Listed { .. } => None,
            })
            .collect();
        let is_head =
            |place: &OrphanLocation| matches!(place, OrphanLocation::Listed { before: None, .. });
        let head = self.places.iter().find(|(_, place)| is_head(place)).map(|(no, _)| *no);
        let list = std::iter::successors(head, |no| match self.places.get(no) {
            Some(OrphanLocation::Listed { after, .. }) => *after,
            _ => None,
        });
        slots.into_values().chain(list).collect()
    }

    /// Whether the orphan file holds any.
    pub fn uses_file(&self) -> bool {
        self.slots_end as usize > self.holes.len()
    }

    /// Learns at mount what the list holds, from its head on. None is there twice; one that is also
    /// in the file stays there.
    pub fn set_list(&mut self, list: &[InodeNo]) {
        let list: Vec<InodeNo> =
            list.iter().filter(|no| !self.places.contains_key(no)).copied().collect();
        for (i, no) in list.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| list[i]);
            let place = OrphanLocation::Listed { before, after: list.get(i + 1).copied() };
            self.places.insert(*no, place);
        }
    }

    /// Learns at mount what a slot holds.
    pub fn set_slot(&mut self, slot: u32, no: InodeNo) {
        self.apply(BTreeMap::from([(no, Some(OrphanLocation::Slot(slot)))]));
    }

    /// The lowest free slot, if there are so many; those that `edit` takes are not.
    pub fn free_slot(&self, slots: u32, edit: Option<&OrphanEdit>) -> Option<u32> {
        let is_taken = |slot: u32| {
            let taken = Some(OrphanLocation::Slot(slot));
            edit.is_some_and(|edit| edit.values().any(|place| *place == taken))
        };
        let slot = self.holes.iter().copied().chain(self.slots_end..).find(|slot| !is_taken(*slot));
        slot.filter(|slot| *slot < slots)
    }

    /// Enters what a transaction has changed.
    pub fn apply(&mut self, edit: OrphanEdit) {
        for (no, place) in edit {
            let before = match place {
                Some(place) => self.places.insert(no, place),
                None => self.places.remove(&no),
            };
            if before == place {
                continue;
            }
            if let Some(OrphanLocation::Slot(slot)) = before {
                self.holes.insert(slot);
            }
            if let Some(OrphanLocation::Slot(slot)) = place {
                self.holes.extend(self.slots_end..slot);
                self.slots_end = self.slots_end.max(slot + 1);
                self.holes.remove(&slot);
            }
        }
        if !self.uses_file() {
            self.slots_end = 0;
            self.holes.clear();
        }
    }
}

impl OrphanFile {
    /// Inode numbers that fit.
    pub fn slots(&self, block_size: u32) -> u32 {
        self.blocks.len() as u32 * orphan_slots(block_size as usize) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_slot_is_used() {
        let mut o = OrphanSet::default();
        assert_eq!(o.free_slot(2, None), Some(0));
        o.set_slot(0, InodeNo(12));
        o.set_slot(1, InodeNo(13));
        assert_eq!(o.free_slot(2, None), None);
        o.apply(BTreeMap::from([(InodeNo(12), None)]));
        assert_eq!(o.free_slot(2, None), Some(0));
        assert!(o.uses_file() && o.all() == [InodeNo(13)]);
        // A transaction that is not finished has it already.
        let edit = BTreeMap::from([(InodeNo(14), Some(OrphanLocation::Slot(0)))]);
        assert_eq!(o.free_slot(3, Some(&edit)), Some(2));
        o.apply(edit);
        o.apply(BTreeMap::from([(InodeNo(13), None), (InodeNo(14), None)]));
        assert!(!o.uses_file() && o.len() == 0 && o.free_slot(1, None) == Some(0));
    }

    #[test]
    fn the_list_is_in_its_order() {
        let mut o = OrphanSet::default();
        let list = [InodeNo(20), InodeNo(12), InodeNo(17)];
        o.set_list(&list);
        o.set_slot(5, InodeNo(30));
        assert_eq!(o.all(), [InodeNo(30), InodeNo(20), InodeNo(12), InodeNo(17)]);
        assert_eq!(o.free_slot(9, None), Some(0));
        let middle = OrphanLocation::Listed { before: Some(InodeNo(20)), after: Some(InodeNo(17)) };
        assert_eq!(o.place(InodeNo(12)), Some(middle));
    }
}
