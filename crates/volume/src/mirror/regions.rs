//! The region map in memory, and its durable state.
//!
//! # Invariants
//!
//! 1. The assumed durable state (`disk`) is never better than the state after a power cut. A better
//!    state (clean, not stale) counts from the start of its write, a worse one (dirty, stale) from
//!    its completion.
//! 2. A region that is copied in memory stays stale on that leg in the durable map, or dirty
//!    because it is out of sync, until the leg was flushed after the copy.
//! 3. An out-of-sync region was not read or written since the power cut: the map has it as dirty.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::cells::{Holders, RegionCells};
use super::heat::{Heats, Reader};
use crate::ondisk::map::{MapBlock, RECORDS, Region, RegionState, SEQUENCE_MAX};

/// A block of the map that is being written to the legs.
pub struct MapBlockWrite {
    /// Its number.
    pub block: u32,
    /// Its contents, with the next sequence number.
    pub contents: MapBlock,
}

/// What only writes ask of a region: cells are small, for reads.
#[derive(Debug, Clone, Copy, Default)]
struct WriteNumbers {
    /// Its first write is on all legs, not flushed yet: its number among such. 0: it is not.
    filled: u64,
    /// The number of the last write.
    written: u64,
}

/// All regions of a mirror.
pub struct Regions {
    region_bytes: u64,
    /// A region is 2 to the power of this in bytes: every read asks.
    shift: u32,
    size: u64,
    cells: RegionCells,
    numbers: Vec<WriteNumbers>,
    disk: Vec<Region>,
    heats: Arc<Heats>,
    /// Of reads that take the lock.
    reader: Reader,
    sequences: Vec<u64>,
    /// Blocks of the map that differ from the disk's.
    changed: BTreeSet<u32>,
    /// Regions that are dirty or being filled.
    active: BTreeSet<u32>,
    /// Out-of-sync regions.
    out_of_sync_regions: BTreeSet<u32>,
    /// First writes so far, and all writes so far.
    fills: u64,
    writes: u64,
    /// Legs of which the map does not durably say yet that they hold what they were given: since
    /// the last commit began, and in the one that is in flight.
    freshened: u8,
    committing: u8,
}

/// The block of the map that covers a region.
pub fn block_of(region: u32) -> u32 {
    region / RECORDS as u32
}

impl Regions {
    /// A map of this state everywhere; a region has a power of two of bytes.
    pub fn new(size: u64, region_bytes: u32, all: Region) -> Regions {
        debug_assert!(region_bytes.is_power_of_two());
        let count = size.div_ceil(u64::from(region_bytes)) as usize;
        let mut regions = Regions {
            region_bytes: u64::from(region_bytes),
            shift: region_bytes.trailing_zeros(),
            size,
            cells: RegionCells::new(count, all),
            numbers: vec![Default::default(); count],
            disk: vec![all; count],
            heats: Arc::new(Heats::new(count)),
            reader: Reader::default(),
            sequences: vec![0; count.div_ceil(RECORDS)],
            changed: BTreeSet::new(),
            active: BTreeSet::new(),
            out_of_sync_regions: BTreeSet::new(),
            fills: 0,
            writes: 0,
            freshened: 0,
            committing: 0,
        };
        for region in 0..regions.count() {
            regions.note_active(region);
        }
        regions
    }

    /// Number of regions.
    pub fn count(&self) -> u32 {
        self.cells.len() as u32
    }

    /// Number of blocks of the map.
    pub fn blocks(&self) -> u32 {
        self.sequences.len() as u32
    }

    /// Bytes of the volume.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of a region.
    pub fn region_bytes(&self) -> u64 {
        self.region_bytes
    }

    /// The regions that a range of bytes touches.
    pub fn of(&self, offset: u64, len: u64) -> Range<u32> {
        let last = |end: u64| ((end - 1) >> self.shift) + 1;
        let end = if offset + len == 0 { 0 } else { last(offset + len) };
        (offset >> self.shift) as u32..end as u32
    }

