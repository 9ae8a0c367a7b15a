//! Digests of contents that differ in few places.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use steadfast_devices::filter::record::{Action, Event};
use steadfast_devices::store::{PAGE_BYTES, Store};

/// The digests of a store's pages. Those of another store with few changes need only the pages
/// that were touched.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages {
    /// Digests of the pages that hold something.
    pages: HashMap<u64, u128>,
    /// All of them together: their sum, in which the order means nothing.
    sum: u128,
}

/// Numbers of the pages that an event touches.
fn touched(event: &Event) -> Range<u64> {
    let (offset, len, _) = match &event.action {
        Action::Persist { .. } => (0, 0, None),
        action => action.range(),
    };
    offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES)
}

impl Pages {
    pub fn of(store: &Store) -> Pages {
        let mut pages = Pages::default();
        for (offset, len) in store.populated() {
            for page in offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES) {
                pages.set(page, store.page_digest(page));
            }
        }
        pages
    }

    fn set(&mut self, page: u64, digest: u128) {
        let old = match digest {
            0 => self.pages.remove(&page),
            _ => self.pages.insert(page, digest),
        };
        self.sum = self.sum.wrapping_sub(old.unwrap_or(0)).wrapping_add(digest);
    }

    /// Numbers of the pages in which stores may differ that these events change. A discard, which
    /// may be of a whole device, changes no more pages than hold something: ours, or what another
    /// of the events writes.
    fn changed<'e>(&self, events: impl Iterator<Item = &'e Event>) -> BTreeSet<u64> {
        let (mut pages, mut discarded) = (BTreeSet::new(), Vec::new());
        for event in events {
            match event.action {
                Action::Discard { .. } => discarded.push(touched(event)),
                _ => pages.extend(touched(event)),
            }
        }
        discarded.sort_unstable_by_key(|range| range.start);
        // One pass for ranges that overlap, however many they are.
        discarded.dedup_by(|next, last| {
            let joined = next.start <= last.end;
            last.end = if joined { last.end.max(next.end) } else { last.end };
            joined
        });
        let is_discarded = |page: &u64| {
            let after = discarded.partition_point(|range| range.start <= *page);
            after.checked_sub(1).is_some_and(|last| discarded[last].contains(page))
        };
        if !discarded.is_empty() {
            pages.extend(self.pages.keys().copied().filter(is_discarded));
        }
        pages
    }

    /// The store has become `store` by these events.
    pub fn moved<'e>(&mut self, store: &Store, events: impl Iterator<Item = &'e Event>) {
        for page in self.changed(events) {
            self.set(page, store.page_digest(page));
        }
    }

    /// The digest of `store`, which differs from ours by (parts of) these events at most.
    pub fn digest<'e>(&self, store: &Store, events: impl Iterator<Item = &'e Event>) -> u128 {
        self.changed(events).into_iter().fold(self.sum, |sum, page| {
            let old = self.pages.get(&page).copied().unwrap_or(0);
            sum.wrapping_sub(old).wrapping_add(store.page_digest(page))
        })
    }
}
