//! One page of a store: 4096 bytes, in the smallest of four forms.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::pattern::{SECTOR, Stamp, stamp_of};

use super::packed::{PackedBytes, Segment, constant, expand_stamps};

/// Bytes in a page.
pub(super) const PAGE: usize = 4096;

/// The contents of a page. Which form it takes follows from the bytes alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Page {
    /// All bytes have this value.
    Fill(u8),
    /// Eight stamped sectors of one tag at consecutive positions; this is the first one's stamp.
    Stamped(Stamp),
    /// No sector can be packed.
    Raw(Bytes),
    /// Some can, but not as one run.
    Mixed(Arc<PackedBytes>),
}

impl Page {
    /// What was never written.
    pub(super) const ZERO: Page = Page::Fill(0);

    /// Packs 4096 bytes, sharing their memory if they cannot be packed.
    pub(super) fn of(bytes: Bytes) -> Page {
        if let Some(page) = Page::uniform(&bytes) {
            return page;
        }
        let packed = PackedBytes::pack(&bytes);
        match packed.segments() {
            [Segment::Raw(_)] => Page::Raw(bytes),
            _ => Page::Mixed(Arc::new(packed)),
        }
    }

    /// Packs 4096 bytes, copying them if they cannot be packed.
    pub(super) fn of_slice(bytes: &[u8]) -> Page {
        Page::uniform(bytes).unwrap_or_else(|| Page::of(Bytes::copy_from_slice(bytes)))
    }

    /// A page that is one segment of 4096 bytes.
    pub(super) fn of_segment(segment: &Segment) -> Page {
        match segment {
            Segment::Fill { byte, .. } => Page::Fill(*byte),
            Segment::Stamped { first, .. } => Page::Stamped(*first),
            // Looked at again: the segment's sectors need not begin where the page's do.
            Segment::Raw(bytes) => Page::of(bytes.clone()),
        }
    }

    fn uniform(bytes: &[u8]) -> Option<Page> {
        debug_assert_eq!(bytes.len(), PAGE);
        let Some(first) = stamp_of(&bytes[..SECTOR]) else {
            return constant(bytes).map(Page::Fill);
        };
        let mut sectors = bytes.chunks_exact(SECTOR).enumerate().skip(1);
        sectors
            .all(|(i, s)| stamp_of(s) == Some(first.after(i * SECTOR)))
            .then_some(Page::Stamped(first))
    }

    pub(super) fn is_zero(&self) -> bool {
        matches!(self, Page::Fill(0))
    }

    /// The same page with memory of its own.
    pub(super) fn unshared(self) -> Page {
        match self {
            Page::Raw(bytes) => Page::Raw(Bytes::copy_from_slice(&bytes)),
            other => other,
        }
    }

    /// Fills `out` with the bytes from `start` on.
    pub(super) fn copy_to(&self, start: usize, out: &mut [u8]) {
        match self {
            Page::Fill(byte) => out.fill(*byte),
            Page::Stamped(first) => expand_stamps(*first, start, out),
            Page::Raw(bytes) => out.copy_from_slice(&bytes[start..start + out.len()]),
            Page::Mixed(packed) => packed.copy_to(start, out),
        }
    }

    /// Bytes of memory beside the page table's entry.
    pub(super) fn footprint(&self) -> u64 {
        match self {
            Page::Fill(_) | Page::Stamped(_) => 0,
            Page::Raw(bytes) => bytes.len() as u64,
            Page::Mixed(packed) => packed.footprint(),
        }
    }
}
