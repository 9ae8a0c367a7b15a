//! How often each region is read, for legs that hold or get the hottest first.

use std::ops::Range;

/// Reads that count, for each region of the volume, after which all are half as hot.
const COOL_AFTER: u64 = 16;
/// Regions that a small volume counts as.
const REGIONS_MIN: usize = 64;

/// The heats of all regions.
pub struct Heats {
    heats: Vec<u8>,
    /// The region that was read last, and reads that counted since heats were halved.
    last: Option<u32>,
    reads: u64,
}

impl Heats {
    /// All cold.
    pub fn new(regions: usize) -> Heats {
        Heats { heats: vec![0; regions], last: None, reads: 0 }
    }

    /// How hot a region is.
    pub fn of(&self, region: u32) -> u8 {
        self.heats[region as usize]
    }

    /// The heats of these regions, as the map has them.
    pub fn range(&self, regions: Range<usize>) -> Vec<u8> {
        self.heats[regions].to_vec()
    }

    /// Sets what was read from the disk.
    pub fn set(&mut self, region: u32, heat: u8) {
        self.heats[region as usize] = heat;
    }

    /// A region was read: it is hotter by that. Reads of one region in a row, as of a file that is
    /// read from its start to its end, count once.
    pub fn warm(&mut self, region: u32) {
        if self.last == Some(region) {
            return;
        }
        self.last = Some(region);
        let heat = &mut self.heats[region as usize];
        *heat = heat.saturating_add(1);
        self.reads += 1;
        if self.reads >= COOL_AFTER * self.heats.len().max(REGIONS_MIN) as u64 {
            self.reads = 0;
            // What was hot long ago is not hot.
            self.heats.iter_mut().for_each(|heat| *heat /= 2);
        }
    }

    /// There are more regions.
    pub fn grow(&mut self, regions: usize) {
        self.heats.resize(regions, 0);
    }
}
