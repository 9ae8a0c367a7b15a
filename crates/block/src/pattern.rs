//! Test data that identifies its file, write and offset, and compresses well.
//!
//! A benchmark or a crash test fills files with *stamped sectors*: 512 bytes that are computed from
//! two 64-bit words, a `tag` (which file, which write) and a `position` (byte offset in the file).
//! All 512 bytes differ between sectors and between writes, so no layer can cheat by compressing or
//! deduplicating zeros. A reader can identify the origin of a sector, and a store can keep it as
//! sixteen bytes after verifying the rest ([`stamp_of`]).
//!
//! Generating and verifying these bytes is most of the cost of a simulated benchmark. So the last
//! runs of [`bytes()`] are cached with their memory: for a slice of one the stamp is known without
//! reading its bytes ([`run_of`]), and a repeated request for the same bytes gets the same memory
//! ([`made`]). `Bytes` cannot change, so the cache stays valid.
//!
//! A benchmark without power cuts writes the same few runs repeatedly. These are *interned*
//! ([`interned`]): their memory is never freed, so a page or a block image may share it without
//! keeping a larger buffer alive ([`unpinned`]).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Bytes in a stamped sector.
pub const SECTOR: usize = 512;

/// The two words of a stamped sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp {
    /// Whose data it is: by convention a file number in the upper 16 bits and the sequence
    /// number of the write in the lower 48. Never zero.
    pub tag: u64,
    /// Byte offset in the file; a multiple of [`SECTOR`].
    pub position: u64,
}

