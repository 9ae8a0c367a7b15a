//! Sectors that cannot be read until they are written again.

use std::sync::Arc;

use steadfast_block::pattern::SECTOR;

use super::{PAGE_BYTES, Store};

const SECTOR_BYTES: u64 = SECTOR as u64;
const SECTORS_A_PAGE: u64 = PAGE_BYTES / SECTOR_BYTES;

/// The sectors that a range touches.
fn touched(offset: u64, len: u64) -> std::ops::Range<u64> {
    offset / SECTOR_BYTES..(offset + len).div_ceil(SECTOR_BYTES)
}

impl Store {
    /// The sectors of this range cannot be read from now on. What they hold stays: [`read`]
    /// does not refuse it, a device asks [`unreadable`](Self::unreadable) first.
    ///
    /// [`read`]: Self::read
    pub(crate) fn make_unreadable(&mut self, offset: u64, len: u64) {
        Arc::make_mut(&mut self.unreadable).extend(touched(offset, len));
    }

    /// The first byte of a range that cannot be read.
    pub fn unreadable(&self, offset: u64, len: u64) -> Option<u64> {
        if self.unreadable.is_empty() || len == 0 {
            return None;
        }
        let first = self.unreadable.range(touched(offset, len)).next()?;
        Some((first * SECTOR_BYTES).max(offset))
    }

    /// Sectors that are written can be read again.
    pub(super) fn written(&mut self, offset: u64, len: u64) {
        if self.unreadable(offset, len).is_some() {
            let range = touched(offset, len);
            Arc::make_mut(&mut self.unreadable).retain(|sector| !range.contains(sector));
        }
    }

    /// The unreadable sectors of a page, as bits.
    pub(super) fn unreadable_in(&self, page: u64) -> u64 {
        if self.unreadable.is_empty() {
            return 0;
        }
        let first = page * SECTORS_A_PAGE;
        self.unreadable
            .range(first..first + SECTORS_A_PAGE)
            .fold(0, |bits, sector| bits | 1 << (sector - first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_unreadable_until_it_is_written() {
        let mut store = Store::new(1 << 20);
        let clean = store.clone();
        store.make_unreadable(4096, 1024);
        assert_eq!(store.unreadable(0, 8192), Some(4096));
        assert_eq!(store.unreadable(4608, 512), Some(4608));
        assert_eq!(store.unreadable(0, 4096), None);
        assert_ne!(store, clean);
        assert_ne!(store.page_digest(1), clean.page_digest(1));
        assert_ne!(store.digest(), clean.digest());
        store.write_slice(4096, &[0; 512]);
        assert_eq!(store.unreadable(0, 8192), Some(4608));
        store.discard(4096, 4096);
        assert_eq!(store.unreadable(0, 8192), None);
        assert_eq!(store, clean);
    }
}
