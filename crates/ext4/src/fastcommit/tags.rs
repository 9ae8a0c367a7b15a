//! The tags of fast commits, decoded. All integers are little-endian.

use bytes::Bytes;
use steadfast_ext4_format::dir::is_dot_name;
use steadfast_ext4_format::ondisk::{Extent, ExtentLeaf, GOOD_OLD_INODE_SIZE, InodeNo, NAME_MAX};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::FastTag;
use zerocopy::FromBytes;

use crate::state::NameChange;

/// `EXT4_FC_TAG_ADD_RANGE`
pub(super) const ADD_RANGE: u16 = 1;
/// `EXT4_FC_TAG_DEL_RANGE`
pub(super) const DEL_RANGE: u16 = 2;
/// `EXT4_FC_TAG_CREAT`
pub(super) const CREATE: u16 = 3;
/// `EXT4_FC_TAG_LINK`
pub(super) const LINK: u16 = 4;
/// `EXT4_FC_TAG_UNLINK`
pub(super) const UNLINK: u16 = 5;
/// `EXT4_FC_TAG_INODE`
pub(super) const INODE: u16 = 6;

/// What a tag says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// These blocks of a file lie here.
    Mapped { no: InodeNo, extent: Extent },
    /// File blocks `[from, to)` are a hole.
    Unmapped { no: InodeNo, from: u64, to: u64 },
    /// A name in the directory `dir`, of the inode `no`.
    Name { what: NameChange, dir: InodeNo, no: InodeNo, name: Bytes },
    /// The inode's bytes, from its start on, as far as they are recorded: 128 or more.
    Inode { no: InodeNo, raw: Bytes },
}

/// Reads a tag. `inode_size` is that of the file system.
///
/// # Errors
/// Corrupt: what the kernel would not have written.
pub(super) fn decode(tag: &FastTag, inode_size: usize) -> Result<Change> {
    let value = &tag.value;
    let bad = |what: &str| {
        let place = format!("fast commit, tag {} of {} bytes", tag.tag, value.len());
        Err(Ext4Error::corrupt(what, place))
    };
    let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| value[at + i]));
    match tag.tag {
        ADD_RANGE if value.len() == 16 => {
            // OK to unwrap: twelve bytes are left.
            let leaf = ExtentLeaf::read_from_bytes(&value[4..]).unwrap();
            let extent = Extent::from(leaf);
            if extent.len == 0 || extent.end() > 1 << 32 {
                return bad("an impossible range of blocks");
            }
            Ok(Change::Mapped { no: InodeNo(word(0)), extent })
        }
        DEL_RANGE if value.len() == 12 => {
            let (from, len) = (u64::from(word(4)), u64::from(word(8)));
            let to = (from + len).min(1 << 32);
            Ok(Change::Unmapped { no: InodeNo(word(0)), from, to })
        }
        CREATE | LINK | UNLINK if value.len() > 8 && value.len() <= 8 + NAME_MAX => {
            let name = value.slice(8..);
            if is_dot_name(&name) || name.iter().any(|b| matches!(b, b'/' | 0)) {
                return bad("an impossible name");
            }
            let what = match tag.tag {
                CREATE => NameChange::Created,
                LINK => NameChange::Linked,
                _ => NameChange::Unlinked,
            };
            Ok(Change::Name { what, dir: InodeNo(word(0)), no: InodeNo(word(4)), name })
        }
        INODE if (GOOD_OLD_INODE_SIZE + 4..=inode_size + 4).contains(&value.len()) => {
            Ok(Change::Inode { no: InodeNo(word(0)), raw: value.slice(4..) })
        }
        ADD_RANGE..=INODE => bad("an impossible length"),
        _ => bad("an unknown tag"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(tag: u16, value: &[u8]) -> FastTag {
        FastTag { tag, value: Bytes::copy_from_slice(value) }
    }

    #[test]
    fn only_what_can_be_right_is_taken() {
        let mut range = vec![12, 0, 0, 0, 7, 0, 0, 0, 2, 0x80, 0, 0, 9, 0, 0, 0];
        let extent = Extent { logical: 7, len: 2, start: 9, unwritten: true };
        let mapped = Change::Mapped { no: InodeNo(12), extent };
        assert_eq!(decode(&tag(1, &range), 256), Ok(mapped));
        range[8..10].fill(0);
        assert!(decode(&tag(1, &range), 256).is_err(), "no blocks");
        assert!(decode(&tag(1, &range[..15]), 256).is_err());
        let all = Change::Unmapped { no: InodeNo(1), from: 1, to: 1 << 32 };
        let most = [1, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255];
        assert_eq!(decode(&tag(2, &most), 256), Ok(all));
        for name in [&b".."[..], b".", b"a/b", b"a\0", b"", &[b'n'; 256]] {
            let value = [&[2, 0, 0, 0, 12, 0, 0, 0], name].concat();
            assert!(decode(&tag(3, &value), 256).is_err(), "{name:?}");
        }
        for (len, fine) in [(131, false), (132, true), (260, true), (261, false)] {
            assert_eq!(decode(&tag(6, &vec![0; len]), 256).is_ok(), fine, "{len}");
        }
        assert!(decode(&tag(7, &[0; 12]), 256).is_err());
    }
}
