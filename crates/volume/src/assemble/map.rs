//! Reading the region map of a mirror.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use uuid::Uuid;

use crate::error::Result;
use crate::mirror::regions::Regions;
use crate::ondisk::map::{MapBlock, RECORDS, Region, RegionState, Slot};
use crate::ondisk::{BLOCK, MAP_AT};

/// Blocks of the map that are read at once.
const READ_BLOCKS: u32 = 64;

/// What the legs say of one block.
#[derive(Default)]
struct MapBlockState {
    newest: Option<MapBlock>,
    /// A leg has the newest, and no damaged slot that may have been newer.
    sure: bool,
    /// A slot was damaged, on any leg.
    damaged: bool,
    /// Some leg has not the newest.
    differ: bool,
}

impl MapBlockState {
    /// What one leg has: its two slots.
    fn add(&mut self, slots: [Slot; 2]) {
        // A trusted leg got every block of the map before its label: if both slots are empty, a
        // block was lost.
        let damaged = slots.contains(&Slot::Damaged) || slots == [Slot::Empty, Slot::Empty];
        self.damaged |= damaged;
        let valid = slots.into_iter().filter_map(|slot| match slot {
            Slot::Valid(block) => Some(block),
            Slot::Empty | Slot::Damaged => None,
        });
        let Some(block) = valid.max_by_key(|block| block.sequence) else {
            self.differ = true;
            return;
        };
        let known = self.newest.as_ref().map(|n| n.sequence);
        self.differ |= known.is_some_and(|known| known != block.sequence);
        if known.is_none_or(|known| block.sequence > known) {
            self.newest = Some(block);
            self.sure = !damaged;
        } else if known == Some(block.sequence) {
            self.sure |= !damaged;
        }
    }
}

/// Reads the map from all trusted legs; for each block the highest sequence number counts. If a
/// damaged slot may have been newer, all written regions of the block count as dirty.
pub fn read(
    volume: Uuid,
    legs: &[Arc<dyn BlockDevice>],
    size: u64,
    region_bytes: u32,
) -> Result<Regions> {
    let mut regions = Regions::new(size, region_bytes, Region::UNWRITTEN);
    let blocks = regions.blocks();
    let mut first = 0;
    while first < blocks {
        let count = READ_BLOCKS.min(blocks - first);
        let mut found: Vec<MapBlockState> = (0..count).map(|_| MapBlockState::default()).collect();
        let offset = MAP_AT + 2 * BLOCK * u64::from(first);
        let mut failed = None;
        let mut answered = false;
        for leg in legs {
            let bytes = match leg.read(offset, 2 * BLOCK * u64::from(count)) {
                Ok(bytes) => bytes,
                // It will be dropped when it cannot take the map either.
                Err(error) => {
                    found.iter_mut().for_each(|found| found.differ = true);
                    failed = Some(error);
                    continue;
                }
            };
            answered = true;
            let pairs = bytes.chunks_exact(2 * BLOCK as usize).zip(first..);
            for (found, (pair, block)) in found.iter_mut().zip(pairs) {
                let (a, b) = pair.split_at(BLOCK as usize);
                found.add([a, b].map(|slot| MapBlock::decode(slot, volume, block)));
            }
        }
        if let Some(error) = failed.filter(|_| !answered) {
            return Err(error.into());
        }
        for (found, block) in found.into_iter().zip(first..) {
            load(&mut regions, block, found);
        }
        first += count;
    }
    Ok(regions)
}

fn load(regions: &mut Regions, block: u32, found: MapBlockState) {
    let first = block * RECORDS as u32;
    let last = (first + RECORDS as u32).min(regions.count());
    let unsure = found.damaged && !found.sure;
    match found.newest {
        Some(newest) => {
            regions.set_sequence(block, newest.sequence);
            for (region, i) in (first..last).zip(0..) {
                let mut known = Region::from_byte(newest.states[i]);
                if unsure && known.state == RegionState::Clean {
                    known.state = RegionState::Dirty;
                    known.summed = false;
                }
                regions.load(region, known, newest.heat[i]);
            }
        }
        // Nothing can be read: all may have been written.
        None if found.damaged => {
            (first..last).for_each(|region| regions.load(region, Region::UNKNOWN, 0));
        }
        None => {}
    }
    if found.differ || found.damaged {
        regions.rewrite(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(sequence: u64, state: RegionState) -> Slot {
        let states = vec![Region { state, stale: 0, summed: false }.to_byte(); RECORDS];
        Slot::Valid(MapBlock { sequence, states, heat: vec![0; RECORDS] })
    }

    fn loaded(legs: Vec<[Slot; 2]>) -> RegionState {
        let mut found = MapBlockState::default();
        legs.into_iter().for_each(|leg| found.add(leg));
        let mut regions = Regions::new(1 << 20, 65536, Region::UNWRITTEN);
        load(&mut regions, 0, found);
        regions.get(3).state
    }

    #[test]
    fn the_newest_counts_and_a_damaged_slot_makes_clean_regions_dirty() {
        use RegionState::{Clean, Dirty, Unwritten};
        assert_eq!(loaded(vec![[block(4, Clean), block(5, Dirty)]]), Dirty);
        assert_eq!(loaded(vec![[block(4, Dirty), block(5, Clean)]]), Clean);
        assert_eq!(loaded(vec![[block(4, Clean), Slot::Damaged]]), Dirty);
        assert_eq!(loaded(vec![[block(4, Unwritten), Slot::Damaged]]), Unwritten);
        // Another leg has the newest, whole.
        let sound = || [block(4, Dirty), block(5, Clean)];
        assert_eq!(loaded(vec![[block(4, Dirty), Slot::Damaged], sound()]), Clean);
        assert_eq!(loaded(vec![[Slot::Damaged, Slot::Damaged]]), Dirty);
        // Both slots were written once: zeros mean nothing, and another leg counts.
        assert_eq!(loaded(vec![[Slot::Empty, Slot::Empty]]), Dirty);
        assert_eq!(loaded(vec![[Slot::Empty, Slot::Empty], sound()]), Clean);
        assert_eq!(loaded(vec![[Slot::Empty, block(1, Unwritten)]]), Unwritten);
    }
}
