//! Who is an orphan; how that is written is in `inode`.

use std::collections::BTreeMap;

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

/// Who is an orphan, and where that is written. The metadata lock guards it.
#[derive(Debug, Clone, Default)]
pub(crate) struct OrphanSet {
    /// From the head on.
    pub list: Vec<InodeNo>,
    pub slots: BTreeMap<u32, InodeNo>,
    pub slot_of: BTreeMap<InodeNo, u32>,
}

impl OrphanSet {
    pub fn contains(&self, no: InodeNo) -> bool {
        self.slot_of.contains_key(&no) || self.list.contains(&no)
    }

    /// All, those of the file first.
    pub fn all(&self) -> Vec<InodeNo> {
        self.slots.values().chain(&self.list).copied().collect()
    }

    /// Those of the orphan file.
    pub fn in_file(&self) -> &BTreeMap<u32, InodeNo> {
        &self.slots
    }

    /// Learns at mount what the list holds.
    pub fn set_list(&mut self, list: Vec<InodeNo>) {
        self.list = list;
    }

    /// Learns at mount what a slot holds.
    pub fn set_slot(&mut self, slot: u32, no: InodeNo) {
        self.slots.insert(slot, no);
        self.slot_of.insert(no, slot);
    }

    pub fn free_slot(&self, slots: u32) -> Option<u32> {
        let used = self.slots.keys().zip(0..).find(|(used, i)| **used != *i);
        let slot = used.map_or(self.slots.len() as u32, |(_, i)| i);
        (slot < slots).then_some(slot)
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
        assert_eq!(o.free_slot(2), Some(0));
        o.set_slot(0, InodeNo(12));
        o.set_slot(1, InodeNo(13));
        assert_eq!(o.free_slot(2), None);
        o.slots.remove(&0);
        assert_eq!(o.free_slot(2), Some(0));
    }
}
