//! A commit block: the end of a transaction (kernel: `struct commit_header`).

use zerocopy::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::Layout;
use super::{BlockType, Header};
use crate::checksum::crc32c;
use crate::{Checksums, Tid};

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    /// `h_chksum_type`
    checksum_type: u8,
    /// `h_chksum_size`
    checksum_size: u8,
    padding: [u8; 2],
    /// `h_chksum`; only the first is used.
    checksum: [U32; 8],
    /// `h_commit_sec`
    seconds: U64,
    /// `h_commit_nsec`
    nanoseconds: U32,
}

const _: () = {
    assert!(size_of::<Raw>() == 60);
    assert!(std::mem::offset_of!(Raw, checksum) == 16);
    assert!(std::mem::offset_of!(Raw, seconds) == 48);
};

/// `JBD2_CRC32_CHKSUM` and its size.
const V1_TYPE: (u8, u8) = (1, 4);
/// What a device never tears, at least if it is a disk.
const SECTOR: usize = 512;

/// Encodes a commit block. `unix_ns` is the time of the commit; `v1_sum` what checksum v1 sums:
/// the transaction's descriptor and logged blocks.
pub(crate) fn encode(layout: &Layout, tid: Tid, unix_ns: u64, v1_sum: u32) -> Vec<u8> {
    let mut raw = <Raw as zerocopy::FromZeros>::new_zeroed();
    raw.header = Header::new(BlockType::Commit, tid);
    raw.seconds = U64::new(unix_ns / 1_000_000_000);
    raw.nanoseconds = U32::new((unix_ns % 1_000_000_000) as u32);
    if layout.checksums == Checksums::V1 {
        (raw.checksum_type, raw.checksum_size) = V1_TYPE;
        raw.checksum[0] = U32::new(v1_sum);
    }
    let mut block = vec![0; layout.block_size];
    block[..size_of::<Raw>()].copy_from_slice(raw.as_bytes());
    if layout.has_block_checksums() {
        raw.checksum[0] = U32::new(layout.control_checksum(&block));
        block[..size_of::<Raw>()].copy_from_slice(raw.as_bytes());
    }
    block
}

/// What the checksum of a commit block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The block is as it was written, or has no checksum.
    Good,
    /// Its first sector is as it was written; the rest, which holds nothing, is not: the write
    /// was torn. The commit happened.
    Torn,
    /// It is not as it was written; or, for v1, the transaction's blocks are not.
    Bad,
}

/// A commit block that was read.
pub(crate) struct CommitBlock {
    /// Whole seconds of the commit time: what the kernel compares.
    pub seconds: u64,
    pub verdict: Verdict,
}

/// Reads a commit block; `v1_sum` is the sum of the transaction's blocks as read.
pub(crate) fn decode(layout: &Layout, block: &[u8], v1_sum: u32) -> CommitBlock {
    // OK to unwrap: blocks are at least 1024 bytes.
    let (raw, _) = Raw::read_from_prefix(block).unwrap();
    let seconds = raw.seconds.get();
    let found = raw.checksum[0].get();
    let good = |yes| if yes { Verdict::Good } else { Verdict::Bad };
    let verdict = match layout.checksums {
        Checksums::None => Verdict::Good,
        Checksums::V1 => {
            let kind = (raw.checksum_type, raw.checksum_size);
            // A kernel without checksums left them zero in a journal that has the feature.
            good((kind == V1_TYPE && found == v1_sum) || (kind == (0, 0) && found == 0))
        }
        Checksums::V2 | Checksums::V3 => verify(layout, block, found),
    };
    CommitBlock { seconds, verdict }
}

fn verify(layout: &Layout, block: &[u8], found: u32) -> Verdict {
    let mut first: [u8; SECTOR] = [0; SECTOR];
    first.copy_from_slice(&block[..SECTOR]);
    first[16..20].fill(0);
    let head = crc32c(layout.seed, &first);
    if crc32c(head, &block[SECTOR..]) == found {
        return Verdict::Good;
    }
    let zeros = vec![0; block.len() - SECTOR];
    if crc32c(head, &zeros) == found { Verdict::Torn } else { Verdict::Bad }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_every_version() {
        for checksums in [Checksums::None, Checksums::V1, Checksums::V2, Checksums::V3] {
            let layout =
                Layout { block_size: 4096, checksums, wide: true, async_commit: false, seed: 11 };
            let mut block = encode(&layout, Tid(9), 1_700_000_000_000_000_001, 0xabcd);
            let read = decode(&layout, &block, 0xabcd);
            assert_eq!((read.seconds, read.verdict), (1_700_000_000, Verdict::Good));
            block[2000] = 1;
            let torn = decode(&layout, &block, 0xabcd).verdict;
            assert_eq!(torn == Verdict::Torn, layout.has_block_checksums());
            block[50] ^= 1;
            let bad = decode(&layout, &block, 0xabce).verdict;
            assert_eq!(bad == Verdict::Bad, checksums != Checksums::None);
        }
    }
}
