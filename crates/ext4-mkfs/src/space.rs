//! Which blocks of the new file system are in use: ranges, so that a large file system costs no
//! more than a small one.

use steadfast_ext4_format::RangeSet;

/// Blocks that are used.
#[derive(Debug, Default)]
pub(super) struct UsedRanges(RangeSet);

impl UsedRanges {
    /// Marks `len` blocks from `start` on as used.
    ///
    /// # Panics
    /// If one of them was: two things would lie in one place.
    pub(super) fn mark(&mut self, start: u64, len: u64) {
        let new = self.0.insert(start, start + len);
        assert_eq!(new, len, "blocks {start}+{len} are used twice");
    }

    /// Widens what is used to whole clusters of so many blocks: from here on all runs that are
    /// found begin with a cluster.
    pub(super) fn fill_clusters(&mut self, per_cluster: u64) {
        let mut whole = RangeSet::new();
        let widen = |(s, e): (u64, u64)| (s - s % per_cluster, e.next_multiple_of(per_cluster));
        whole.extend(self.0.iter().map(widen));
        self.0 = whole;
    }

    /// All that is used.
    pub(super) fn used(&self) -> u64 {
        self.0.len()
    }

    /// The first used range from `block` on.
    fn next_used(&self, block: u64) -> (u64, u64) {
        self.0.within(block, u64::MAX).next().unwrap_or((u64::MAX, u64::MAX))
    }

    /// The first run of `len` free blocks in `[from, to)`.
    pub(super) fn find(&self, from: u64, to: u64, len: u64) -> Option<u64> {
        let mut at = from;
        while at + len <= to {
            let (next, end) = self.next_used(at);
            if next - at >= len {
                return Some(at);
            }
            at = end;
        }
        None
    }

    /// Takes `len` free blocks from `[from, to)`, the first that there are. `None`, and nothing
    /// taken, if there are too few.
    pub(super) fn take(&mut self, from: u64, to: u64, len: u64) -> Option<Vec<(u64, u64)>> {
        let (mut runs, mut left, mut at) = (Vec::new(), len, from);
        while left > 0 {
            at = self.find(at, to, 1)?;
            let run = left.min(self.next_used(at).0.min(to) - at);
            runs.push((at, run));
            (at, left) = (at + run, left - run);
        }
        runs.iter().for_each(|(start, run)| self.mark(*start, *run));
        Some(runs)
    }

    /// The used ranges within `[from, to)`.
    pub(super) fn used_in(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.within(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_are_found() {
        let mut s = UsedRanges::default();
        s.mark(10, 5);
        s.mark(20, 5);
        s.mark(15, 5);
        assert_eq!(s.used_in(0, 100).collect::<Vec<_>>(), [(10, 25)]);
        assert_eq!(s.used_in(12, 20).collect::<Vec<_>>(), [(12, 20)]);
        assert_eq!((s.find(0, 100, 10), s.find(5, 100, 10)), (Some(0), Some(25)));
        assert_eq!(s.find(5, 30, 10), None);
        assert_eq!(s.take(5, 30, 8), Some(vec![(5, 5), (25, 3)]));
        assert_eq!(s.take(5, 30, 3), None);
        assert_eq!(s.used(), 23);
    }
}
