//! Fast commits: a row of tags in the blocks of the log's last part (kernel:
//! `fs/ext4/fast_commit.h`). Little-endian, unlike the rest of the journal. A tag has a head of
//! its number and the length of its value; it never crosses a block's end.
//!
//! The journal knows three of them: [`HEAD`], [`PAD`] and [`TAIL`]. What the others mean is the
//! file system's business.

/// Number and length of a tag: bytes before its value.
pub(crate) const TAG_HEAD_BYTES: usize = 4;
/// `EXT4_FC_TAG_PAD`: the rest of a block is not used.
pub(crate) const PAD: u16 = 7;
/// `EXT4_FC_TAG_TAIL`: the end of a fast commit, its transaction and its checksum.
pub(crate) const TAIL: u16 = 8;
/// `EXT4_FC_TAG_HEAD`: before the first fast commit of a transaction; features, transaction.
pub(crate) const HEAD: u16 = 9;
/// Bytes of the value of [`HEAD`]; and of [`TAIL`] those that mean something.
pub(crate) const ENDS_BYTES: usize = 8;

/// One tag where it stands in its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawTag {
    pub tag: u16,
    /// Where its head begins.
    pub at: usize,
    /// Where its value ends.
    pub end: usize,
}

impl RawTag {
    /// Where its value begins.
    pub fn value_at(&self) -> usize {
        self.at + TAG_HEAD_BYTES
    }
}

/// The tag at byte `at` of a block; `None` if none can be there: too near the end, no known
/// number, a value that would not fit.
pub(crate) fn tag_at(block: &[u8], at: usize) -> Option<RawTag> {
    let head = block.get(at..at.checked_add(TAG_HEAD_BYTES)?)?;
    let tag = u16::from_le_bytes([head[0], head[1]]);
    let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let end = at + TAG_HEAD_BYTES + len;
    let fits = end <= block.len();
    let long_enough = match tag {
        1..=PAD => true,
        TAIL => len >= ENDS_BYTES,
        HEAD => len == ENDS_BYTES,
        _ => false,
    };
    (fits && long_enough).then_some(RawTag { tag, at, end })
}

/// The two words of a [`HEAD`] or [`TAIL`].
pub(crate) fn words(value: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| value[at + i]));
    (word(0), word(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_tag_is_not_taken_for_one() {
        let mut block = vec![0; 32];
        assert_eq!(tag_at(&block, 0), None);
        block[..4].copy_from_slice(&[1, 0, 28, 0]);
        assert_eq!(tag_at(&block, 0), Some(RawTag { tag: 1, at: 0, end: 32 }));
        block[2] = 29;
        assert_eq!(tag_at(&block, 0), None, "beyond the block");
        assert_eq!(tag_at(&block, 29), None, "no room for its head");
        assert_eq!(tag_at(&block, usize::MAX), None);
        block[..4].copy_from_slice(&[8, 0, 7, 0]);
        assert_eq!(tag_at(&block, 0), None, "a tail without its checksum");
        block[0] = 10;
        assert_eq!(tag_at(&block, 0), None, "no such tag");
    }
}
