//! Checksums in memory: of data written since the assembly, and of loaded records.
//!
//! # Invariants
//!
//! 1. `stored` of a region says that every durable leg in use that holds it has a record, and that
//!    the newest one is right for each block that is not known here.
//! 2. Checksums that are not on the legs (`unsaved`) are never evicted: a region that is written
//!    repeatedly keeps its checksums here until they are saved (`area`).
//! 3. The checksum of a write is set before the write goes to a leg. So a leg's data and the
//!    checksum may differ while a write is in flight, and only then. A reader that sees a
//!    difference locks the region and reads again (`verify`).

use std::collections::BTreeMap;

use super::regions::Regions;
use crate::ondisk::BLOCK;
use crate::ondisk::checksums::{ChecksumRecord, Edition};
use crate::ondisk::label::LEGS_MAX;

/// Bytes of memory that checksums take at most, where those that are not saved do not take more.
const MEMORY_MAX: usize = 64 << 20;
/// What an entry takes beside its blocks, about.
const ENTRY_BYTES: usize = 96;

/// What is known of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// Nothing: it was written before the last power cut, or a write of it failed.
    None,
    /// Its checksum is in the record, which was not read yet.
    Stored,
    /// Its checksum.
    Known(u32),
}

struct Entry {
    blocks: Vec<Sum>,
    /// The record on the legs is not this.
    unsaved: bool,
    /// That of the record, as far as it is known.
    edition: Edition,
    used: u64,
    /// Changes with every change of the blocks.
    version: u64,
}

/// A record that was written to legs, and not flushed yet.
#[derive(Debug, Clone, Copy)]
pub struct UnflushedRecord {
    /// The record's own.
    pub edition: Edition,
    /// Legs that have it, and what their epochs were then.
    pub took: u8,
    pub epochs: [u64; LEGS_MAX],
}

/// What a look at bytes that were read says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// They are what was written, as far as anything is known.
    Good,
    /// They do not match, or the record must be loaded first.
    Unsure,
}

/// The checksums of a mirror.
#[derive(Default)]
pub struct MirrorChecksums {
    region_bytes: u64,
    size: u64,
    entries: BTreeMap<u32, Entry>,
    stored: Vec<bool>,
    bytes: usize,
    unsaved_bytes: usize,
    memory_max: usize,
    clock: u64,
    /// Records so far, since the assembly.
    number: u64,
    /// Regions in use: their checksums stay in memory.
    pins: BTreeMap<u32, usize>,
    /// Records that legs were given while they were copied to, or scrubbed.
    pub written: BTreeMap<u32, UnflushedRecord>,
}

fn weight(blocks: usize) -> usize {
    ENTRY_BYTES + blocks * size_of::<Sum>()
}

impl MirrorChecksums {
    /// As the map says; in so many bytes of memory, or as many as is usual.
    pub fn new(regions: &Regions, memory_max: Option<usize>) -> MirrorChecksums {
        MirrorChecksums {
            region_bytes: regions.region_bytes(),
            size: regions.size(),
            stored: (0..regions.count()).map(|r| regions.get(r).summed).collect(),
            memory_max: memory_max.unwrap_or(MEMORY_MAX),
            ..MirrorChecksums::default()
        }
    }

    /// The volume has grown.
    pub fn grow(&mut self, regions: &Regions) {
        self.size = regions.size();
        self.stored.resize(regions.count() as usize, false);
    }

    /// Blocks of a region.
    pub fn blocks_of(&self, region: u32) -> usize {
        let start = u64::from(region) * self.region_bytes;
        (self.region_bytes.min(self.size - start) / BLOCK) as usize
    }

    fn is_stored(&self, region: u32) -> bool {
        self.stored.get(region as usize).copied().unwrap_or(false)
    }

    /// Whether each block of a region has a checksum.
    pub fn covers_all(&self, region: u32) -> bool {
        match self.entries.get(&region) {
            Some(entry) => !entry.blocks.contains(&Sum::None),
            None => self.is_stored(region),
        }
    }

    /// Whether memory is short of what was not saved.
    pub fn must_save(&self) -> bool {
        self.unsaved_bytes > self.memory_max / 2
    }

    /// Regions that are not saved, those first that were not used for longest.
    pub fn oldest_unsaved(&self, most: usize) -> Vec<u32> {
        let unsaved = self.entries.iter().filter(|(_, entry)| entry.unsaved);
        let mut by_use: Vec<(u64, u32)> = unsaved.map(|(r, entry)| (entry.used, *r)).collect();
        by_use.sort_unstable();
        by_use.into_iter().take(most).map(|(_, region)| region).collect()
    }

