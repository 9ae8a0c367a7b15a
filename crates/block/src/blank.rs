//! Whether a device holds anything: what holds nothing may be overwritten without a question.

use std::ops::Range;

use crate::{BlockDevice, Result, is_zero};

/// What is read at a time.
const PIECE: u64 = 1 << 20;
/// A device of at most so many bytes is read whole.
const WHOLE_MAX: u64 = 1 << 30;
/// Of a larger one so much is read at each end, where most formats have something ...
const ENDS: u64 = 64 << 20;
/// ... and so many pieces, at the same distance from each other: a disk takes seconds for them.
const PIECES: u64 = 1024;

/// The first byte of a range of whole blocks that is not zero.
///
/// # Errors
/// The device's.
pub fn first_data_in<D: BlockDevice + ?Sized>(
    device: &D,
    range: Range<u64>,
) -> Result<Option<u64>> {
    let mut at = range.start;
    while at < range.end {
        let bytes = device.read(at, PIECE.min(range.end - at))?;
        if !is_zero(&bytes) {
            return Ok(bytes.iter().position(|byte| *byte != 0).map(|n| at + n as u64));
        }
        at += bytes.len() as u64;
    }
    Ok(None)
}

/// What [`BlockDevice::first_data`] does where nothing is known of holes.
///
/// # Errors
/// The device's.
pub fn first_data<D: BlockDevice + ?Sized>(device: &D) -> Result<Option<u64>> {
    looked_at(device.info().size)
        .find_map(|range| first_data_in(device, range).transpose())
        .transpose()
}

/// Where a device of this size is looked at.
fn looked_at(size: u64) -> impl Iterator<Item = Range<u64>> {
    let is_whole = size <= WHOLE_MAX;
    let start = if is_whole { 0..size } else { 0..ENDS };
    let middle = (0..PIECES).map(move |n| {
        // OK to cast: it is below `size`.
        let at = (u128::from(size) * u128::from(n) / u128::from(PIECES)) as u64 / PIECE * PIECE;
        at..at + PIECE
    });
    let end = (size - ENDS.min(size)) / PIECE * PIECE..size;
    let others = middle.skip(1).chain(std::iter::once(end));
    std::iter::once(start).chain(others.filter(move |_| !is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_device_is_looked_at_whole_and_a_large_one_in_many_places() {
        assert!(looked_at(WHOLE_MAX).eq(std::iter::once(0..WHOLE_MAX)));
        let size = (16 << 40) + 4096;
        let ranges: Vec<Range<u64>> = looked_at(size).collect();
        assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, size));
        assert!(ranges.iter().all(|range| range.start < range.end && range.end <= size));
        let apart = ranges.windows(2).all(|two| two[1].start - two[0].start <= (16 << 30) + PIECE);
        assert!(apart && ranges.len() == 1 + PIECES as usize);
    }
}
