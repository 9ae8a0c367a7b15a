//! A set of numbers kept as disjoint, non-touching ranges: freed blocks that are not reused
//! before a commit, delayed blocks of a file.

use std::collections::BTreeMap;

/// Disjoint half-open ranges, merged where they touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: BTreeMap<u64, u64>,
    len: u64,
}

impl RangeSet {
    /// An empty set.
    pub fn new() -> Self {
        RangeSet::default()
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The range that holds `at`.
    pub(crate) fn range_at(&self, at: u64) -> Option<(u64, u64)> {
        let (&start, &end) = self.ranges.range(..=at).next_back()?;
        (at < end).then_some((start, end))
    }

    /// Whether `at` is in the set.
    pub fn contains(&self, at: u64) -> bool {
        self.range_at(at).is_some()
    }

    /// Whether anything of `[start, end)` is in the set: one look, where
    /// [`within`](Self::within) takes three.
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        start < end && self.ranges.range(..end).next_back().is_some_and(|(_, last)| *last > start)
    }

    /// The parts of `[start, end)` that are in the set, in order.
    pub fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let first = self.range_at(start).map_or(start, |(s, _)| s);
        self.ranges
            .range(first..end.max(first))
            .map(move |(&s, &e)| (s.max(start), e.min(end)))
            .filter(|(s, e)| s < e)
    }

    /// Adds `[start, end)`; returns how many numbers were not in the set before.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        let (mut from, mut to) = (start, end);
        let mut had = 0;
        while let Some((&s, &e)) = self.ranges.range(..=to).next_back() {
            if e < from {
                break;
            }
            had += e.min(end).saturating_sub(s.max(start));
            (from, to) = (from.min(s), to.max(e));
            self.ranges.remove(&s);
        }
        self.ranges.insert(from, to);
        let added = (end - start) - had;
        self.len += added;
        added
    }

    /// Removes `[start, end)`; returns how many numbers were in the set.
    pub fn remove(&mut self, start: u64, end: u64) -> u64 {
        let hit: Vec<(u64, u64)> = self.within(start, end).collect();
        let mut removed = 0;
        for (s, e) in hit {
            // OK to unwrap: `s` lies in a range of the set.
            let (whole_start, whole_end) = self.range_at(s).unwrap();
            self.ranges.remove(&whole_start);
            if whole_start < s {
                self.ranges.insert(whole_start, s);
            }
            if e < whole_end {
                self.ranges.insert(e, whole_end);
            }
            removed += e - s;
        }
        self.len -= removed;
        removed
    }

    /// All ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.ranges.iter().map(|(&s, &e)| (s, e))
    }
}

impl Extend<(u64, u64)> for RangeSet {
    fn extend<I: IntoIterator<Item = (u64, u64)>>(&mut self, ranges: I) {
        for (start, end) in ranges {
            self.insert(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_set(
            ops in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..20), 0..60),
        ) {
            let (mut ranges, mut model) = (RangeSet::new(), BTreeSet::new());
            for (add, start, len) in ops {
                let end = start + len;
                if add {
                    let added = (start..end).filter(|n| model.insert(*n)).count() as u64;
                    prop_assert_eq!(ranges.insert(start, end), added);
                } else {
                    let gone = (start..end).filter(|n| model.remove(n)).count() as u64;
                    prop_assert_eq!(ranges.remove(start, end), gone);
                }
                prop_assert_eq!(ranges.len(), model.len() as u64);
                let all: Vec<u64> = ranges.iter().flat_map(|(s, e)| s..e).collect();
                prop_assert_eq!(&all, &model.iter().copied().collect::<Vec<_>>());
                let part: Vec<u64> = ranges.within(10, 30).flat_map(|(s, e)| s..e).collect();
                for (from, to) in [(10, 30), (0, 10), (30, 30), (30, 40), (12, 13)] {
                    let any = ranges.within(from, to).next().is_some();
                    assert_eq!(ranges.overlaps(from, to), any, "{from}..{to}");
                }
                prop_assert_eq!(part, model.range(10..30).copied().collect::<Vec<_>>());
                let mut last = None;
                for (s, e) in ranges.iter() {
                    prop_assert!(s < e && last.is_none_or(|l| l < s));
                    last = Some(e);
                }
            }
        }
    }
}