    /// Changes an entry, which is made if there is none.
    fn change(&mut self, region: u32, unsaved: bool, change: impl FnOnce(&mut [Sum])) {
        let count = self.blocks_of(region);
        let stored = self.is_stored(region);
        self.clock += 1;
        let used = self.clock;
        let bytes = &mut self.bytes;
        let entry = self.entries.entry(region).or_insert_with(|| {
            *bytes += weight(count);
            Entry {
                blocks: vec![if stored { Sum::Stored } else { Sum::None }; count],
                unsaved: false,
                edition: Edition::default(),
                used,
                version: used,
            }
        });
        change(&mut entry.blocks);
        entry.used = used;
        if unsaved {
            entry.version = used;
            if !entry.unsaved {
                entry.unsaved = true;
                self.unsaved_bytes += weight(count);
            }
        }
        self.evict(region);
    }

    /// Evicts saved checksums if memory is full: enough at once that this is rare.
    fn evict(&mut self, but: u32) {
        let quarter = self.memory_max / 4;
        let keep = (3 * quarter).saturating_sub(self.unsaved_bytes).max(quarter);
        if self.bytes <= self.memory_max || self.bytes - self.unsaved_bytes <= keep {
            return;
        }
        let stays = |region: u32| region == but || self.pins.contains_key(&region);
        let saved = self.entries.iter().filter(|(r, entry)| !entry.unsaved && !stays(**r));
        let mut by_use: Vec<(u64, u32)> = saved.map(|(r, entry)| (entry.used, *r)).collect();
        by_use.sort_unstable();
        for (_, region) in by_use {
            if self.bytes - self.unsaved_bytes <= keep {
                return;
            }
            self.remove(region);
        }
    }

    /// What is known of a region stays in memory until it is given back as often.
    pub fn pin(&mut self, region: u32) {
        *self.pins.entry(region).or_default() += 1;
    }

    /// Gives it back.
    pub fn unpin(&mut self, region: u32) {
        if let Some(pins) = self.pins.get_mut(&region) {
            *pins -= 1;
            if *pins == 0 {
                self.pins.remove(&region);
            }
        }
    }

    fn remove(&mut self, region: u32) {
        if let Some(entry) = self.entries.remove(&region) {
            self.bytes -= weight(entry.blocks.len());
            if entry.unsaved {
                self.unsaved_bytes -= weight(entry.blocks.len());
            }
        }
    }

    /// A range of whole blocks cut at the borders of regions: region, first block in it, and which
    /// of the blocks of the range.
    fn cut(&self, offset: u64, blocks: usize) -> Vec<(u32, usize, std::ops::Range<usize>)> {
        let mut parts = Vec::new();
        let mut done = 0;
        while done < blocks {
            let at = offset + done as u64 * BLOCK;
            // OK to truncate: regions are counted in 32 bits.
            let region = (at / self.region_bytes) as u32;
            let first = ((at % self.region_bytes) / BLOCK) as usize;
            let count = (self.blocks_of(region) - first).min(blocks - done);
            parts.push((region, first, done..done + count));
            done += count;
        }
        parts
    }

    /// A write of these blocks is in flight.
    pub fn set(&mut self, offset: u64, sums: &[u32]) {
        for (region, first, part) in self.cut(offset, sums.len()) {
            self.change(region, true, |blocks| {
                let to = blocks.iter_mut().skip(first);
                to.zip(&sums[part]).for_each(|(to, sum)| *to = Sum::Known(*sum));
            });
        }
    }

    /// The contents of these blocks are unknown.
    pub fn set_unknown(&mut self, offset: u64, len: u64) {
        for (region, first, part) in self.cut(offset, (len / BLOCK) as usize) {
            self.change(region, true, |blocks| {
                blocks.iter_mut().skip(first).take(part.len()).for_each(|sum| *sum = Sum::None);
            });
        }
    }

    /// What was read is what counts, where nothing was known.
    pub fn learn(&mut self, offset: u64, sums: &[u32]) {
        for (region, first, part) in self.cut(offset, sums.len()) {
            if self.covers_all(region) {
                continue;
            }
            self.change(region, true, |blocks| {
                let to = blocks.iter_mut().skip(first).zip(&sums[part]);
                to.filter(|(to, _)| **to == Sum::None).for_each(|(to, sum)| *to = Sum::Known(*sum));
            });
        }
    }

