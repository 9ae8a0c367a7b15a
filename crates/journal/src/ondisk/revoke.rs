//! A revoke block: blocks whose older images in the log must not be replayed (kernel:
//! `jbd2_journal_revoke_header_t`).

use zerocopy::IntoBytes;
use zerocopy::big_endian::U32;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use super::layout::Layout;
use super::{BlockType, Header};
use crate::{FsBlock, JournalError, Result, Tid};

#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RevokeHead {
    header: Header,
    /// `r_count`: bytes used in the block, this head included.
    count: U32,
}

pub(crate) const HEAD_BYTES: usize = size_of::<RevokeHead>();
const _: () = assert!(HEAD_BYTES == 16);

/// Encodes a revoke block of at most [`Layout::revokes_per_block`] entries.
pub(crate) fn encode(layout: &Layout, tid: Tid, blocks: &[FsBlock]) -> Vec<u8> {
    assert!(blocks.len() <= layout.revokes_per_block(), "too many revokes");
    let mut block = vec![0; layout.block_size];
    let bytes = HEAD_BYTES + blocks.len() * layout.revoke_bytes();
    let header = Header::new(BlockType::Revoke, tid);
    let head = RevokeHead { header, count: U32::new(bytes as u32) };
    block[..HEAD_BYTES].copy_from_slice(head.as_bytes());
    for (slot, b) in block[HEAD_BYTES..bytes].chunks_exact_mut(layout.revoke_bytes()).zip(blocks) {
        slot.copy_from_slice(&b.0.to_be_bytes()[8 - layout.revoke_bytes()..]);
    }
    layout.set_tail(&mut block);
    block
}

/// The entries of a revoke block.
pub(crate) fn entries(layout: &Layout, block: &[u8]) -> Result<Vec<FsBlock>> {
    // OK to unwrap: blocks are at least 1024 bytes.
    let (head, _) = RevokeHead::read_from_prefix(block).unwrap();
    let count = head.count.get() as usize;
    if count < HEAD_BYTES || count > block.len() - layout.tail_bytes() {
        let place = format!("revoke block of transaction {}", head.header.tid());
        return Err(JournalError::corrupt(format!("{count} bytes in use"), place));
    }
    let number = |bytes: &[u8]| FsBlock(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)));
    Ok(block[HEAD_BYTES..count].chunks_exact(layout.revoke_bytes()).map(number).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checksums;

    #[test]
    fn revokes_round_trip() {
        for wide in [false, true] {
            let checksums = Checksums::V3;
            let layout = Layout { block_size: 1024, checksums, wide, async_commit: false, seed: 3 };
            let top = if wide { 1 << 40 } else { 0 };
            let blocks: Vec<_> =
                (0..layout.revokes_per_block() as u64).map(|i| FsBlock(top + i)).collect();
            let mut block = encode(&layout, Tid(4), &blocks);
            assert!(layout.tail_matches(&block));
            assert_eq!(entries(&layout, &block).unwrap(), blocks);
            block[12..16].copy_from_slice(&2000u32.to_be_bytes());
            assert!(entries(&layout, &block).is_err());
            block[12..16].copy_from_slice(&3u32.to_be_bytes());
            assert!(entries(&layout, &block).is_err());
        }
    }
}
