//! Parts of a write: what is left of a torn one. In memory they are words, 512 of a page, so a page
//! is made once for all of its parts.

use std::ops::Range;

use super::packed::PackedBytes;
use super::page::{PAGE, Page};
use super::{Store, pieces};

/// A page of which some bytes are replaced.
struct ReplacedPage {
    number: u64,
    bytes: [u8; PAGE],
    /// What the write holds there, as far as it reaches.
    new: [u8; PAGE],
}

impl Store {
    /// Writes parts of `data`, which would lie at `offset` as a whole: ranges of it, in bytes,
    /// ascending.
    ///
    /// # Panics
    /// If a range ends beyond the store or beyond `data`.
    pub fn write_packed_parts(
        &mut self,
        offset: u64,
        data: &PackedBytes,
        parts: impl IntoIterator<Item = Range<usize>>,
    ) {
        let mut open: Option<ReplacedPage> = None;
        for Range { start, end } in parts {
            let (at, len) = (offset + start as u64, end - start);
            self.check(at, len as u64);
            self.written(at, len as u64);
            for p in pieces(at, len) {
                let from = start + p.at;
                let segment = data.segment_over(from, p.len).filter(|_| p.is_whole());
                if let Some(segment) = segment {
                    self.install(p.page, Page::of_segment(&segment));
                    continue;
                }
                if open.as_ref().is_none_or(|page| page.number != p.page) {
                    let next = self.replaced(p.page, (offset, data));
                    if let Some(done) = open.replace(next) {
                        self.install(done.number, Page::of_slice(&done.bytes));
                    }
                }
                if let Some(page) = &mut open {
                    let place = p.start..p.start + p.len;
                    page.bytes[place.clone()].copy_from_slice(&page.new[place]);
                }
            }
        }
        if let Some(done) = open {
            self.install(done.number, Page::of_slice(&done.bytes));
        }
    }

    /// A page as it is, and as the write would leave it.
    fn replaced(&self, number: u64, (offset, data): (u64, &PackedBytes)) -> ReplacedPage {
        let (mut bytes, mut new) = ([0; PAGE], [0; PAGE]);
        if let Some(old) = self.page(number) {
            old.copy_to(0, &mut bytes);
        }
        let begin = number * PAGE as u64;
        let from = offset.max(begin);
        let to = (offset + data.len() as u64).min(begin + PAGE as u64);
        // OK: both lie in the page, and `from` in the data.
        let place = (from - begin) as usize..(to - begin) as usize;
        data.copy_to((from - offset) as usize, &mut new[place]);
        ReplacedPage { number, bytes, new }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use steadfast_block::pattern;
    use steadfast_block::rng::Rng;

    use super::*;

    /// Words of two pages and a bit, over what was there.
    #[test]
    fn parts_together_leave_what_they_leave_one_by_one() {
        let mut rng = Rng::new(7);
        for round in 0..60 {
            let mut store = Store::new(1 << 20);
            let old: Vec<u8> = (0..5 * PAGE).map(|i| (i / 700) as u8).collect();
            store.write_slice(0, &old);
            let mut bytes = vec![0; 3 * PAGE];
            match round % 3 {
                0 => pattern::fill(9, 0, &mut bytes),
                1 => bytes.iter_mut().enumerate().for_each(|(i, b)| *b = (i * 31) as u8),
                _ => pattern::fill(9, 0, &mut bytes[1024..5120]),
            }
            let offset = [4096, 4096 + 8, 3000][round / 3 % 3];
            let keep = [0, 2, 50, 98, 100][round % 5];
            let (mut parts, mut expected) = (Vec::new(), old.clone());
            for at in (0..bytes.len()).step_by(8).filter(|_| rng.percent(keep)) {
                parts.push(at..at + 8);
                let place = offset + at;
                expected[place..place + 8].copy_from_slice(&bytes[at..at + 8]);
            }
            let packed = PackedBytes::pack(&Bytes::from(bytes));
            let mut one_by_one = store.clone();
            for part in parts.clone() {
                one_by_one.write_packed_parts(offset as u64, &packed, std::iter::once(part));
            }
            store.write_packed_parts(offset as u64, &packed, parts);
            assert_eq!(store.read(0, expected.len() as u64), expected, "{round}");
            assert_eq!(store, one_by_one, "{round}");
        }
    }
}
