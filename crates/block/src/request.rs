//! Requests, and the bytes that a write carries.

use bytes::Bytes;

use crate::pattern::{SECTOR, Stamp, joined, run_of, stamp_of};

/// The bytes of a write: a list of shared pieces, so that pages gathered into one request, a
/// recording filter and a mirror's legs all share them without copying.
#[derive(Debug, Clone, Default)]
pub struct Payload {
    parts: Vec<Bytes>,
    len: usize,
    /// Of each part, if it was looked at; see [`Payload::find_stamps`]. A tag of zero: none.
    stamps: Vec<Stamp>,
}

/// The bytes count, and how they are cut into parts; not whether anybody has looked for stamps.
impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for Payload {}

impl Payload {
    /// A payload without bytes.
    pub fn new() -> Self {
        Payload::default()
    }

    /// Adds a piece at the end. Empty pieces are dropped.
    pub fn push(&mut self, part: Bytes) {
        if !part.is_empty() {
            self.len += part.len();
            self.stamps.clear();
            match self.parts.last_mut().and_then(|last| Some((joined(last, &part)?, last))) {
                Some((both, last)) => *last = both,
                None => self.parts.push(part),
            }
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces in order.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// Looks for parts that are nothing but [stamped sectors](crate::pattern) in order. To know
    /// that every byte of them must be read: who keeps what is written asks
    /// [`stamp`](Self::stamp), and the next one below need not look again.
    pub fn find_stamps(&mut self) {
        let none = Stamp { tag: 0, position: 0 };
        self.stamps = self.parts.iter().map(|part| run_of_stamps(part).unwrap_or(none)).collect();
    }

    /// The stamp of a part's first sector, if it is known that the whole part follows from it: the
    /// sectors have one tag and consecutive positions.
    pub fn stamp(&self, part: usize) -> Option<Stamp> {
        self.stamps.get(part).copied().filter(|stamp| stamp.tag != 0)
    }

    /// The bytes `[from, from + len)`, sharing the same memory.
    ///
    /// # Panics
    /// If the range is outside the payload.
    pub fn slice(&self, from: usize, len: usize) -> Payload {
        assert!(from.checked_add(len).is_some_and(|end| end <= self.len), "slice out of range");
        let mut out = Payload::new();
        let (mut skip, mut want) = (from, len);
        for part in &self.parts {
            if want == 0 {
                break;
            }
            if skip >= part.len() {
                skip -= part.len();
                continue;
            }
            let take = want.min(part.len() - skip);
            out.push(part.slice(skip..skip + take));
            skip = 0;
            want -= take;
        }
        out
    }

    /// Cuts the payload into pieces of `unit` bytes, in order; a piece that lies within one part
    /// shares its memory, one that crosses parts is copied. The last piece may be shorter.
    pub fn units(&self, unit: usize) -> impl Iterator<Item = Bytes> + '_ {
        (0..self.len)
            .step_by(unit)
            .map(move |at| self.slice(at, unit.min(self.len - at)).into_contiguous())
    }

    /// All bytes in one piece; copies only if there are several.
    pub fn into_contiguous(mut self) -> Bytes {
        if self.parts.len() == 1 {
            // OK to unwrap: there is one.
            return self.parts.pop().unwrap();
        }
        let mut all = Vec::with_capacity(self.len);
        for part in &self.parts {
            all.extend_from_slice(part);
        }
        Bytes::from(all)
    }
}

/// The stamp of the first sector, if all are stamped, with one tag, and in order.
fn run_of_stamps(part: &Bytes) -> Option<Stamp> {
    if let Some(first) = run_of(part) {
        return Some(first);
    }
    let first = stamp_of(part.get(..SECTOR)?)?;
    let follows = |(at, sector): (usize, &[u8])| {
        let position = first.position.wrapping_add((at * SECTOR) as u64);
        stamp_of(sector) == Some(Stamp { position, ..first })
    };
    part.chunks(SECTOR).enumerate().skip(1).all(follows).then_some(first)
}

impl From<Bytes> for Payload {
    fn from(part: Bytes) -> Self {
        let mut p = Payload::new();
        p.push(part);
        p
    }
}

impl From<Vec<u8>> for Payload {
    fn from(v: Vec<u8>) -> Self {
        Bytes::from(v).into()
    }
}

impl FromIterator<Bytes> for Payload {
    fn from_iter<I: IntoIterator<Item = Bytes>>(parts: I) -> Self {
        let mut p = Payload::new();
        parts.into_iter().for_each(|b| p.push(b));
        p
    }
}

/// One request. Offsets and lengths are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Read `len` bytes at `offset`.
    Read {
        /// Byte offset.
        offset: u64,
        /// Bytes to read.
        len: u64,
    },
    /// Write `data` at `offset`; with `fua` it is durable when it completes.
    Write {
        /// Byte offset.
        offset: u64,
        /// What to write.
        data: Payload,
        /// Force unit access: durable at completion.
        fua: bool,
    },
    /// Make every write that completed before this was submitted durable.
    Flush,
    /// The range's contents are no longer needed; it reads as zeros or as before.
    Discard {
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
    },
}

impl Request {
    /// `read`, `write`, `flush` or `discard`.
    pub fn op(&self) -> &'static str {
        match self {
            Request::Read { .. } => "read",
            Request::Write { .. } => "write",
            Request::Flush => "flush",
            Request::Discard { .. } => "discard",
        }
    }

    /// Byte offset and length; `None` for a flush.
    pub fn range(&self) -> Option<(u64, u64)> {
        match self {
            Request::Read { offset, len } | Request::Discard { offset, len } => {
                Some((*offset, *len))
            }
            Request::Write { offset, data, .. } => Some((*offset, data.len() as u64)),
            Request::Flush => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;

    #[test]
    fn slices_cross_parts() {
        let p: Payload = [&b"abc"[..], b"defg", b"h"].into_iter().map(Bytes::from_static).collect();
        assert_eq!(p.len(), 8);
        assert_eq!(p.slice(2, 4).into_contiguous(), "cdef");
        assert_eq!(p.slice(0, 0).len(), 0);
        let units: Vec<Bytes> = p.units(3).collect();
        assert_eq!(units, ["abc", "def", "gh"]);
    }

    #[test]
    fn stamps_are_those_of_whole_runs() {
        let run = pattern::bytes(7, 1024, 3 * SECTOR);
        let jump = [&run[..SECTOR], &run[2 * SECTOR..]].concat();
        let rest = run.slice(..SECTOR + 8);
        let mut p: Payload =
            [run.clone(), jump.into(), rest, Bytes::from_static(b"a")].into_iter().collect();
        let same = p.clone();
        let stamps = |p: &Payload| (0..4).map(|part| p.stamp(part)).collect::<Vec<_>>();
        assert_eq!(stamps(&p), [None; 4]);
        p.find_stamps();
        let first = Stamp { tag: 7, position: 1024 };
        assert_eq!(stamps(&p), [Some(first), None, None, None]);
        assert_eq!(p, same);
        p.push(run);
        assert_eq!(p.stamp(0), None);
    }
}
