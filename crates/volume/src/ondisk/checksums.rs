//! The checksums of a region: CRC-32C of each 4096 bytes of it.
//!
//! Every region has its own blocks in the area, so that a torn write affects no other region. They
//! are valid only if the map says so ([`super::map::Region::summed`]); other contents of the area
//! are old and ignored.

use uuid::Uuid;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BLOCK, MAP_AT, checksum};

/// "SFCS"
const MAGIC: [u8; 4] = *b"SFCS";
/// Checksums in a block of the area.
pub(crate) const SUMS: usize = 1008;
/// The smallest region of a volume with checksums, in bytes: the area is a sixteenth of the data.
pub const REGION_MIN: u32 = 64 << 10;
/// The smallest region that is chosen where nobody says how large: a 64th.
pub(crate) const REGION_DEFAULT_MIN: u32 = 256 << 10;

/// Which of several records of one region is the newest: the generation of the labels when it was
/// written, and its number among those of that assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Edition {
    /// Generation of the labels.
    pub generation: u64,
    /// Grows by one with every record.
    pub number: u64,
}

/// What is known of a region's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChecksumRecord {
    /// When it was written.
    pub edition: Edition,
    /// One for each block of the region.
    pub sums: Vec<u32>,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 4],
    checksum: U32,
    volume: [u8; 16],
    region: U32,
    /// Number of this block among those of the region.
    part: U32,
    generation: U64,
    number: U64,
    /// Checksums in this block.
    count: U32,
    reserved: [u8; 12],
    sums: [U32; SUMS],
}

const _: () = {
    assert!(size_of::<Raw>() == BLOCK as usize);
    assert!(std::mem::offset_of!(Raw, checksum) == 4);
    assert!(std::mem::offset_of!(Raw, generation) == 32);
    assert!(std::mem::offset_of!(Raw, sums) == 64);
};

/// Blocks of the area that a region of so many bytes has.
pub(crate) fn blocks_for(region_bytes: u64) -> u64 {
    (region_bytes / BLOCK).div_ceil(SUMS as u64).max(1)
}

/// Where the area begins on a member whose map has so many blocks, in bytes.
pub(crate) fn area_at(map_blocks: u32) -> u64 {
    MAP_AT + 2 * BLOCK * u64::from(map_blocks)
}

/// Where a region's record is, in bytes, and how long.
pub fn record_at(map_blocks: u32, region_bytes: u64, region: u32) -> (u64, u64) {
    let len = blocks_for(region_bytes) * BLOCK;
    (area_at(map_blocks) + u64::from(region) * len, len)
}

/// Regions whose records fit between the map and the data.
pub fn room(map_blocks: u32, data_start: u64, region_bytes: u64) -> u64 {
    data_start.saturating_sub(area_at(map_blocks)) / (blocks_for(region_bytes) * BLOCK)
}

/// CRC-32C of each block of `bytes`.
pub fn of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(BLOCK as usize).map(crc32c::crc32c).collect()
}

impl ChecksumRecord {
    /// The record's bytes.
    pub fn encode(&self, volume: Uuid, region: u32, region_bytes: u64) -> Vec<u8> {
        let blocks = blocks_for(region_bytes);
        let mut out = Vec::with_capacity((blocks * BLOCK) as usize);
        for part in 0..blocks as usize {
            let from = (part * SUMS).min(self.sums.len());
            let here = &self.sums[from..(from + SUMS).min(self.sums.len())];
            let mut raw = Raw {
                magic: MAGIC,
                checksum: U32::ZERO,
                volume: volume.into_bytes(),
                region: region.into(),
                // OK to truncate: a region has at most 17 of them, and each at most SUMS sums.
                part: (part as u32).into(),
                generation: self.edition.generation.into(),
                number: self.edition.number.into(),
                count: (here.len() as u32).into(),
                reserved: [0; 12],
                sums: [U32::ZERO; SUMS],
            };
            raw.sums.iter_mut().zip(here).for_each(|(to, sum)| *to = (*sum).into());
            raw.checksum = checksum(raw.as_bytes(), 4).into();
            out.extend_from_slice(raw.as_bytes());
        }
        out
    }

