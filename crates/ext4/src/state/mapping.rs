//! The cached part of a file's mapping.

use std::collections::BTreeMap;

use steadfast_ext4_format::ondisk::Extent;

/// Entries kept of one file; beyond, the cache starts again.
const ENTRIES_MAX: usize = 8192;

/// Extents as they stand on disk after the last finished transaction, as far as they were looked
/// at. Neighbours are merged, so an entry may be longer than an extent on disk. Holes are not
/// kept.
#[derive(Debug, Default)]
pub(crate) struct ExtentCache {
    extents: BTreeMap<u32, Extent>,
    /// Nothing is mapped from here on, if that is cached.
    hole_from: Option<u64>,
}

/// A change of the mapping by a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MapChange {
    Mapped(Extent),
    Unmapped { from: u64, to: u64 },
}

impl ExtentCache {
    /// The extent that holds `logical`, if it is cached.
    pub fn get(&self, logical: u32) -> Option<Extent> {
        let (_, e) = self.extents.range(..=logical).next_back()?;
        (u64::from(logical) < e.end()).then_some(*e)
    }

    /// Whether `logical` is beyond all that is mapped.
    pub fn is_beyond(&self, logical: u32) -> bool {
        self.hole_from.is_some_and(|from| u64::from(logical) >= from)
    }

    /// Learns that nothing is mapped from `logical` on.
    pub fn set_hole_from(&mut self, logical: u32) {
        self.hole_from = Some(logical.into());
    }

    /// Learns an extent; what was cached of its range is replaced.
    pub fn put(&mut self, mut new: Extent) {
        if self.extents.len() >= ENTRIES_MAX {
            self.extents.clear();
        }
        self.forget(new.logical.into(), new.end());
        if let Some((&at, before)) = self.extents.range(..new.logical).next_back()
            && continues(before, &new)
        {
            new = Extent { len: before.len + new.len, ..*before };
            self.extents.remove(&at);
        }
        if let Ok(end) = u32::try_from(new.end())
            && let Some(after) = self.extents.get(&end)
            && continues(&new, after)
        {
            new.len += after.len;
            self.extents.remove(&end);
        }
        self.extents.insert(new.logical, new);
    }

    /// Forgets `[from, to)`.
    pub fn forget(&mut self, from: u64, to: u64) {
        let first =
            u32::try_from(from).ok().and_then(|l| self.get(l)).map_or(from, |e| e.logical.into());
        let hit: Vec<Extent> = self
            .extents
            .range(u32::try_from(first).unwrap_or(u32::MAX)..)
            .map(|(_, e)| *e)
            .take_while(|e| u64::from(e.logical) < to)
            .filter(|e| e.end() > from)
            .collect();
        for e in hit {
            self.extents.remove(&e.logical);
            if u64::from(e.logical) < from {
                let left = e.clipped(e.logical.into(), from);
                self.extents.insert(left.logical, left);
            }
            if to < e.end() {
                let right = e.clipped(to, e.end());
                self.extents.insert(right.logical, right);
            }
        }
    }

    pub fn apply(&mut self, change: MapChange) {
        match change {
            MapChange::Mapped(extent) => {
                self.hole_from = self.hole_from.map(|from| from.max(extent.end()));
                self.put(extent);
            }
            MapChange::Unmapped { from, to } => self.forget(from, to),
        }
    }
}

fn continues(a: &Extent, b: &Extent) -> bool {
    a.end() == u64::from(b.logical)
        && a.start + u64::from(a.len) == b.start
        && a.unwritten == b.unwritten
        && a.len.checked_add(b.len).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_map(
            ops in prop::collection::vec((0u8..3, 0u32..100, 1u32..20, 0u64..3), 1..80),
        ) {
            let (mut cache, mut model) = (ExtentCache::default(), BTreeMap::new());
            for (op, logical, len, shift) in ops {
                if op == 0 {
                    cache.forget(logical.into(), (logical + len).into());
                    for l in logical..logical + len {
                        model.remove(&l);
                    }
                } else {
                    let start = u64::from(logical) + 1000 * (shift + 1);
                    cache.put(Extent { logical, len, start, unwritten: op == 2 });
                    for i in 0..len {
                        model.insert(logical + i, (start + u64::from(i), op == 2));
                    }
                }
                for l in 0..130 {
                    let place = |e: Extent| (e.start + u64::from(l - e.logical), e.unwritten);
                    let found = cache.get(l).map(place);
                    prop_assert_eq!(found, model.get(&l).copied());
                }
            }
        }
    }
}
