//! Which blocks of the new file system are in use: ranges, so that a large file system costs no
//! more than a small one.

use std::collections::BTreeMap;

/// Ranges of used blocks that neither overlap nor touch, start to end (exclusive).
#[derive(Debug, Default)]
pub(super) struct UsedRanges {
    used: BTreeMap<u64, u64>,
}

impl UsedRanges {
    /// Marks `len` blocks from `start` on as used.
    ///
    /// # Panics
    /// If one of them was: two things would lie in one place.
    pub(super) fn mark(&mut self, start: u64, len: u64) {
        assert!(self.is_free(start, len), "blocks {start}+{len} are used twice");
        if len == 0 {
            return;
        }
        let (mut from, mut to) = (start, start + len);
        if let Some((before, end)) = self.used.range(..=start).next_back().map(|(s, e)| (*s, *e))
            && end == start
        {
            self.used.remove(&before);
            from = before;
        }
        if let Some(end) = self.used.remove(&to) {
            to = end;
        }
        self.used.insert(from, to);
    }

    /// Widens what is used to whole clusters of so many blocks: from here on all runs that are
    /// found begin with a cluster.
    pub(super) fn fill_clusters(&mut self, per_cluster: u64) {
        let mut whole: BTreeMap<u64, u64> = BTreeMap::new();
        for (start, end) in &self.used {
            let (start, end) = (start - start % per_cluster, end.next_multiple_of(per_cluster));
            let before = whole.last_key_value().map(|(from, to)| (*from, *to));
            match before.filter(|(_, to)| *to >= start) {
                Some((from, to)) => whole.insert(from, to.max(end)),
                None => whole.insert(start, end),
            };
        }
        self.used = whole;
    }

    /// All that is used.
    pub(super) fn used(&self) -> u64 {
        self.used.iter().map(|(start, end)| end - start).sum()
    }

    /// The end of the used range that covers `block`.
    fn used_until(&self, block: u64) -> Option<u64> {
        let (_, end) = self.used.range(..=block).next_back()?;
        (*end > block).then_some(*end)
    }

    /// The start of the first used range from `block` on.
    fn next_used(&self, block: u64) -> u64 {
        self.used.range(block..).next().map_or(u64::MAX, |(start, _)| *start)
    }

    /// Whether `len` blocks from `start` on are free.
    pub(super) fn is_free(&self, start: u64, len: u64) -> bool {
        self.used_until(start).is_none() && self.next_used(start) >= start + len
    }

    /// The first run of `len` free blocks in `[from, to)`.
    pub(super) fn find(&self, from: u64, to: u64, len: u64) -> Option<u64> {
        let mut at = from;
        while at + len <= to {
            match self.used_until(at) {
                Some(end) => at = end,
                None => {
                    let next = self.next_used(at);
                    if next - at >= len {
                        return Some(at);
                    }
                    at = next;
                }
            }
        }
        None
    }

    /// Takes `len` free blocks from `[from, to)`, the first that there are. `None`, and nothing
    /// taken, if there are too few.
    pub(super) fn take(&mut self, from: u64, to: u64, len: u64) -> Option<Vec<(u64, u64)>> {
        let (mut runs, mut left, mut at) = (Vec::new(), len, from);
        while left > 0 {
            at = self.find(at, to, 1)?;
            let run = left.min(self.next_used(at).min(to) - at);
            runs.push((at, run));
            (at, left) = (at + run, left - run);
        }
        runs.iter().for_each(|(start, run)| self.mark(*start, *run));
        Some(runs)
    }

    /// The used ranges within `[from, to)`.
    pub(super) fn used_in(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.used.range(..from).next_back().filter(|(_, end)| **end > from);
        first
            .into_iter()
            .chain(self.used.range(from..to))
            .map(move |(start, end)| ((*start).max(from), (*end).min(to)))
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
        assert!(s.is_free(28, 100));
    }
}
