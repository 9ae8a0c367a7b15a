//! What a file holds, in pieces that do not overlap; between them are zeros.

use std::collections::BTreeMap;

use bytes::Bytes;

#[derive(Debug, Clone, Default)]
pub(crate) struct Pieces {
    by_place: BTreeMap<u64, Bytes>,
    /// Bytes of all together.
    len: u64,
}

impl Pieces {
    /// Of pieces in order.
    pub fn of(pieces: &[(u64, Bytes)]) -> Pieces {
        let len = pieces.iter().map(|(_, piece)| piece.len() as u64).sum();
        Pieces { by_place: pieces.iter().cloned().collect(), len }
    }

    pub fn write(&mut self, at: u64, bytes: Bytes) {
        self.clear(at, at.saturating_add(bytes.len() as u64));
        if !bytes.is_empty() {
            self.len += bytes.len() as u64;
            self.by_place.insert(at, bytes);
        }
    }

    /// What is in `[from, to)` becomes zeros.
    pub fn clear(&mut self, from: u64, to: u64) {
        // They do not overlap: only the last one before `from` can reach into it.
        let first = self.by_place.range(..from).next_back().map_or(from, |(at, _)| *at);
        let hit: Vec<u64> = self.by_place.range(first..to.max(first)).map(|(at, _)| *at).collect();
        for at in hit {
            let Some(piece) = self.by_place.remove(&at) else { continue };
            let end = at + piece.len() as u64;
            self.len -= piece.len() as u64;
            if at < from {
                let kept = (from - at).min(piece.len() as u64) as usize;
                self.len += kept as u64;
                self.by_place.insert(at, piece.slice(..kept));
            }
            if end > to {
                let kept = piece.slice((to.max(at) - at) as usize..);
                self.len += kept.len() as u64;
                self.by_place.insert(to.max(at), kept);
            }
        }
    }

    /// What is in `[at, at + len)` goes, and what follows moves down to `at`.
    pub fn collapse(&mut self, at: u64, len: u64) {
        self.clear(at, at.saturating_add(len));
        let behind = self.by_place.split_off(&at);
        self.by_place
            .extend(behind.into_iter().map(|(from, piece)| (from.saturating_sub(len), piece)));
    }

    /// What is at `at` and behind it moves up by `len`; zeros come in its place.
    pub fn insert(&mut self, at: u64, len: u64) {
        // The piece across the place becomes two.
        let across =
            self.by_place.range(..at).next_back().map(|(from, piece)| (*from, piece.clone()));
        if let Some((from, piece)) = across
            && from + piece.len() as u64 > at
        {
            let cut = (at - from) as usize;
            self.by_place.insert(from, piece.slice(..cut));
            self.by_place.insert(at, piece.slice(cut..));
        }
        let behind = self.by_place.split_off(&at);
        self.by_place
            .extend(behind.into_iter().map(|(from, piece)| (from.saturating_add(len), piece)));
    }

    /// The bytes `[from, to)`.
    pub fn bytes(&self, from: u64, to: u64) -> Vec<u8> {
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        let first = self.by_place.range(..from).next_back().map_or(from, |(at, _)| *at);
        for (at, piece) in self.by_place.range(first..to.max(first)) {
            let (begin, end) = ((*at).max(from), (at + piece.len() as u64).min(to));
            if begin < end {
                bytes[(begin - from) as usize..(end - from) as usize]
                    .copy_from_slice(&piece[(begin - at) as usize..(end - at) as usize]);
            }
        }
        bytes
    }

    /// Where the first piece at or behind `at` begins, or `at` if one is there, and where what
    /// is there without a gap ends; `None`: there is none.
    pub fn data(&self, at: u64) -> Option<(u64, u64)> {
        let before = self.by_place.range(..=at).next_back();
        let across = before.filter(|(from, piece)| *from + piece.len() as u64 > at);
        let first = across.or_else(|| self.by_place.range(at..).next());
        let begin = (*first?.0).max(at);
        let mut end = begin;
        for (from, piece) in self.by_place.range(*first?.0..) {
            if *from > end {
                break;
            }
            end = from + piece.len() as u64;
        }
        Some((begin, end))
    }

    /// Bytes of all pieces together.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The pieces within the first `size` bytes.
    pub fn within(&self, size: u64) -> Vec<(u64, Bytes)> {
        let within = self.by_place.range(..size);
        within
            .map(|(at, piece)| (*at, piece.slice(..(size - at).min(piece.len() as u64) as usize)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &Pieces, size: u64) -> String {
        let mut all = vec![b'.'; size as usize];
        for (at, piece) in pieces.within(size) {
            all[at as usize..at as usize + piece.len()].copy_from_slice(&piece);
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn pieces_are_written_over_cut_and_moved() {
        let mut pieces = Pieces::of(&[(0, Bytes::from_static(b"aaaaaa"))]);
        pieces.write(2, Bytes::from_static(b"bb"));
        assert_eq!(shown(&pieces, 8), "aabbaa..");
        pieces.clear(1, 3);
        assert_eq!(shown(&pieces, 8), "a..baa..");
        pieces.insert(4, 2);
        assert_eq!(shown(&pieces, 8), "a..b..aa");
        pieces.collapse(1, 3);
        assert_eq!(shown(&pieces, 8), "a..aa...");
        pieces.write(6, Bytes::from_static(b"cc"));
        pieces.clear(7, u64::MAX);
        assert_eq!(shown(&pieces, 8), "a..aa.c.");
        assert_eq!(shown(&pieces, 4), "a..a");
        assert_eq!((pieces.bytes(2, 7), pieces.len()), (b"\0aa\0c".to_vec(), 4));
        assert_eq!(pieces.bytes(4, 9), b"a\0c\0\0");
        let data = |at| pieces.data(at);
        assert_eq!((data(0), data(1), data(4)), (Some((0, 1)), Some((3, 5)), Some((4, 5))));
        assert_eq!((data(5), data(7)), (Some((6, 7)), None));
        pieces.write(5, Bytes::from_static(b"b"));
        assert_eq!((pieces.data(3), pieces.data(6)), (Some((3, 7)), Some((6, 7))));
    }
}