    /// The regions that lie inside a range of bytes; the last one may be short.
    pub fn inside(&self, offset: u64, len: u64) -> Range<u32> {
        let end = offset + len;
        let last = if end == self.size { self.count() } else { (end / self.region_bytes) as u32 };
        let first = offset.div_ceil(self.region_bytes) as u32;
        first..last.max(first)
    }

    /// Offset and length of a region.
    pub fn bytes_of(&self, region: u32) -> (u64, u64) {
        let start = u64::from(region) * self.region_bytes;
        (start, self.region_bytes.min(self.size - start))
    }

    /// What is true now.
    pub fn get(&self, region: u32) -> Region {
        self.cells[region as usize].now
    }

    /// Legs that do not hold the region's contents now.
    pub fn lacking(&self, region: u32) -> u8 {
        self.cells[region as usize].lacking()
    }

    /// Legs that hold all of these regions, if all are written and in sync.
    pub fn holders(&self, regions: Range<u32>) -> u8 {
        let cells = self.cells.get(regions.start as usize..regions.end as usize);
        cells.map_or(0, |cells| cells.iter().fold(u8::MAX, |all, cell| all & cell.holders()))
    }

    /// Legs that differ after a power cut from the primary of the region, or may.
    pub fn out_of_sync(&self, region: u32) -> u8 {
        self.cells[region as usize].out_of_sync
    }

    /// Those of these regions that are out of sync.
    pub fn out_of_sync_regions(&self, regions: Range<u32>) -> impl Iterator<Item = u32> {
        self.out_of_sync_regions.range(regions).copied()
    }

    /// All out-of-sync regions.
    pub fn all_out_of_sync(&self) -> Vec<u32> {
        self.out_of_sync_regions.iter().copied().collect()
    }

    /// Legs that may differ from the primary of a dirty region.
    pub fn set_out_of_sync(&mut self, region: u32, legs: u8) {
        self.cells.change(region, |cell| {
            cell.out_of_sync = legs;
            cell.copied &= cell.now.stale | legs;
        });
        match legs {
            0 => self.out_of_sync_regions.remove(&region),
            _ => self.out_of_sync_regions.insert(region),
        };
    }

    /// What a power cut would find.
    pub fn on_disk(&self, region: u32) -> Region {
        self.disk[region as usize]
    }

    /// Whether reads give zeros: never written, or the first write is not on the legs yet.
    pub fn is_blank(&self, region: u32) -> bool {
        let cell = &self.cells[region as usize];
        match cell.now.state {
            RegionState::Unwritten => true,
            RegionState::Filling => self.numbers[region as usize].filled == 0,
            RegionState::Dirty | RegionState::Clean => false,
        }
    }

    /// Whether a power cut during a write would be noticed: the region would be looked at, and none
    /// of the `absent` legs would be taken for one that has the write. Of volatile legs nothing
    /// need be durable, because they are never trusted after a power cut; `durable` are the others.
    pub fn is_covered(&self, region: u32, absent: u8, durable: u8) -> bool {
        let (now, disk) = (self.cells[region as usize].now, self.disk[region as usize]);
        // What is being filled is unwritten after a power cut, on all legs alike.
        let known = now.state == RegionState::Filling || disk.stale & durable == durable;
        let decided = self.out_of_sync(region) == 0;
        let dirty = promises_work(now.state) && disk.state == now.state;
        decided && dirty && known && now.stale & absent == absent
    }

    /// Whether a write may go to the legs now.
    pub fn is_ready(&self, region: u32, absent: u8, durable: u8) -> bool {
        self.is_covered(region, absent, durable) && !self.is_blank(region)
    }