    /// The region is unwritten.
    pub fn forget(&mut self, region: u32) {
        self.remove(region);
        self.written.remove(&region);
        if let Some(stored) = self.stored.get_mut(region as usize) {
            *stored = false;
        }
    }

    /// What bytes with these checksums are.
    pub fn verdict(&mut self, offset: u64, sums: &[u32]) -> Verdict {
        for (region, first, part) in self.cut(offset, sums.len()) {
            self.clock += 1;
            let used = self.clock;
            let Some(entry) = self.entries.get_mut(&region) else {
                match self.is_stored(region) {
                    true => return Verdict::Unsure,
                    false => continue,
                }
            };
            entry.used = used;
            let agrees = |(known, sum): (&Sum, &u32)| match known {
                Sum::None => true,
                Sum::Stored => false,
                Sum::Known(known) => known == sum,
            };
            if !entry.blocks[first..].iter().zip(&sums[part]).all(agrees) {
                return Verdict::Unsure;
            }
        }
        Verdict::Good
    }

    /// What is known of so many blocks of one region.
    pub fn known(&self, region: u32, first: usize, count: usize) -> Vec<Sum> {
        match self.entries.get(&region) {
            Some(entry) => entry.blocks.iter().skip(first).take(count).copied().collect(),
            None if self.is_stored(region) => vec![Sum::Stored; count],
            None => vec![Sum::None; count],
        }
    }

    /// Whether its record must be read before anything can be said of some of its blocks.
    pub fn needs_load(&self, region: u32) -> bool {
        match self.entries.get(&region) {
            Some(entry) => entry.blocks.contains(&Sum::Stored),
            None => self.is_stored(region),
        }
    }

    /// Whether its record is on the legs, and is all that is known.
    pub fn is_saved(&self, region: u32) -> bool {
        self.is_stored(region) && self.entries.get(&region).is_none_or(|entry| !entry.unsaved)
    }

    /// The newest record; `None`: no trusted one.
    pub fn loaded(&mut self, region: u32, record: Option<&ChecksumRecord>) {
        if record.is_none()
            && let Some(stored) = self.stored.get_mut(region as usize)
        {
            // Before the entry is made, if there is none: nothing is in it.
            *stored = false;
            if !self.entries.contains_key(&region) {
                return;
            }
        }
        self.change(region, false, |blocks| {
            for (n, sum) in blocks.iter_mut().enumerate().filter(|(_, sum)| **sum == Sum::Stored) {
                let found = record.and_then(|record| record.sums.get(n));
                *sum = found.map_or(Sum::None, |sum| Sum::Known(*sum));
            }
        });
        if let Some(entry) = self.entries.get_mut(&region)
            && let Some(record) = record
        {
            entry.edition = record.edition;
        }
    }

    /// The record of a region of which every checksum is known, and whether it is on the legs as
    /// it is; with the version of the entry.
    pub fn record(&self, region: u32) -> Option<(ChecksumRecord, bool, u64)> {
        let entry = self.entries.get(&region)?;
        let sum = |sum: &Sum| match sum {
            Sum::Known(sum) => Some(*sum),
            Sum::None | Sum::Stored => None,
        };
        let sums: Option<Vec<u32>> = entry.blocks.iter().map(sum).collect();
        Some((
            ChecksumRecord { edition: entry.edition, sums: sums? },
            !entry.unsaved,
            entry.version,
        ))
    }

    /// A new record's edition, under this generation of the labels.
    pub fn next_edition(&mut self, generation: u64) -> Edition {
        self.number += 1;
        Edition { generation, number: self.number }
    }

    /// Its record is on all legs that hold it.
    pub fn saved(&mut self, region: u32, version: u64, edition: Edition) {
        let Some(entry) = self.entries.get_mut(&region).filter(|e| e.version == version) else {
            return;
        };
        entry.edition = edition;
        if std::mem::take(&mut entry.unsaved) {
            self.unsaved_bytes -= weight(entry.blocks.len());
        }
        self.stored[region as usize] = true;
        self.evict(region);
    }

