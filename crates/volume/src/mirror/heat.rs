//! How often each region is read, for the promotion and the order of resync.
//!
//! Reads without the lock count too; two concurrent reads may increase the heat only once.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Reads that count, for each region of the volume, after which all are half as hot.
const COOL_AFTER: u64 = 16;
/// Regions that a small volume counts as.
const REGIONS_MIN: usize = 64;
/// No region.
const NONE: u32 = u32::MAX;

/// The heats of all regions.
pub struct Heats {
    heats: Box<[AtomicU8]>,
    /// Reads that counted since heats were halved.
    reads: AtomicU64,
}

/// What one task, or all that take the lock, have read last.
pub struct Reader {
    last: AtomicU32,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader { last: AtomicU32::new(NONE) }
    }
}

impl Reader {
    /// Whether a read of this region is one more: reads of one region in a row, as of a file that
    /// is read from its start to its end, count once. One task at a time asks.
    #[inline]
    pub fn counts(&self, region: u32) -> bool {
        if self.last.load(Relaxed) == region {
            return false;
        }
        self.last.store(region, Relaxed);
        true
    }
}

impl Heats {
    /// All cold.
    pub fn new(regions: usize) -> Heats {
        let heats = (0..regions).map(|_| AtomicU8::new(0)).collect();
        Heats { heats, reads: AtomicU64::new(0) }
    }

    /// How hot a region is.
    pub fn of(&self, region: u32) -> u8 {
        self.heats[region as usize].load(Relaxed)
    }

    /// The heats of these regions, as the map has them.
    pub fn range(&self, regions: Range<usize>) -> Vec<u8> {
        self.heats[regions].iter().map(|heat| heat.load(Relaxed)).collect()
    }

    /// Sets what was read from the disk.
    pub fn set(&self, region: u32, heat: u8) {
        self.heats[region as usize].store(heat, Relaxed);
    }

    /// A region was read: increases its heat. [`cool`](Self::cool) needs the number of reads.
    #[inline]
    pub fn warm(&self, region: u32) {
        let Some(heat) = self.heats.get(region as usize) else { return };
        // Two steps: what all processors agree upon takes as long as a good part of a read.
        heat.store(heat.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// So many more reads have counted: what was hot long ago is not hot.
    pub fn cool(&self, reads: u64) {
        let before = self.reads.fetch_add(reads, Relaxed);
        if before + reads >= COOL_AFTER * self.heats.len().max(REGIONS_MIN) as u64 {
            self.reads.store(0, Relaxed);
            self.heats.iter().for_each(|heat| heat.store(heat.load(Relaxed) / 2, Relaxed));
        }
    }

    /// The same with more regions.
    pub fn grown(&self, regions: usize) -> Heats {
        let grown = Heats::new(regions);
        for (new, heat) in grown.heats.iter().zip(&self.heats) {
            new.store(heat.load(Relaxed), Relaxed);
        }
        grown.reads.store(self.reads.load(Relaxed), Relaxed);
        grown
    }
}
