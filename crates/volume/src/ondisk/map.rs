//! A block of the region map: the state of each region of a mirror.
//!
//! A block has two slots on every durable leg. A change is written to the slot with the older
//! state, so that a torn write leaves the previous state. The highest sequence number counts.

use uuid::Uuid;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{BLOCK, MAP_AT, checksum};

/// "SFRM"
const MAGIC: [u8; 4] = *b"SFRM";
/// Regions that a block covers.
pub const RECORDS: usize = 2016;
/// No block has a higher sequence number: it is not written then. Maps do not come so far.
pub const SEQUENCE_MAX: u64 = i64::MAX as u64;

/// What is known of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegionState {
    /// Never written, or discarded: reads as zeros, the legs hold anything.
    Unwritten = 0,
    /// Its first write is in flight and not flushed: after a power cut it is unwritten again.
    Filling = 1,
    /// A write may be in flight: after a power cut the legs may differ.
    Dirty = 2,
    /// All legs that are not stale hold the same.
    Clean = 3,
}

/// What the map holds of a region: its state, and which legs lack what others have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The state.
    pub state: RegionState,
    /// Bit `n`: leg `n` does not hold the region's contents.
    pub stale: u8,
    /// The record of its checksums is on every durable leg that holds it. Only of a clean region.
    pub summed: bool,
}

impl Region {
    /// Never written.
    pub const UNWRITTEN: Region = Region { state: RegionState::Unwritten, stale: 0, summed: false };
    /// What is assumed where the map is lost: written, and the legs may differ.
    pub const UNKNOWN: Region = Region { state: RegionState::Dirty, stale: 0, summed: false };
    /// Bit of the byte on the disk.
    const SUMMED: u8 = 1 << 2;

    /// As the byte on the disk: state in bits 0 and 1, whether it has checksums in bit 2, stale
    /// legs in bits 4 to 7.
    pub fn to_byte(self) -> u8 {
        let summed = if self.summed { Self::SUMMED } else { 0 };
        self.state as u8 | summed | self.stale << 4
    }

    /// From the byte on the disk; every byte means something.
    pub fn from_byte(byte: u8) -> Region {
        let state = match byte & 3 {
            0 => RegionState::Unwritten,
            1 => RegionState::Filling,
            2 => RegionState::Dirty,
            _ => RegionState::Clean,
        };
        let summed = state == RegionState::Clean && byte & Self::SUMMED != 0;
        Region { state, stale: byte >> 4, summed }
    }
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    magic: [u8; 4],
    checksum: U32,
    sequence: U64,
    volume: [u8; 16],
    /// Number of this block.
    block: U32,
    reserved: [u8; 28],
    /// One byte a region; see [`Region::to_byte`].
    states: [u8; RECORDS],
    /// How hot each region is: not promised, only recorded.
    heat: [u8; RECORDS],
}

const _: () = {
    assert!(size_of::<Raw>() == BLOCK as usize);
    assert!(std::mem::offset_of!(Raw, checksum) == 4);
    assert!(std::mem::offset_of!(Raw, states) == 64);
    assert!(std::mem::offset_of!(Raw, heat) == 64 + RECORDS);
};

/// A block of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapBlock {
    /// Grows by one with every change.
    pub sequence: u64,
    /// One byte a region.
    pub states: Vec<u8>,
    /// How hot each is.
    pub heat: Vec<u8>,
}

/// What a slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// Nothing but zeros: never written.
    Empty,
    /// A block of this map.
    Valid(MapBlock),
    /// Anything else: a torn or damaged block, which may have been the newest.
    Damaged,
}

impl MapBlock {
    /// The slot's bytes. `states` and `heat` have at most [`RECORDS`] bytes each.
    pub fn encode(&self, volume: Uuid, block: u32) -> Vec<u8> {
        let pad = |of: &[u8]| {
            let mut out = [0; RECORDS];
            out[..of.len()].copy_from_slice(of);
            out
        };
        let mut raw = Raw {
            magic: MAGIC,
            checksum: U32::ZERO,
            sequence: self.sequence.into(),
            volume: volume.into_bytes(),
            block: block.into(),
            reserved: [0; 28],
            states: pad(&self.states),
            heat: pad(&self.heat),
        };
        raw.checksum = checksum(raw.as_bytes(), 4).into();
        raw.as_bytes().to_vec()
    }

    /// What the bytes of a slot (4096) are, as block `block` of the map of `volume`.
    pub fn decode(bytes: &[u8], volume: Uuid, block: u32) -> Slot {
        let Ok(raw) = Raw::ref_from_bytes(bytes) else { return Slot::Damaged };
        if bytes.iter().all(|b| *b == 0) {
            return Slot::Empty;
        }
        let ours = raw.magic == MAGIC
            && raw.volume == volume.into_bytes()
            && raw.block.get() == block
            && raw.sequence.get() <= SEQUENCE_MAX
            && raw.checksum.get() == checksum(bytes, 4);
        if !ours {
            return Slot::Damaged;
        }
        let (states, heat) = (raw.states.to_vec(), raw.heat.to_vec());
        Slot::Valid(MapBlock { sequence: raw.sequence.get(), states, heat })
    }
}

/// Where the slot for a change with this sequence number is, in bytes.
pub fn slot_at(block: u32, sequence: u64) -> u64 {
    MAP_AT + (2 * u64::from(block) + (sequence & 1)) * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_region_comes_back() {
        for byte in 0..=255u8 {
            let clean = byte & 3 == RegionState::Clean as u8;
            let known = if clean { 0xf7 } else { 0xf3 };
            assert_eq!(Region::from_byte(byte).to_byte(), byte & known);
        }
    }

    #[test]
    fn a_slot_is_believed_only_as_it_was_written() {
        let volume = Uuid::from_bytes([7; 16]);
        let block = MapBlock { sequence: 9, states: vec![3; RECORDS], heat: vec![1; RECORDS] };
        let bytes = block.encode(volume, 5);
        assert_eq!(MapBlock::decode(&bytes, volume, 5), Slot::Valid(block));
        assert_eq!(MapBlock::decode(&bytes, volume, 6), Slot::Damaged);
        assert_eq!(MapBlock::decode(&bytes, Uuid::nil(), 5), Slot::Damaged);
        assert_eq!(MapBlock::decode(&vec![0; 4096], volume, 5), Slot::Empty);
        for at in [0, 9, 70, 4095] {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert_eq!(MapBlock::decode(&bad, volume, 5), Slot::Damaged, "byte {at}");
        }
        assert_ne!(slot_at(5, 8), slot_at(5, 9));
    }
}