    /// The contents of its record on the legs are unknown.
    pub fn not_saved(&mut self, region: u32) {
        if let Some(stored) = self.stored.get_mut(region as usize) {
            *stored = false;
        }
        let Some(entry) = self.entries.get_mut(&region) else { return };
        if !std::mem::replace(&mut entry.unsaved, true) {
            self.unsaved_bytes += weight(entry.blocks.len());
        }
        for sum in entry.blocks.iter_mut().filter(|sum| **sum == Sum::Stored) {
            *sum = Sum::None;
        }
    }

    /// Whether the record that was written is still what is known.
    pub fn is_as_written(&self, region: u32, written: &UnflushedRecord) -> bool {
        match self.entries.get(&region) {
            // It may have been evicted and loaded again since.
            Some(entry) => entry.edition == written.edition && !entry.unsaved,
            // Evicted since: so it was saved.
            None => self.is_stored(region),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::map::{Region, RegionState};

    const REGION: u64 = 64 << 10;

    fn fixture(summed: bool) -> MirrorChecksums {
        let state = if summed { RegionState::Clean } else { RegionState::Dirty };
        let all = Region { state, stale: 0, summed };
        MirrorChecksums::new(&Regions::new(64 * REGION, REGION as u32, all), Some(8 * weight(16)))
    }

    #[test]
    fn what_was_written_is_known_and_the_rest_is_in_the_record() {
        let mut sums = fixture(true);
        assert_eq!(sums.verdict(0, &[1]), Verdict::Unsure);
        sums.set(REGION - BLOCK, &[7, 8]);
        assert_eq!(sums.verdict(REGION - BLOCK, &[7, 8]), Verdict::Good);
        assert_eq!(sums.verdict(REGION - BLOCK, &[7, 9]), Verdict::Unsure);
        assert!(sums.needs_load(0) && sums.record(0).is_none());
        let record = ChecksumRecord { edition: Edition::default(), sums: (0..16).collect() };
        sums.loaded(0, Some(&record));
        let (found, saved, _) = sums.record(0).unwrap();
        assert_eq!((found.sums[14], found.sums[15], saved), (14, 7, false));
        sums.set_unknown(0, BLOCK);
        assert_eq!(sums.verdict(0, &[99]), Verdict::Good);
        assert!(!sums.covers_all(0) && sums.covers_all(1));
    }

    #[test]
    fn without_a_record_nothing_is_refused() {
        let mut sums = fixture(false);
        assert_eq!(sums.verdict(0, &[5; 32]), Verdict::Good);
        sums.set(0, &[1]);
        sums.learn(0, &[9; 16]);
        assert_eq!(sums.record(0).unwrap().0.sums[..2], [1, 9]);
        let mut sums = fixture(true);
        sums.loaded(3, None);
        assert!(!sums.covers_all(3));
    }

    #[test]
    fn memory_is_bounded_and_keeps_what_is_not_saved() {
        let mut sums = fixture(true);
        let record = ChecksumRecord { edition: Edition::default(), sums: vec![5; 16] };
        sums.set(0, &[1]);
        for region in 1..40 {
            sums.loaded(region, Some(&record));
            assert!(sums.bytes <= sums.memory_max);
        }
        assert_eq!(sums.verdict(0, &[1]), Verdict::Good);
        assert_eq!(sums.verdict(REGION, &[5]), Verdict::Unsure, "read it again");
        for region in 0..5 {
            sums.set(region * REGION, &[1]);
        }
        assert!(sums.must_save());
        assert_eq!(sums.oldest_unsaved(2), [0, 1]);
        sums.loaded(0, Some(&record));
        let (_, _, version) = sums.record(0).unwrap();
        sums.saved(0, version, Edition { generation: 1, number: 1 });
        assert!(!sums.must_save() && sums.covers_all(0));
        sums.not_saved(0);
        assert!(sums.must_save() && !sums.is_stored(0));
    }

    #[test]
    fn what_somebody_is_using_stays() {
        let mut sums = fixture(true);
        let record = ChecksumRecord { edition: Edition::default(), sums: vec![5; 16] };
        sums.pin(0);
        sums.pin(0);
        sums.loaded(0, Some(&record));
        sums.unpin(0);
        (1..40).for_each(|region| sums.loaded(region, Some(&record)));
        assert_eq!(sums.known(0, 0, 1), [Sum::Known(5)]);
        sums.unpin(0);
        (1..40).for_each(|region| sums.loaded(region, Some(&record)));
        assert_eq!(sums.known(0, 0, 1), [Sum::Stored]);
    }
}
