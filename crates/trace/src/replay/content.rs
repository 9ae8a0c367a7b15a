//! What a replay writes: bytes that say which file and write they are of.

use bytes::Bytes;
use steadfast_block::pattern::{self, SECTOR};
use steadfast_runtime::is_simulated;

/// Tags of what was there before the first call have this bit, and the file's number below it.
const BEFORE: u64 = 1 << 62;

/// The tag of a write: its number in the trace.
pub(crate) fn of_call(call: u64) -> u64 {
    // No tag is 0.
    call + 1
}

/// The tag of what a file held before the first call.
pub(crate) fn before(file: u64) -> u64 {
    BEFORE | (file & (BEFORE - 1))
}

/// `len` bytes at `offset` of a file, stamped with `tag`. The bytes depend on tag and offset alone,
/// so a write at an odd offset has parts of stamped sectors at its ends.
pub fn bytes(tag: u64, offset: u64, len: u64) -> Bytes {
    let sector = SECTOR as u64;
    let first = offset / sector * sector;
    let whole = (offset + len).next_multiple_of(sector) - first;
    // OK to cast: a call has at most 2 GiB.
    let (skip, len) = ((offset - first) as usize, len as usize);
    if is_simulated() {
        return pattern::bytes(tag, first, whole as usize).slice(skip..skip + len);
    }
    // Each thread would keep what it has made; nobody looks at the memory to know the bytes.
    let mut made = vec![0; whole as usize];
    pattern::fill(tag, first, &mut made);
    Bytes::from(made).slice(skip..skip + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_depend_on_tag_and_offset_alone() {
        let whole = bytes(7, 0, 4096);
        for (offset, len) in [(0, 1), (511, 2), (512, 512), (1000, 3000), (4095, 1), (77, 0)] {
            let part = bytes(7, offset, len);
            assert_eq!(part, whole[offset as usize..(offset + len) as usize], "{offset} {len}");
        }
        assert_ne!(bytes(8, 0, 512), whole[..512]);
        assert_ne!(before(3), before(4));
    }
}
