//! Digests of contents that differ in few places.

use std::collections::HashMap;

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

/// Number of the pages that an event touches.
fn touched(event: &Event) -> std::ops::Range<u64> {
    let (offset, len) = match &event.action {
        Action::Write { offset, data, .. } | Action::Store { offset, data } => {
            (*offset, data.len() as u64)
        }
        Action::Discard { offset, len } => (*offset, *len),
        Action::Flush | Action::Persist { .. } | Action::Fence => (0, 0),
    };
    offset / PAGE_BYTES..(offset + len).div_ceil(PAGE_BYTES)
}

fn all<'e>(events: impl Iterator<Item = &'e Event>) -> Vec<u64> {
    let mut pages: Vec<u64> = events.flat_map(touched).collect();
    pages.sort_unstable();
    pages.dedup();
    pages
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

    /// The store has become `store` by these events.
    pub fn moved<'e>(&mut self, store: &Store, events: impl Iterator<Item = &'e Event>) {
        for page in all(events) {
            self.set(page, store.page_digest(page));
        }
    }

    /// The digest of `store`, which differs from ours by (parts of) these events at most.
    pub fn digest<'e>(&self, store: &Store, events: impl Iterator<Item = &'e Event>) -> u128 {
        all(events).into_iter().fold(self.sum, |sum, page| {
            let old = self.pages.get(&page).copied().unwrap_or(0);
            sum.wrapping_sub(old).wrapping_add(store.page_digest(page))
        })
    }
}
