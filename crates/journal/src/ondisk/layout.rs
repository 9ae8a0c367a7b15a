//! What the superblock's features mean for the other blocks: sizes, seeds, and how much of the
//! log a transaction takes.

use super::Header;
use super::superblock::JournalSuperblock;
use crate::checksum::crc32c;
use crate::{Checksums, JournalFeatures};

/// Sizes and seeds that follow from a superblock. Sizes are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Layout {
    pub block_size: usize,
    pub checksums: Checksums,
    /// Block numbers have 64 bits.
    pub wide: bool,
    pub async_commit: bool,
    /// Seed of block checksums v2 and v3.
    pub seed: u32,
}

/// A UUID follows the first tag of a descriptor block, and any that lacks `SAME_UUID`.
pub(crate) const TAG_UUID_BYTES: usize = 16;

impl Layout {
    pub(crate) fn of(sb: &JournalSuperblock) -> Self {
        let f = sb.features();
        Layout {
            block_size: sb.block_size() as usize,
            checksums: f.checksums(),
            wide: f.has_incompat(JournalFeatures::WIDE),
            async_commit: f.has_incompat(JournalFeatures::ASYNC_COMMIT),
            seed: sb.checksum_seed(),
        }
    }

    /// Whether control blocks carry a CRC-32C and tags one of their block.
    pub(crate) fn has_block_checksums(&self) -> bool {
        matches!(self.checksums, Checksums::V2 | Checksums::V3)
    }

    /// Bytes of a tag without its UUID (kernel: `journal_tag_bytes`).
    pub(crate) fn tag_bytes(&self) -> usize {
        match (self.checksums, self.wide) {
            (Checksums::V3, _) => 16,
            (Checksums::V2, wide) => 10 + if wide { 4 } else { 0 },
            (_, wide) => 8 + if wide { 4 } else { 0 },
        }
    }

    /// Bytes of the checksum tail of descriptor and revoke blocks.
    pub(crate) fn tail_bytes(&self) -> usize {
        if self.has_block_checksums() { 4 } else { 0 }
    }

    /// Bytes of a block number in a revoke block.
    pub(crate) fn revoke_bytes(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Tags we put in a descriptor block: as many as the kernel does.
    pub(crate) fn tags_per_descriptor(&self) -> usize {
        let tag = self.tag_bytes();
        // The kernel closes a block when a tag with a UUID and the tail would no longer fit.
        let room = self.block_size - Header::BYTES - self.tail_bytes() - TAG_UUID_BYTES;
        (room - TAG_UUID_BYTES) / tag
    }

    /// Block numbers in a revoke block.
    pub(crate) fn revokes_per_block(&self) -> usize {
        (self.block_size - super::revoke::HEAD_BYTES - self.tail_bytes()) / self.revoke_bytes()
    }

    /// Log blocks that a transaction with so many block images and revokes takes.
    pub(crate) fn log_blocks(&self, images: usize, revokes: usize) -> usize {
        images
            + images.div_ceil(self.tags_per_descriptor())
            + revokes.div_ceil(self.revokes_per_block())
            + 1
    }

    /// Sums a control block whose checksum field is zero.
    pub(crate) fn control_checksum(&self, block: &[u8]) -> u32 {
        crc32c(self.seed, block)
    }

    /// Sets the checksum tail of a descriptor or revoke block, if the features want one.
    pub(crate) fn set_tail(&self, block: &mut [u8]) {
        if self.has_block_checksums() {
            let at = block.len() - 4;
            block[at..].fill(0);
            let sum = self.control_checksum(block);
            block[at..].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// Whether the checksum tail of a descriptor or revoke block matches.
    pub(crate) fn tail_matches(&self, block: &[u8]) -> bool {
        if !self.has_block_checksums() {
            return true;
        }
        let (body, tail) = block.split_at(block.len() - 4);
        let sum = crc32c(crc32c(self.seed, body), &[0; 4]);
        tail == sum.to_be_bytes()
    }

    /// Checksum of a logged block (as logged: escaped) in transaction `sequence`.
    pub(crate) fn image_checksum(&self, sequence: u32, block: &[u8]) -> u32 {
        crc32c(crc32c(self.seed, &sequence.to_be_bytes()), block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(checksums: Checksums, wide: bool, block_size: usize) -> Layout {
        Layout { block_size, checksums, wide, async_commit: false, seed: 1 }
    }

    #[test]
    fn tag_sizes() {
        let sizes = [Checksums::None, Checksums::V1, Checksums::V2, Checksums::V3]
            .map(|c| (layout(c, false, 1024).tag_bytes(), layout(c, true, 1024).tag_bytes()));
        assert_eq!(sizes, [(8, 12), (8, 12), (10, 14), (16, 16)]);
    }

    #[test]
    fn a_descriptor_takes_as_many_tags_as_the_kernels() {
        for c in [Checksums::None, Checksums::V2, Checksums::V3] {
            for wide in [false, true] {
                for bs in [1024, 2048, 4096] {
                    let l = layout(c, wide, bs);
                    let (tag, mut tags) = (l.tag_bytes(), 0);
                    let mut space = bs - 12;
                    loop {
                        space -= tag + if tags == 0 { 16 } else { 0 };
                        tags += 1;
                        if space < tag + 16 + l.tail_bytes() {
                            break;
                        }
                    }
                    assert_eq!(l.tags_per_descriptor(), tags, "{l:?}");
                }
            }
        }
    }

    #[test]
    fn a_tail_matches_until_a_byte_changes() {
        let l = layout(Checksums::V3, true, 1024);
        let mut block = vec![7; 1024];
        l.set_tail(&mut block);
        assert!(l.tail_matches(&block));
        block[500] ^= 1;
        assert!(!l.tail_matches(&block));
    }
}
