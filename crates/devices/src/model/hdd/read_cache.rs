//! The segmented read cache: the sectors that a drive can serve without the platters.
//!
//! Only ranges are kept; the bytes come from the store, which is always right.

use std::ops::Range;

/// A run of sectors in the cache.
#[derive(Debug, Clone)]
struct CacheSegment {
    id: u64,
    sectors: Range<u64>,
    used: u64,
}

#[derive(Debug)]
pub(super) struct ReadCache {
    segments: Vec<CacheSegment>,
    most_segments: usize,
    segment_sectors: u64,
    clock: u64,
}

impl ReadCache {
    pub(super) fn new(most_segments: usize, segment_sectors: u64) -> Self {
        ReadCache { segments: Vec::new(), most_segments, segment_sectors, clock: 0 }
    }

    pub(super) fn segment_sectors(&self) -> u64 {
        self.segment_sectors
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The end of the run that holds `sector`, and its segment.
    fn holding(&self, sector: u64) -> Option<&CacheSegment> {
        self.segments.iter().find(|s| s.sectors.contains(&sector))
    }

    /// The first sector of `wanted` that is not in the cache, if all before it are.
    pub(super) fn missing_from(&self, wanted: &Range<u64>) -> u64 {
        self.holding(wanted.start).map_or(wanted.start, |s| s.sectors.end.min(wanted.end))
    }

    /// Notes that `wanted` was answered from the cache, and from which segment.
    pub(super) fn touch(&mut self, wanted: &Range<u64>) -> Option<u64> {
        let now = self.tick();
        let segment = self.segments.iter_mut().find(|s| s.sectors.contains(&wanted.start))?;
        segment.used = now;
        Some(segment.id)
    }

    /// The segment that ends where a read of `sector` begins, or an empty one made for it at the
    /// expense of the one used longest ago.
    pub(super) fn open(&mut self, sector: u64) -> u64 {
        let now = self.tick();
        if let Some(s) = self.segments.iter_mut().find(|s| s.sectors.end == sector) {
            s.used = now;
            return s.id;
        }
        if self.segments.len() >= self.most_segments {
            // OK to unwrap: there is at least one, by the parameters' check.
            let oldest = (0..self.segments.len()).min_by_key(|i| self.segments[*i].used).unwrap();
            self.segments.swap_remove(oldest);
        }
        self.segments.push(CacheSegment { id: now, sectors: sector..sector, used: now });
        now
    }

    /// Where the sectors of a segment begin.
    pub(super) fn start(&self, id: u64) -> Option<u64> {
        self.segments.iter().find(|s| s.id == id).map(|s| s.sectors.start)
    }

    /// An empty segment also holds the sectors from `start` on.
    pub(super) fn extend_back(&mut self, id: u64, start: u64) {
        if let Some(s) = self.segments.iter_mut().find(|s| s.id == id && s.sectors.is_empty()) {
            s.sectors.start = start.max(s.sectors.end.saturating_sub(self.segment_sectors));
        }
    }

    /// A segment has been filled up to `end`; the oldest of it makes room.
    pub(super) fn fill(&mut self, id: u64, end: u64) {
        let most = self.segment_sectors;
        if let Some(s) = self.segments.iter_mut().find(|s| s.id == id) {
            s.sectors.end = s.sectors.end.max(end);
            s.sectors.start = s.sectors.start.max(s.sectors.end.saturating_sub(most));
        }
    }

    /// Forgets everything that overlaps a write.
    pub(super) fn forget(&mut self, written: &Range<u64>) {
        self.segments.retain(|s| s.sectors.end <= written.start || written.end <= s.sectors.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_keeps_its_segment_and_the_oldest_goes() {
        let mut c = ReadCache::new(2, 100);
        let a = c.open(0);
        c.fill(a, 60);
        assert_eq!(c.missing_from(&(10..50)), 50);
        assert_eq!(c.missing_from(&(50..70)), 60);
        assert_eq!(c.missing_from(&(70..80)), 70);
        assert_eq!(c.open(60), a);
        c.fill(a, 150);
        assert_eq!(c.missing_from(&(10..50)), 10, "slid out");
        let b = c.open(1000);
        c.fill(b, 1010);
        assert_eq!(c.touch(&(100..110)), Some(a));
        let third = c.open(5000);
        c.fill(third, 5010);
        assert_eq!(c.missing_from(&(1000..1010)), 1000, "used longest ago");
        assert_eq!(c.missing_from(&(100..110)), 110);
        c.forget(&(149..151));
        assert_eq!(c.missing_from(&(100..110)), 100);
    }
}