impl Stamp {
    /// The stamp of the sector `bytes` after this one in the same run.
    #[must_use]
    pub fn after(self, bytes: usize) -> Stamp {
        Stamp { position: self.position.wrapping_add(bytes as u64), ..self }
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX: u64 = 0xd6e8_feb8_6659_fd93;

/// Word `i` (2..64) of a sector: depends on both stamp words and on `i`.
#[inline]
fn word(base: u64, i: u64) -> u64 {
    let x = base.wrapping_add(i.wrapping_mul(STEP));
    (x ^ (x >> 32)).wrapping_mul(MIX)
}

#[inline]
fn base_of(stamp: Stamp) -> u64 {
    (stamp.tag.wrapping_mul(MIX) ^ stamp.position).wrapping_mul(STEP)
}

/// Fills one sector (512 bytes).
pub fn fill_sector(stamp: Stamp, out: &mut [u8]) {
    debug_assert_eq!(out.len(), SECTOR);
    // Arrays, not slices: a word is stored by one instruction and not by a call that copies.
    let (words, _) = out.as_chunks_mut::<8>();
    let base = base_of(stamp);
    for (i, chunk) in (0..).zip(words) {
        let value = match i {
            0 => stamp.tag,
            1 => stamp.position,
            // One word after the other, which `black_box` is for: see `stamp_of`.
            i => black_box(word(base, i)),
        };
        *chunk = value.to_le_bytes();
    }
}

/// Fills `out` (a multiple of 512 bytes) as the bytes at file offset `position`, written by `tag`.
pub fn fill(tag: u64, position: u64, out: &mut [u8]) {
    for (i, sector) in out.chunks_exact_mut(SECTOR).enumerate() {
        fill_sector(Stamp { tag, position: position + (i * SECTOR) as u64 }, sector);
    }
}

/// Runs cached by each thread: more than a simulated benchmark has writers.
const REMEMBERED: usize = 16;
/// The longest run that is cached, in bytes.
const REMEMBERED_LEN: usize = 4 << 20;

/// Bytes of all interned runs of the process, at most: runs beyond are not interned.
const INTERNED_MAX: usize = 64 << 20;

/// A run of stamped sectors in memory.
#[derive(Clone)]
struct StampedSectors {
    first: Stamp,
    bytes: Bytes,
}

thread_local! {
    /// What [`bytes`] made last, newest first.
    static MADE: RefCell<VecDeque<StampedSectors>> = const { RefCell::new(VecDeque::new()) };
    /// The interned runs that this thread has used.
    static INTERNED_LOCAL: RefCell<Vec<StampedSectors>> = const { RefCell::new(Vec::new()) };
}

/// The interned runs of all threads.
static INTERNED: Mutex<Vec<StampedSectors>> = Mutex::new(Vec::new());

impl StampedSectors {
    /// How far into the run `part` begins, if it is a piece of its memory.
    fn offset_of(&self, part: &Bytes) -> Option<usize> {
        let at = part.as_ptr().addr().checked_sub(self.bytes.as_ptr().addr())?;
        (at.checked_add(part.len())? <= self.bytes.len()).then_some(at)
    }

    /// The stamp of the first sector of `part`, if it is whole sectors of this memory.
    fn stamp_of(&self, part: &Bytes) -> Option<Stamp> {
        let at = self.offset_of(part).filter(|at| at.is_multiple_of(SECTOR))?;
        Some(self.first.after(at))
    }

    /// The `len` bytes that follow from `first`, if they are in this run.
    fn part(&self, first: Stamp, len: usize) -> Option<Bytes> {
        let at = first.position.checked_sub(self.first.position)?;
        let at = usize::try_from(at).ok().filter(|at| at.is_multiple_of(SECTOR))?;
        let inside = self.first.tag == first.tag && at.checked_add(len)? <= self.bytes.len();
        inside.then(|| self.bytes.slice(at..at + len))
    }
}

/// As [`bytes()`], for what is written again and again: always the same memory, which stays for as
/// long as the process does. Beyond a bound on all of them together it is as by [`bytes()`].
pub fn interned(tag: u64, position: u64, len: usize) -> Bytes {
    let first = Stamp { tag, position };
    let is_it = |run: &&StampedSectors| run.first == first && run.bytes.len() == len;
    let here = INTERNED_LOCAL.with_borrow(|here| here.iter().find(is_it).map(|r| r.bytes.clone()));
    if let Some(bytes) = here {
        return bytes;
    }
    if len == 0 || !len.is_multiple_of(SECTOR) || tag == 0 {
        return bytes(tag, position, len);
    }
    let mut all = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.iter().find(is_it).cloned();
    let run = match known {
        Some(run) => run,
        None => {
            let taken: usize = all.iter().map(|run| run.bytes.len()).sum();
            if taken + len > INTERNED_MAX {
                return bytes(tag, position, len);
            }
            let mut v = vec![0; len];
            fill(tag, position, &mut v);
            let run = StampedSectors { first, bytes: Bytes::from_static(v.leak()) };
            all.push(run.clone());
            run
        }
    };
    let bytes = run.bytes.clone();
    INTERNED_LOCAL.with_borrow_mut(|here| here.push(run));
    bytes
}

/// Whether `part` is memory that is never freed, which this thread has got from [`interned`].
pub fn is_interned(part: &Bytes) -> bool {
    INTERNED_LOCAL.with_borrow(|here| here.iter().any(|run| run.offset_of(part).is_some()))
}

/// The two as one piece, if they follow each other in memory that lasts.
pub fn joined(a: &Bytes, b: &Bytes) -> Option<Bytes> {
    if a.as_ptr().addr() + a.len() != b.as_ptr().addr() {
        return None;
    }
    INTERNED_LOCAL.with_borrow(|here| {
        here.iter().find_map(|run| {
            let at = run.offset_of(a)?;
            run.offset_of(b)?;
            Some(run.bytes.slice(at..at + a.len() + b.len()))
        })
    })
}

/// The same bytes without keeping a larger buffer in memory that they may be a piece of: a copy,
/// except of what is lasting.
pub fn unpinned(part: &Bytes) -> Bytes {
    if is_interned(part) { part.clone() } else { Bytes::copy_from_slice(part) }
}

/// `len` bytes (a multiple of 512) at file offset `position`, written by `tag`.
pub fn bytes(tag: u64, position: u64, len: usize) -> Bytes {
    let mut v = vec![0; len];
    fill(tag, position, &mut v);
    let bytes = Bytes::from(v);
    if (SECTOR..=REMEMBERED_LEN).contains(&len) && len.is_multiple_of(SECTOR) && tag != 0 {
        let run = StampedSectors { first: Stamp { tag, position }, bytes: bytes.clone() };
        MADE.with_borrow_mut(|made| {
            made.truncate(REMEMBERED - 1);
            made.push_front(run);
        });
    }
    bytes
}

/// The stamp of the first sector of `part`, if `part` is whole sectors of a run that this thread
/// made lately and remembers. `None` says nothing: ask [`stamp_of`] for each sector.
pub fn run_of(part: &Bytes) -> Option<Stamp> {
    if part.is_empty() || !part.len().is_multiple_of(SECTOR) {
        return None;
    }
    let interned =
        INTERNED_LOCAL.with_borrow(|here| here.iter().find_map(|run| run.stamp_of(part)));
    interned.or_else(|| MADE.with_borrow(|made| made.iter().find_map(|run| run.stamp_of(part))))
}

/// The `len` bytes that follow from `first`, if this thread made them lately and remembers.
pub fn made(first: Stamp, len: usize) -> Option<Bytes> {
    let interned = INTERNED_LOCAL.with_borrow(|here| here.iter().find_map(|r| r.part(first, len)));
    interned.or_else(|| MADE.with_borrow(|made| made.iter().find_map(|r| r.part(first, len))))
}

/// The stamp of a sector (512 bytes), if all of its bytes follow from it.
pub fn stamp_of(sector: &[u8]) -> Option<Stamp> {
    let (words, []) = sector.as_chunks::<8>() else { return None };
    if words.len() * 8 != SECTOR {
        return None;
    }
    let stamp = Stamp { tag: u64::from_le_bytes(words[0]), position: u64::from_le_bytes(words[1]) };
    if stamp.tag == 0 {
        return None;
    }
    // One word after the other: three times as fast as in vector registers, where a 64-bit
    // multiplication takes three, and what is no stamp is seen at its first word.
    let base = base_of(stamp);
    let follows = (2..).zip(&words[2..]).all(|(i, w)| u64::from_le_bytes(*w) == word(base, i));
    follows.then_some(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_has_its_stamp_and_a_changed_one_has_none() {
        let stamp = Stamp { tag: 7 << 48 | 3, position: 1024 };
        let mut sector = [0; SECTOR];
        fill_sector(stamp, &mut sector);
        assert_eq!(stamp_of(&sector), Some(stamp));
        for i in [0, 9, 16, 300, 511] {
            let mut bad = sector;
            bad[i] ^= 1;
            assert_eq!(stamp_of(&bad), None, "byte {i}");
        }
        assert_eq!(stamp_of(&[0; SECTOR]), None);
    }

    #[test]
    fn what_was_made_is_known_by_its_memory_and_only_by_it() {
        let run = bytes(77, 4096, 8 * SECTOR);
        let first = Stamp { tag: 77, position: 4096 };
        assert_eq!(run_of(&run), Some(first));
        assert_eq!(run_of(&run.slice(1024..2048)), Some(first.after(1024)));
        assert_eq!(run_of(&run.slice(8..520)), None, "not a sector's beginning");
        assert_eq!(run_of(&run.slice(..700)), None, "not whole sectors");
        assert_eq!(run_of(&Bytes::copy_from_slice(&run)), None, "other memory");
        let again = made(first.after(512), 1024).unwrap();
        assert_eq!(again.as_ptr(), run[512..].as_ptr());
        assert_eq!(made(first, 9 * SECTOR), None, "longer than the run");
        assert_eq!(made(Stamp { tag: 78, ..first }, SECTOR), None);
        assert_eq!(made(Stamp { position: 0, ..first }, SECTOR), None);
        for n in 0..REMEMBERED as u64 {
            bytes(78, n * 512, SECTOR);
        }
        assert_eq!(run_of(&run), None, "forgotten");
    }

    #[test]
    fn what_is_lasting_is_the_same_memory_in_all_threads() {
        let run = interned(91, 0, 8 * SECTOR);
        assert_eq!(run, bytes(91, 0, 8 * SECTOR));
        let other = std::thread::spawn(|| interned(91, 0, 8 * SECTOR)).join().unwrap();
        assert_eq!(run.as_ptr(), other.as_ptr());
        let part = run.slice(SECTOR..3 * SECTOR);
        assert_eq!(unpinned(&part).as_ptr(), part.as_ptr());
        assert_eq!(run_of(&part), Some(Stamp { tag: 91, position: 512 }));
        assert_eq!(made(Stamp { tag: 91, position: 512 }, 1024).unwrap().as_ptr(), part.as_ptr());
        let own = bytes(92, 0, SECTOR);
        assert!(!is_interned(&own));
        let copy = unpinned(&own);
        assert!(copy == own && copy.as_ptr() != own.as_ptr());
        assert_eq!(interned(93, 0, INTERNED_MAX + SECTOR).len(), INTERNED_MAX + SECTOR);
        assert!(!is_interned(&interned(93, 0, INTERNED_MAX + SECTOR)), "beyond the bound");
    }

    #[test]
    fn the_data_is_dense() {
        let data = bytes(1, 0, 64 * 1024);
        let zeros = data.iter().filter(|b| **b == 0).count();
        assert!(zeros < data.len() / 20, "{zeros} zero bytes of {}", data.len());
    }
}
