//! A digest of contents, taken over their packed form.

use super::packed::Segment;
use super::page::Page;
use super::{PAGE, Store};

/// A 128-bit state fed with words: two multiply-and-rotate lanes. Not cryptographic; enough to
/// distinguish two images of a test. Stable between runs.
#[derive(Debug, Clone)]
pub struct Digest(u64, u64);

impl Default for Digest {
    fn default() -> Self {
        Digest::new()
    }
}

impl Digest {
    /// Of nothing yet.
    pub fn new() -> Self {
        Digest(0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344)
    }

    /// Of some bytes.
    pub fn of(bytes: &[u8]) -> u128 {
        let mut digest = Digest::new();
        digest.bytes(bytes);
        digest.end()
    }

    /// What has been fed, in short.
    pub fn end(&self) -> u128 {
        u128::from(self.0) << 64 | u128::from(self.1)
    }

    /// Feeds a number.
    pub fn word(&mut self, w: u64) {
        self.0 = (self.0 ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        self.1 = (self.1.rotate_left(23) ^ w).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ self.0;
    }

    /// Feeds bytes and their number.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
        self.word(bytes.len() as u64);
    }

    fn segment(&mut self, segment: &Segment) {
        match segment {
            Segment::Fill { byte, len } => {
                [1, u64::from(*byte), *len as u64].into_iter().for_each(|w| self.word(w));
            }
            Segment::Stamped { first, len } => {
                [2, first.tag, first.position, *len as u64].into_iter().for_each(|w| self.word(w));
            }
            Segment::Raw(bytes) => {
                self.word(3);
                self.bytes(bytes);
            }
        }
    }
}

impl Digest {
    fn page(&mut self, page: &Page) {
        match page {
            Page::Fill(byte) => self.segment(&Segment::Fill { byte: *byte, len: PAGE }),
            Page::Stamped(first) => self.segment(&Segment::Stamped { first: *first, len: PAGE }),
            Page::Raw(bytes) => self.segment(&Segment::Raw(bytes.clone())),
            Page::Mixed(packed) => packed.segments().iter().for_each(|s| self.segment(s)),
        }
    }
}

impl Store {
    /// As [`digest`](Self::digest), of the page of this number ([`PAGE_BYTES`](super::PAGE_BYTES)
    /// each), its place and its unreadable sectors; 0 for a page of zeros that can be read. Those
    /// of all pages together are one of the contents.
    pub fn page_digest(&self, number: u64) -> u128 {
        let unreadable = self.unreadable_in(number);
        let page = self.page(number).filter(|page| !page.is_zero());
        if page.is_none() && unreadable == 0 {
            return 0;
        }
        let mut lanes = Digest(number, !number);
        page.into_iter().for_each(|page| lanes.page(page));
        if unreadable != 0 {
            lanes.word(unreadable);
        }
        lanes.end()
    }

    /// A number that is the same for stores of the same size with the same bytes, and differs
    /// (almost certainly) otherwise. Stable between runs.
    pub fn digest(&self) -> u128 {
        let mut lanes = Digest(self.size, !self.size);
        for (number, page) in self.pages() {
            lanes.word(number);
            lanes.page(page);
        }
        self.unreadable.iter().for_each(|sector| lanes.word(!sector));
        lanes.end()
    }
}
