//! The bytes of a member: what lies where.
//!
//! ```text
//! 0                 nothing of ours, left alone
//! 4096              label, first copy
//! 8192              region map: two slots of 4096 bytes a block, with spare room to grow
//! after it          checksums of mirrors that have them: a record for each region, with spare room
//! data_start        the leg's or the component's data
//! device - 4096     label, second copy
//! ```
//!
//! All numbers are little-endian. Every structure has a CRC-32C over all of its bytes, taken with
//! the field of the checksum as zero.

pub mod checksums;
pub mod label;
pub mod map;

use steadfast_runtime::random_u64;
use uuid::Uuid;

/// Bytes of a label and of a slot of the map; a whole number of blocks of every device.
pub const BLOCK: u64 = 4096;
/// Where the first copy of the label is.
pub const LABEL_AT: u64 = BLOCK;
/// Where the region map begins.
pub const MAP_AT: u64 = 2 * BLOCK;
/// Data begins at a multiple of this, on large devices.
const ALIGN_LARGE: u64 = 1 << 20;
/// The same on devices below 64 MiB.
const ALIGN_SMALL: u64 = 64 << 10;
/// Room for a volume that has grown to so many times its first size.
const GROWTH: u64 = 4;
/// The same for checksums, which need more room.
const GROWTH_OF_CHECKSUMS: u64 = 2;

/// The smallest region, in bytes.
pub const REGION_MIN: u32 = 4096;
/// The largest region, in bytes.
pub const REGION_MAX: u32 = 64 << 20;
/// Most regions of a volume: bounds what a label can make a program allocate.
pub const REGIONS_MAX: u64 = 1 << 24;

/// A UUID from the world's own random numbers, so that a simulated run can be repeated.
pub(crate) fn random_uuid() -> Uuid {
    let number = u128::from(random_u64()) << 64 | u128::from(random_u64());
    uuid::Builder::from_random_bytes(number.to_be_bytes()).into_uuid()
}

/// A range widened to whole blocks.
pub(crate) fn whole_blocks(offset: u64, len: u64) -> (u64, u64) {
    let start = offset - offset % BLOCK;
    (start, (offset + len).next_multiple_of(BLOCK) - start)
}

/// The region size for a volume of `size` bytes: a 16384th of it, from 64 KiB to 1 MiB. Small
/// regions cost more writes of the map, large ones more zeros before the first write of each. With
/// checksums from 256 KiB.
pub(crate) fn default_region(size: u64, checksums: bool) -> u32 {
    let least = if checksums { checksums::REGION_DEFAULT_MIN.into() } else { 64 << 10 };
    let mut bytes = (size / 16384).next_power_of_two().clamp(least, 1 << 20);
    while size.div_ceil(bytes) * GROWTH > REGIONS_MAX && bytes < u64::from(REGION_MAX) {
        bytes *= 2;
    }
    // OK to truncate: at most REGION_MAX.
    bytes as u32
}

/// How a member is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Blocks of the region map that fit before the data; 0 for members without a map.
    pub map_blocks: u32,
    /// Where data begins, in bytes.
    pub data_start: u64,
}

impl Layout {
    /// For a mirror's leg on a device of `device_bytes`, with this region size, and with room for
    /// checksums or without.
    pub fn of_leg(device_bytes: u64, region_bytes: u32, checksums: bool) -> Layout {
        let regions = device_bytes.div_ceil(u64::from(region_bytes));
        // OK to truncate: bounded by the next line's minimum.
        let blocks = (regions * GROWTH).div_ceil(map::RECORDS as u64);
        let blocks = blocks.min(REGIONS_MAX.div_ceil(map::RECORDS as u64)) as u32;
        let area = match checksums {
            true => regions * GROWTH_OF_CHECKSUMS * checksums::blocks_for(region_bytes.into()),
            false => 0,
        };
        let end = checksums::area_at(blocks) + area * BLOCK;
        Layout { map_blocks: blocks, data_start: end.next_multiple_of(align(device_bytes)) }
    }

    /// For a component of a concat or a stripe.
    pub fn of_component(device_bytes: u64) -> Layout {
        Layout { map_blocks: 0, data_start: MAP_AT.next_multiple_of(align(device_bytes)) }
    }

    /// Bytes of data that a device of this size holds.
    pub fn room(&self, device_bytes: u64) -> u64 {
        let room = device_bytes.saturating_sub(self.data_start + BLOCK);
        room - room % BLOCK
    }
}

fn align(device_bytes: u64) -> u64 {
    if device_bytes >= 64 << 20 { ALIGN_LARGE } else { ALIGN_SMALL }
}

/// Where the second copy of the label is, on a device of this size.
pub fn second_label_at(device_bytes: u64) -> u64 {
    (device_bytes - device_bytes % BLOCK).saturating_sub(BLOCK)
}

/// CRC-32C of `bytes` with the four bytes at `at` as zeros.
pub(crate) fn checksum(bytes: &[u8], at: usize) -> u32 {
    let head = crc32c::crc32c(&bytes[..at]);
    let zeros = crc32c::crc32c_append(head, &[0; 4]);
    crc32c::crc32c_append(zeros, &bytes[at + 4..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_of_every_size_fits_before_the_data() {
        for (shift, sums) in (17..46).flat_map(|shift| [(shift, false), (shift, true)]) {
            let bytes = 1u64 << shift;
            let region = default_region(bytes, sums);
            let layout = Layout::of_leg(bytes, region, sums);
            assert!(layout.data_start >= MAP_AT + 2 * BLOCK * u64::from(layout.map_blocks));
            assert!(layout.data_start < bytes / 2 + (128 << 10), "{bytes}: {layout:?}");
            let regions = layout.room(bytes).div_ceil(u64::from(region));
            let records = u64::from(layout.map_blocks) * map::RECORDS as u64;
            assert!(regions <= records && regions <= REGIONS_MAX, "{bytes}");
            let room = checksums::room(layout.map_blocks, layout.data_start, region.into());
            assert!(!sums || regions <= room, "{bytes}: {layout:?}");
        }
    }
}
