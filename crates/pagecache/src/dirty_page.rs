//! When a page became dirty, and which parts of it.
//!
//! A store whose blocks are smaller than pages keeps by this what was only allocated in the blocks
//! that nobody wrote to. Whoever does not know which parts are dirty says all: that is never wrong.

use std::num::NonZeroU64;
use std::ops::Range;

use crate::PAGE;

/// Parts of a page that are dirty or clean by themselves, of [`PART`] bytes each.
const PARTS: usize = 4;
/// Bytes of a part: the smallest block of a store.
const PART: usize = PAGE / PARTS;

/// Dirty parts of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyParts(u8);

impl DirtyParts {
    /// The whole page.
    pub(crate) const ALL: DirtyParts = DirtyParts((1 << PARTS) - 1);

    /// The parts that these bytes of a page touch.
    pub(crate) fn touched(bytes: Range<usize>) -> DirtyParts {
        let (from, to) = (bytes.start / PART, bytes.end.div_ceil(PART).min(PARTS));
        let below = |part: usize| (1_u8 << part) - 1;
        DirtyParts(below(to) & !below(from.min(PARTS)))
    }

    /// Whether any of these bytes of the page may be dirty.
    pub fn touch(self, bytes: Range<usize>) -> bool {
        self.0 & DirtyParts::touched(bytes).0 != 0
    }
}

/// A dirty page's sequence number, with its dirty parts in the lowest bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirtyPage(NonZeroU64);

impl DirtyPage {
    pub fn new(seq: u64, parts: DirtyParts) -> DirtyPage {
        debug_assert!(seq > 0 && seq >> (64 - PARTS) == 0);
        // OK: no page becomes dirty as number 0.
        DirtyPage(NonZeroU64::new(seq << PARTS | u64::from(parts.0)).unwrap_or(NonZeroU64::MIN))
    }

    /// Sequence number of the page's becoming dirty.
    pub fn seq(self) -> u64 {
        self.0.get() >> PARTS
    }

    pub fn parts(self) -> DirtyParts {
        DirtyParts((self.0.get() & u64::from(DirtyParts::ALL.0)) as u8)
    }

    /// These parts have become dirty too.
    pub fn add(&mut self, parts: DirtyParts) {
        self.0 |= u64::from(parts.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_that_bytes_touch() {
        for (bytes, parts) in [(0..1, 1), (1023..1025, 3), (1024..2048, 2), (4095..4096, 8)] {
            assert_eq!(DirtyParts::touched(bytes), DirtyParts(parts));
        }
        assert_eq!(DirtyParts::touched(0..PAGE), DirtyParts::ALL);
        let second = DirtyParts::touched(1024..1030);
        assert!(second.touch(0..2048) && !second.touch(0..1024) && !second.touch(2048..PAGE));
        let mut dirty = DirtyPage::new(77, second);
        assert_eq!((dirty.seq(), dirty.parts()), (77, second));
        dirty.add(DirtyParts::ALL);
        assert_eq!((dirty.seq(), dirty.parts()), (77, DirtyParts::ALL));
    }
}