    /// Sets what is true of a region.
    pub fn set(&mut self, region: u32, mut now: Region) {
        now.summed &= now.state == RegionState::Clean;
        if self.get(region) == now {
            return;
        }
        let cell = self.cells.change(region, |cell| {
            cell.now = now;
            *cell
        });
        let out_of_sync =
            if now.state == RegionState::Unwritten { 0 } else { cell.out_of_sync & !now.stale };
        self.set_out_of_sync(region, out_of_sync);
        self.changed.insert(block_of(region));
        self.note_active(region);
    }

    fn note_active(&mut self, region: u32) {
        match self.cells[region as usize].now.state {
            RegionState::Dirty | RegionState::Filling => {
                self.active.insert(region);
            }
            RegionState::Unwritten | RegionState::Clean => {
                self.numbers[region as usize].filled = 0;
                self.active.remove(&region);
            }
        }
    }

    /// Sets what was read from the disk.
    pub fn load(&mut self, region: u32, found: Region, heat: u8) {
        self.cells.change(region, |cell| cell.now = found);
        self.disk[region as usize] = found;
        self.heats.set(region, heat);
        self.note_active(region);
    }

    /// Makes a write possible: the state that must be durable before it. `absent` legs miss it.
    pub fn open(&mut self, region: u32, absent: u8) {
        let now = self.get(region);
        let open = match now.state {
            // All legs that are there get the whole region.
            RegionState::Unwritten => {
                Region { state: RegionState::Filling, stale: absent, summed: false }
            }
            RegionState::Filling => Region { stale: now.stale | absent, ..now },
            RegionState::Dirty | RegionState::Clean => {
                Region { state: RegionState::Dirty, stale: now.stale | absent, summed: false }
            }
        };
        self.set(region, open);
        self.cells.change(region, |cell| cell.idle = 0);
    }

    /// The first write of a region is on the legs.
    pub fn set_filled(&mut self, region: u32) {
        self.fills += 1;
        self.numbers[region as usize].filled = self.fills;
    }

    /// How many writes there were: for [`written_since`](Self::written_since).
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Whether a write to the region has begun after so many writes to any.
    pub fn written_since(&self, region: u32, writes: u64) -> bool {
        self.numbers[region as usize].written > writes
    }

    /// A write touches the region.
    pub fn touch(&mut self, region: u32) {
        self.writes += 1;
        self.cells.change(region, |cell| cell.idle = 0);
        self.numbers[region as usize].written = self.writes;
    }

    /// A read does: it is hotter by that.
    pub fn warm(&mut self, region: u32) {
        if self.reader.counts(region) {
            self.heats.warm(region);
            self.heats.cool(1);
        }
    }

    /// How hot regions are, and who may answer for them: for reads that take no lock. Others once
    /// there are more regions.
    pub(super) fn published(&self) -> (Arc<Heats>, Arc<Holders>) {
        (Arc::clone(&self.heats), Arc::clone(self.cells.holders()))
    }

    /// How hot a region is.
    pub fn heat(&self, region: u32) -> u8 {
        self.heats.of(region)
    }

    /// Regions whose first write is on the legs and must be flushed, each with that write's number.
    pub fn filled(&self) -> Vec<(u32, u64)> {
        let filled = |r: &u32| {
            let (now, filled) = (self.get(*r), self.numbers[*r as usize].filled);
            let is = now.state == RegionState::Filling && filled != 0;
            is.then_some((*r, filled))
        };
        self.active.iter().filter_map(filled).collect()
    }

    /// The legs were flushed after that first write: it is promised once the map is durable. Not if
    /// the region was discarded meanwhile, and perhaps written again.
    pub fn promise(&mut self, region: u32, fill: u64) {
        let (now, filled) = (self.get(region), self.numbers[region as usize].filled);
        if now.state == RegionState::Filling && filled == fill {
            self.set(region, Region { state: RegionState::Dirty, ..now });
        }
    }

    /// Regions that are dirty or being filled.
    pub fn active(&self) -> Vec<u32> {
        self.active.iter().copied().collect()
    }

