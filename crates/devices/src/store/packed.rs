//! Compressed bytes: stamped or constant ones.

use std::hash::{Hash, Hasher};

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use steadfast_block::Payload;
use steadfast_block::pattern::{SECTOR, Stamp, fill_sector, run_of, stamp_of};

/// A run of bytes within a [`PackedBytes`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// `len` times the same byte.
    Fill {
        /// The byte.
        byte: u8,
        /// How many.
        len: usize,
    },
    /// Stamped sectors of one tag at consecutive positions.
    Stamped {
        /// The stamp of the first sector.
        first: Stamp,
        /// Bytes, a multiple of [`SECTOR`].
        len: usize,
    },
    /// Anything else, as it is.
    Raw(Bytes),
}

/// Bytes without the part of them that follows from the rest. Unpacks to exactly what was packed.
///
/// Recognised, a sector of 512 bytes at a time: [stamped sectors](steadfast_block::pattern) and
/// sectors of one byte's value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedBytes {
    len: usize,
    segments: Vec<Segment>,
}

impl Hash for PackedBytes {
    /// Of the bytes, however they are packed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.unpack().hash(state);
    }
}

impl Serialize for PackedBytes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.unpack())
    }
}

impl<'d> Deserialize<'d> for PackedBytes {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<PackedBytes, D::Error> {
        // As long as the input has them: nothing is allocated for what is not there.
        <&[u8]>::deserialize(from).map(|bytes| PackedBytes::pack(&Bytes::copy_from_slice(bytes)))
    }
}

/// The value that all the bytes have, if they have one.
pub(super) fn constant(bytes: &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    // Each byte equals its predecessor: a comparison the machine's memcmp does quickly.
    (*rest == bytes[..bytes.len() - 1]).then_some(*first)
}

/// The bytes `[from, from + out.len())` of a run of stamped sectors.
pub(super) fn expand_stamps(first: Stamp, from: usize, out: &mut [u8]) {
    let mut at = from;
    let mut rest = out;
    while !rest.is_empty() {
        let (sector, skip) = (at - at % SECTOR, at % SECTOR);
        let (now, later) = rest.split_at_mut((SECTOR - skip).min(rest.len()));
        if now.len() == SECTOR {
            fill_sector(first.after(sector), now);
        } else {
            let mut whole = [0; SECTOR];
            fill_sector(first.after(sector), &mut whole);
            now.copy_from_slice(&whole[skip..skip + now.len()]);
        }
        at += now.len();
        rest = later;
    }
}

impl Segment {
    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)] // there are no empty segments
    pub fn len(&self) -> usize {
        match self {
            Segment::Fill { len, .. } | Segment::Stamped { len, .. } => *len,
            Segment::Raw(bytes) => bytes.len(),
        }
    }

    fn copy_to(&self, from: usize, out: &mut [u8]) {
        match self {
            Segment::Fill { byte, .. } => out.fill(*byte),
            Segment::Stamped { first, .. } => expand_stamps(*first, from, out),
            Segment::Raw(bytes) => out.copy_from_slice(&bytes[from..from + out.len()]),
        }
    }

    /// Takes `next` in if the two are one run.
    fn absorb(&mut self, next: &Segment) -> bool {
        match (self, next) {
            (Segment::Fill { byte, len }, Segment::Fill { byte: b, len: more }) if byte == b => {
                *len += more;
                true
            }
            (Segment::Stamped { first, len }, Segment::Stamped { first: f, len: more })
                if first.after(*len) == *f =>
            {
                *len += more;
                true
            }
            _ => false,
        }
    }
}

impl PackedBytes {
    /// Packs bytes. What cannot be packed shares the memory of `data`, unless that is so little
    /// of it that copying is cheaper than keeping all of `data` alive.
    pub fn pack(data: &Bytes) -> Self {
        let mut packed = PackedBytes::default();
        packed.append(data);
        packed
    }