    /// What these bytes say of a region of so many blocks; `None` if they are not its record as it
    /// was written, all of it at once.
    pub fn decode(
        bytes: &[u8],
        volume: Uuid,
        region: u32,
        blocks: usize,
    ) -> Option<ChecksumRecord> {
        let mut record: Option<ChecksumRecord> = None;
        for (part, block) in bytes.chunks(BLOCK as usize).enumerate() {
            let raw = Raw::ref_from_bytes(block).ok()?;
            let edition = Edition { generation: raw.generation.get(), number: raw.number.get() };
            let expected = blocks.saturating_sub(part * SUMS).min(SUMS);
            let ours = raw.magic == MAGIC
                && raw.volume == volume.into_bytes()
                && raw.region.get() == region
                && raw.part.get() as usize == part
                && raw.count.get() as usize == expected
                && raw.checksum.get() == checksum(block, 4);
            if !ours {
                return None;
            }
            let record = record.get_or_insert_with(|| ChecksumRecord { edition, sums: Vec::new() });
            if record.edition != edition {
                return None;
            }
            record.sums.extend(raw.sums[..expected].iter().map(|sum| sum.get()));
        }
        record.filter(|record| record.sums.len() == blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: Uuid = Uuid::from_bytes([7; 16]);

    fn record(blocks: u32) -> ChecksumRecord {
        let edition = Edition { generation: 5, number: 9 };
        ChecksumRecord { edition, sums: (0..blocks).map(|n| n * 77).collect() }
    }

    #[test]
    fn a_record_comes_back_and_only_as_it_was_written() {
        for blocks in [16, 256, 1008, 1009, 16384] {
            let bytes = u64::from(blocks) * BLOCK;
            let written = record(blocks).encode(VOLUME, 3, bytes);
            let count = blocks as usize;
            assert_eq!(written.len() as u64, blocks_for(bytes) * BLOCK);
            assert_eq!(ChecksumRecord::decode(&written, VOLUME, 3, count), Some(record(blocks)));
            assert_eq!(ChecksumRecord::decode(&written, VOLUME, 4, count), None);
            assert_eq!(ChecksumRecord::decode(&written, Uuid::nil(), 3, count), None);
            assert_eq!(ChecksumRecord::decode(&written, VOLUME, 3, count - 1), None);
            for at in [0, 40, 70, written.len() - 1] {
                let mut bad = written.clone();
                bad[at] ^= 1;
                assert_eq!(ChecksumRecord::decode(&bad, VOLUME, 3, count), None, "byte {at}");
            }
        }
        assert_eq!(ChecksumRecord::decode(&[0; 4096], VOLUME, 3, 16), None);
        assert_eq!(ChecksumRecord::decode(&[], VOLUME, 3, 16), None);
    }

    #[test]
    fn parts_of_two_editions_are_no_record() {
        let bytes = 2048 * BLOCK;
        let mut written = record(2048).encode(VOLUME, 3, bytes);
        let later =
            ChecksumRecord { edition: Edition { generation: 5, number: 10 }, ..record(2048) };
        written[..4096].copy_from_slice(&later.encode(VOLUME, 3, bytes)[..4096]);
        assert_eq!(ChecksumRecord::decode(&written, VOLUME, 3, 2048), None);
    }

    #[test]
    fn records_lie_one_after_the_other_before_the_data() {
        let (at, len) = record_at(2, 1 << 20, 5);
        assert_eq!((at, len), (8192 + 2 * 8192 + 5 * 4096, 4096));
        assert_eq!(record_at(2, 64 << 20, 1).1, 17 * 4096);
        assert_eq!(room(2, 8192 + 2 * 8192 + 10 * 4096 + 17, 1 << 20), 10);
        assert_eq!(room(2, 0, 1 << 20), 0);
    }
}