    /// A pass of the timer over one region; how many passes it has been idle for.
    pub fn age(&mut self, region: u32) -> u8 {
        self.cells.change(region, |cell| {
            cell.idle = cell.idle.saturating_add(1);
            cell.idle
        })
    }

    /// These legs have been given the region's contents; see invariant 2.
    pub fn set_copied(&mut self, region: u32, legs: u8) {
        self.cells.change(region, |cell| cell.copied |= legs & (cell.now.stale | cell.out_of_sync));
    }

    /// Legs that were given the region's contents and not flushed since.
    pub fn copied(&self, region: u32) -> u8 {
        self.cells[region as usize].copied
    }

    /// These legs do not have the region any more that they were given.
    pub fn drop_copied(&mut self, region: u32, legs: u8) {
        self.cells.change(region, |cell| cell.copied &= !legs);
    }

    /// These legs have left before they were flushed.
    pub fn forget_copied(&mut self, legs: u8) {
        (0..self.count()).for_each(|region| self.drop_copied(region, legs));
    }

    /// Those legs lack everything that was ever written.
    pub fn set_all_stale(&mut self, legs: u8) {
        (0..self.count()).for_each(|region| self.set_stale(region, legs));
    }

    /// Has all blocks written with the next commit.
    pub fn rewrite_all(&mut self) {
        self.changed.extend(0..self.sequences.len() as u32);
    }

    /// Those legs do not lack the region any more, durably once the map is.
    pub fn set_fresh(&mut self, region: u32, legs: u8) {
        let now = self.get(region);
        let legs = legs & self.copied(region);
        self.freshened |= legs & now.stale;
        self.set_out_of_sync(region, self.out_of_sync(region) & !legs);
        self.set(region, Region { stale: now.stale & !legs, ..now });
    }

    /// All legs that hold a dirty region were flushed, and nobody has written to it since the
    /// assembly: they hold the same.
    pub fn set_clean_if_untouched(&mut self, region: u32) {
        let now = self.get(region);
        let untouched = !self.written_since(region, 0) && self.out_of_sync(region) == 0;
        if now.state == RegionState::Dirty && untouched {
            self.set(region, Region { state: RegionState::Clean, ..now });
        }
    }

    /// Those legs lack the region from now on.
    pub fn set_stale(&mut self, region: u32, legs: u8) {
        let now = self.get(region);
        // In this order: a read without the lock sees each step, and must not find them to hold it.
        self.drop_copied(region, legs);
        if now.state != RegionState::Unwritten {
            self.set(region, Region { stale: now.stale | legs, ..now });
        }
        self.set_out_of_sync(region, self.out_of_sync(region) & !legs);
    }

    /// Has a block written with the next commit, though nothing in it changed.
    pub fn rewrite(&mut self, block: u32) {
        self.changed.insert(block);
    }

    /// The sequence number that was read with a block.
    pub fn set_sequence(&mut self, block: u32, sequence: u64) {
        self.sequences[block as usize] = sequence;
    }

    /// Whether memory and disk are the same.
    pub fn is_committed(&self) -> bool {
        self.changed.is_empty()
    }

    /// Whether each changed block has a number after its last one.
    pub fn can_commit(&self) -> bool {
        self.changed.iter().all(|block| self.sequences[*block as usize] < SEQUENCE_MAX)
    }

    /// The changed blocks, to be written. Invariant 1.
    pub fn begin_commit(&mut self) -> Vec<MapBlockWrite> {
        self.committing = std::mem::take(&mut self.freshened);
        let changed: Vec<u32> = std::mem::take(&mut self.changed).into_iter().collect();
        let snapshots: Vec<MapBlockWrite> = changed.into_iter().map(|b| self.snapshot(b)).collect();
        for snapshot in &snapshots {
            self.each(snapshot, |disk, new| Region {
                state: if promises_work(new.state) { disk.state } else { new.state },
                stale: disk.stale & new.stale,
                summed: new.summed,
            });
        }
        snapshots
    }

