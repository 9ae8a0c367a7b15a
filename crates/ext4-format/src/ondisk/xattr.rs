//! Headers of extended attributes (`fs/ext4/xattr.h`), and their hashes.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `EXT4_XATTR_MAGIC`.
pub const XATTR_MAGIC: u32 = 0xea02_0000;

/// Header of a block of attributes (`struct ext4_xattr_header`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct XattrBlockHeader {
    /// [`XATTR_MAGIC`] (`h_magic`).
    pub magic: U32,
    /// Inodes that share the block (`h_refcount`).
    pub refcount: U32,
    /// 1 (`h_blocks`).
    pub blocks: U32,
    /// Hash of all attributes (`h_hash`).
    pub hash: U32,
    /// Checksum of the block (`h_checksum`).
    pub checksum: U32,
    /// `h_reserved`.
    pub reserved: [U32; 3],
}

/// One attribute; the name follows, padded to 4 bytes (`struct ext4_xattr_entry`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct XattrEntry {
    /// Bytes of the name (`e_name_len`).
    pub name_len: u8,
    /// Code of the name's prefix (`e_name_index`).
    pub name_index: u8,
    /// Where the value is (`e_value_offs`).
    pub value_offset: U16,
    /// Inode of the value, 0 if it is here (`e_value_inum`).
    pub value_inode: U32,
    /// Bytes of the value (`e_value_size`).
    pub value_size: U32,
    /// Hash of name and value (`e_hash`).
    pub hash: U32,
}

const _: () = {
    assert!(size_of::<XattrBlockHeader>() == 32);
    assert!(std::mem::offset_of!(XattrBlockHeader, checksum) == 16);
    assert!(size_of::<XattrEntry>() == 16);
};

/// Hash of an attribute (`ext4_xattr_hash_entry`). `value` is padded with zeros to 4 bytes; for a
/// value in an inode it is that inode's checksum of the value. `signed` is the legacy form, in
/// which bytes of the name are signed.
pub fn xattr_entry_hash(name: &[u8], value: &[u8], signed: bool) -> u32 {
    let widen = |b: &u8| if signed { *b as i8 as u32 } else { u32::from(*b) };
    let hash = name.iter().fold(0u32, |h, b| h.rotate_left(5) ^ widen(b));
    let (words, rest) = value.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let last = (!rest.is_empty()).then_some(&last);
    let hash_word = |h: u32, word: &[u8; 4]| h.rotate_left(16) ^ u32::from_le_bytes(*word);
    words.iter().chain(last).fold(hash, hash_word)
}

/// Hash of a block of attributes from those of its entries, in order (`ext4_xattr_rehash`): 0 if
/// one of them is 0.
pub fn xattr_block_hash(entries: impl IntoIterator<Item = u32>) -> u32 {
    let fold = |hash: u32, entry: u32| (entry != 0).then(|| hash.rotate_left(16) ^ entry);
    entries.into_iter().try_fold(0, fold).unwrap_or(0)
}