    /// Packs the bytes of a write.
    pub fn pack_payload(payload: &Payload) -> Self {
        let mut packed = PackedBytes::default();
        let split_badly = payload.parts().iter().any(|part| part.len() % SECTOR != 0);
        if split_badly {
            packed.append(&payload.clone().into_contiguous());
        } else {
            for (number, part) in payload.parts().iter().enumerate() {
                match payload.stamp(number).or_else(|| run_of(part)) {
                    Some(first) => {
                        packed.push(Segment::Stamped { first, len: part.len() });
                        packed.len += part.len();
                    }
                    None => packed.append(part),
                }
            }
        }
        packed
    }

    /// Length in bytes, unpacked.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The runs in order. Raw runs are cut where the parts of the write were.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The bytes.
    pub fn unpack(&self) -> Bytes {
        if let [Segment::Raw(all)] = &self.segments[..] {
            return all.clone();
        }
        let mut out = vec![0; self.len];
        self.copy_to(0, &mut out);
        Bytes::from(out)
    }

    /// Fills `out` with the bytes from `from` on.
    ///
    /// # Panics
    /// If fewer than `out.len()` bytes follow `from`.
    pub fn copy_to(&self, from: usize, out: &mut [u8]) {
        assert!(from.checked_add(out.len()).is_some_and(|end| end <= self.len), "out of range");
        let mut start = 0;
        let mut done = 0;
        for segment in &self.segments {
            let at = from + done;
            let end = start + segment.len();
            if done < out.len() && at < end {
                let len = (end - at).min(out.len() - done);
                segment.copy_to(at - start, &mut out[done..done + len]);
                done += len;
            }
            start = end;
        }
    }

    /// About how many bytes of memory this takes.
    pub fn footprint(&self) -> u64 {
        let raw: usize = self
            .segments
            .iter()
            .map(|s| if let Segment::Raw(bytes) = s { bytes.len() } else { 0 })
            .sum();
        (size_of::<PackedBytes>() + self.segments.len() * size_of::<Segment>() + raw) as u64
    }

    /// The bytes `[from, from + len)` as one segment, if they lie within one.
    pub(super) fn segment_over(&self, from: usize, len: usize) -> Option<Segment> {
        let mut start = 0;
        let within = self.segments.iter().find(|segment| {
            start += segment.len();
            from < start
        })?;
        let skip = from - (start - within.len());
        if skip + len > within.len() {
            return None;
        }
        match within {
            Segment::Fill { byte, .. } => Some(Segment::Fill { byte: *byte, len }),
            Segment::Raw(bytes) => Some(Segment::Raw(bytes.slice(skip..skip + len))),
            Segment::Stamped { first, .. } => {
                let whole = skip.is_multiple_of(SECTOR) && len.is_multiple_of(SECTOR);
                whole.then(|| Segment::Stamped { first: first.after(skip), len })
            }
        }
    }

    fn append(&mut self, data: &Bytes) {
        let fresh = self.segments.len();
        let mut raw_from = None;
        let mut raw_bytes = 0;
        for at in (0..data.len()).step_by(SECTOR) {
            let sector = &data[at..data.len().min(at + SECTOR)];
            let len = sector.len();
            let packed = stamp_of(sector)
                .map(|first| Segment::Stamped { first, len })
                .or_else(|| constant(sector).map(|byte| Segment::Fill { byte, len }));
            match packed {
                None => {
                    raw_from.get_or_insert(at);
                    raw_bytes += len;
                }
                Some(segment) => {
                    if let Some(from) = raw_from.take() {
                        self.segments.push(Segment::Raw(data.slice(from..at)));
                    }
                    self.push(segment);
                }
            }
        }
        if let Some(from) = raw_from {
            self.segments.push(Segment::Raw(data.slice(from..)));
        }
        self.len += data.len();
        if raw_bytes * 2 < data.len() {
            for segment in &mut self.segments[fresh..] {
                if let Segment::Raw(bytes) = segment {
                    *bytes = Bytes::copy_from_slice(bytes);
                }
            }
        }
    }

    fn push(&mut self, segment: Segment) {
        if !self.segments.last_mut().is_some_and(|last| last.absorb(&segment)) {
            if self.segments.is_empty() {
                // Mostly there is no other.
                self.segments.reserve_exact(1);
            }
            self.segments.push(segment);
        }
    }
}