    /// A block as it is now, with the next sequence number.
    fn snapshot(&mut self, block: u32) -> MapBlockWrite {
        let records = self.records(block);
        self.sequences[block as usize] += 1;
        let states = self.cells[records.clone()].iter().map(|c| c.now.to_byte()).collect();
        let heat = self.heats.range(records);
        let sequence = self.sequences[block as usize];
        MapBlockWrite { block, contents: MapBlock { sequence, states, heat } }
    }

    fn records(&self, block: u32) -> Range<usize> {
        let first = block as usize * RECORDS;
        first..(first + RECORDS).min(self.cells.len())
    }

    fn each(&mut self, snapshot: &MapBlockWrite, new: impl Fn(Region, Region) -> Region) {
        let records = self.records(snapshot.block);
        for (disk, byte) in self.disk[records].iter_mut().zip(&snapshot.contents.states) {
            *disk = new(*disk, Region::from_byte(*byte));
        }
    }

    /// The blocks are durable.
    pub fn end_commit(&mut self, written: &[MapBlockWrite]) {
        self.committing = 0;
        for snapshot in written {
            self.each(snapshot, |_, new| new);
        }
    }

    /// The blocks may be there or not.
    pub fn fail_commit(&mut self, snapshots: &[MapBlockWrite]) {
        self.freshened |= std::mem::take(&mut self.committing);
        self.changed.extend(snapshots.iter().map(|s| s.block));
    }

    /// Bytes that these legs lack.
    pub fn lacking_bytes(&self, legs: u8) -> u64 {
        let lacks = |r: &u32| self.lacking(*r) & legs != 0;
        (0..self.count()).filter(lacks).map(|r| self.bytes_of(r).1).sum()
    }

    /// Whether a durable leg would hold all data after a power cut: nothing is stale or out of
    /// sync, every copy was flushed, and the durable map says so.
    pub fn is_whole(&self, leg: u8) -> bool {
        self.holds_flushed(leg)
            && self.out_of_sync_regions.iter().all(|r| self.out_of_sync(*r) & leg == 0)
    }

    /// Whether a durable leg would hold after a power cut all that was flushed.
    pub fn holds_flushed(&self, leg: u8) -> bool {
        let stale = |cell: &super::cells::Cell| {
            cell.now.state != RegionState::Unwritten && cell.now.stale & leg != 0
        };
        (self.freshened | self.committing) & leg == 0 && !self.cells.iter().any(stale)
    }

    /// Bytes that were written, and that one of these legs holds.
    pub fn held_bytes(&self, legs: u8) -> u64 {
        let holds = |r: &u32| !self.is_blank(*r) && !self.lacking(*r) & legs != 0;
        (0..self.count()).filter(holds).map(|r| self.bytes_of(r).1).sum()
    }

    /// Number of regions in each state, by [`RegionState`] as a number.
    pub fn tally(&self) -> [u32; 4] {
        let mut tally = [0; 4];
        self.cells.iter().for_each(|c| tally[c.now.state as usize] += 1);
        tally
    }

    /// Adds regions at the end, unwritten.
    pub fn grow(&mut self, size: u64) {
        let count = size.div_ceil(self.region_bytes) as usize;
        self.size = size;
        self.cells.grow(count);
        self.numbers.resize(count, WriteNumbers::default());
        self.disk.resize(count, Region::UNWRITTEN);
        self.heats = Arc::new(self.heats.grown(count));
        let before = self.sequences.len() as u32;
        self.sequences.resize(count.div_ceil(RECORDS), 0);
        self.changed.extend(before..self.sequences.len() as u32);
    }
}

/// Whether a cut in this state makes the next assembly do something.
fn promises_work(state: RegionState) -> bool {
    matches!(state, RegionState::Dirty | RegionState::Filling)
}

#[cfg(test)]
mod tests;
