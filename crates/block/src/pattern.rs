//! Test data that says where it belongs, and packs well.
//!
//! A benchmark or a crash test fills files with *stamped sectors*: 512 bytes that follow from two
//! 64-bit words, a `tag` (which file, which write) and a `position` (byte offset in the file).
//! All 512 bytes differ from sector to sector and from write to write, so no layer can cheat by
//! compressing or deduplicating zeros; yet whoever reads a sector back can tell whose it is, and a
//! store can keep it as sixteen bytes after checking that the rest follows ([`stamp_of`]).

use bytes::Bytes;

/// Bytes in a stamped sector.
pub const SECTOR: usize = 512;

/// What a stamped sector says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stamp {
    /// Whose data it is: by convention a file number in the upper 16 bits and the sequence
    /// number of the write in the lower 48. Never zero.
    pub tag: u64,
    /// Byte offset in the file; a multiple of [`SECTOR`].
    pub position: u64,
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
            i => word(base, i),
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

/// `len` bytes (a multiple of 512) at file offset `position`, written by `tag`.
pub fn bytes(tag: u64, position: u64, len: usize) -> Bytes {
    let mut v = vec![0; len];
    fill(tag, position, &mut v);
    Bytes::from(v)
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
    fn a_sector_tells_its_stamp_and_a_changed_one_does_not() {
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
    fn the_data_is_dense() {
        let data = bytes(1, 0, 64 * 1024);
        let zeros = data.iter().filter(|b| **b == 0).count();
        assert!(zeros < data.len() / 20, "{zeros} zero bytes of {}", data.len());
    }
}
