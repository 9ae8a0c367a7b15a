//! A descriptor block: the tags of the logged blocks that follow it.

use zerocopy::IntoBytes;

use super::layout::{Layout, TAG_UUID_BYTES};
use super::tag::{LAST_TAG, SAME_UUID, Tag};
use super::{BlockType, Header};
use crate::Tid;

/// Encodes a descriptor block; sets `SAME_UUID` and `LAST_TAG` where they belong. `tags` has
/// between one and [`Layout::tags_per_descriptor`] entries.
pub(crate) fn encode(layout: &Layout, tid: Tid, uuid: &[u8; 16], tags: &[Tag]) -> Vec<u8> {
    assert!(!tags.is_empty() && tags.len() <= layout.tags_per_descriptor(), "too many tags");
    let mut block = vec![0; layout.block_size];
    block[..Header::BYTES].copy_from_slice(Header::new(BlockType::Descriptor, tid).as_bytes());
    let mut at = Header::BYTES;
    for (i, tag) in tags.iter().enumerate() {
        let mut tag = *tag;
        tag.flags |= if i == 0 { 0 } else { SAME_UUID };
        tag.flags |= if i + 1 == tags.len() { LAST_TAG } else { 0 };
        tag.encode(layout, &mut block[at..at + layout.tag_bytes()]);
        at += layout.tag_bytes();
        if i == 0 {
            block[at..at + TAG_UUID_BYTES].copy_from_slice(uuid);
            at += TAG_UUID_BYTES;
        }
    }
    layout.set_tail(&mut block);
    block
}

/// The tags of a descriptor block, whatever its bytes: stops at `LAST_TAG` or at the end.
pub(crate) fn tags(layout: &Layout, block: &[u8]) -> Vec<Tag> {
    let end = block.len() - layout.tail_bytes();
    let (mut at, mut found) = (Header::BYTES, Vec::new());
    while at + layout.tag_bytes() <= end {
        let tag = Tag::decode(layout, &block[at..at + layout.tag_bytes()]);
        found.push(tag);
        at += layout.tag_bytes();
        if tag.flags & SAME_UUID == 0 {
            at += TAG_UUID_BYTES;
        }
        if tag.flags & LAST_TAG != 0 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checksums, FsBlock};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn full_and_partial_blocks_round_trip(
            version in 0..4usize, wide: bool, fill in 1..=100usize, seed: u32,
        ) {
            let checksums =
                [Checksums::None, Checksums::V1, Checksums::V2, Checksums::V3][version];
            let layout = Layout { block_size: 1024, checksums, wide, async_commit: false, seed };
            let n = (layout.tags_per_descriptor() * fill / 100).max(1);
            let sent: Vec<Tag> = (0..n as u64)
                .map(|i| Tag { block: FsBlock(i * 3 + 1), flags: (i % 2) as u16, checksum: 0 })
                .collect();
            let block = encode(&layout, Tid(77), &[5; 16], &sent);
            prop_assert!(layout.tail_matches(&block));
            let got = tags(&layout, &block);
            prop_assert_eq!(got.len(), n);
            for (a, b) in sent.iter().zip(&got) {
                prop_assert_eq!(a.block, b.block);
                prop_assert_eq!(a.flags & 1, b.flags & 1);
            }
        }

        #[test]
        fn any_bytes_are_read_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 1024), version in 0..4usize, wide: bool,
        ) {
            let checksums =
                [Checksums::None, Checksums::V1, Checksums::V2, Checksums::V3][version];
            let layout = Layout { block_size: 1024, checksums, wide, async_commit: false, seed: 0 };
            prop_assert!(tags(&layout, &bytes).len() <= 1024 / 8);
        }
    }
}
