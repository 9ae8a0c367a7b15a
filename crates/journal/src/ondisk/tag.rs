//! A tag: one logged block in a descriptor block (kernel: `journal_block_tag_t`, and
//! `journal_block_tag3_t` for checksum v3).

use super::layout::Layout;
use crate::{Checksums, FsBlock};

/// The block's first word was the magic number and is zeroed in the log.
pub(crate) const ESCAPE: u16 = 1;
/// No UUID follows: it is that of the tag before.
pub(crate) const SAME_UUID: u16 = 2;
/// The last tag of its descriptor block.
pub(crate) const LAST_TAG: u16 = 8;

/// One logged block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag {
    /// Its home: `t_blocknr`, `t_blocknr_high`.
    pub block: FsBlock,
    /// `t_flags`
    pub flags: u16,
    /// `t_checksum`: 32 bits for v3, 16 for v2, else 0.
    pub checksum: u32,
}

impl Tag {
    /// Writes the tag, without a UUID, to the `layout.tag_bytes()` bytes of `out`.
    pub(crate) fn encode(&self, layout: &Layout, out: &mut [u8]) {
        let [high, low] = [(self.block.0 >> 32) as u32, self.block.0 as u32].map(u32::to_be_bytes);
        out[..4].copy_from_slice(&low);
        if layout.checksums == Checksums::V3 {
            out[4..8].copy_from_slice(&u32::from(self.flags).to_be_bytes());
            out[8..12].copy_from_slice(&high);
            out[12..16].copy_from_slice(&self.checksum.to_be_bytes());
            return;
        }
        out[4..6].copy_from_slice(&(self.checksum as u16).to_be_bytes());
        out[6..8].copy_from_slice(&self.flags.to_be_bytes());
        if layout.wide {
            out[8..12].copy_from_slice(&high);
        }
    }

    /// Reads a tag from `layout.tag_bytes()` bytes.
    pub(crate) fn decode(layout: &Layout, bytes: &[u8]) -> Tag {
        let word = |at: usize| {
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let high = if layout.wide { u64::from(word(8)) << 32 } else { 0 };
        let block = FsBlock(high | u64::from(word(0)));
        if layout.checksums == Checksums::V3 {
            // All flags are in the lower half of `t_flags`.
            return Tag { block, flags: word(4) as u16, checksum: word(12) };
        }
        Tag { block, flags: word(4) as u16, checksum: word(4) >> 16 }
    }

    /// Whether the logged block has the checksum that the tag names.
    pub(crate) fn matches(&self, layout: &Layout, sequence: u32, block: &[u8]) -> bool {
        match layout.checksums {
            Checksums::V3 => layout.image_checksum(sequence, block) == self.checksum,
            Checksums::V2 => layout.image_checksum(sequence, block) as u16 == self.checksum as u16,
            Checksums::None | Checksums::V1 => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_round_trip_in_every_width() {
        for checksums in [Checksums::None, Checksums::V1, Checksums::V2, Checksums::V3] {
            for wide in [false, true] {
                let layout =
                    Layout { block_size: 1024, checksums, wide, async_commit: false, seed: 9 };
                let block = FsBlock(if wide { 0x12_3456_789a } else { 0x3456_789a });
                let checksum = match checksums {
                    Checksums::V3 => 0xdead_beef,
                    Checksums::V2 => 0xbeef,
                    _ => 0,
                };
                let tag = Tag { block, flags: ESCAPE | LAST_TAG, checksum };
                let mut bytes = vec![0; layout.tag_bytes()];
                tag.encode(&layout, &mut bytes);
                assert_eq!(Tag::decode(&layout, &bytes), tag, "{layout:?}");
            }
        }
    }
}
