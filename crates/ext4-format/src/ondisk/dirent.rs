//! Directory entries (`struct ext4_dir_entry_2`) and the checksum that ends a directory block
//! (`struct ext4_dir_entry_tail`).

use steadfast_vfs::FileType;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use crate::ondisk::InodeNo;

/// Longest name in bytes (`EXT4_NAME_LEN`).
pub const NAME_MAX: usize = 255;
/// Bytes of an entry before its name.
pub(crate) const DIRENT_HEADER_LEN: usize = 8;
/// Bytes of the checksum entry at the end of a block.
pub const DIR_TAIL_LEN: usize = 12;
/// Type code that marks the checksum entry (`EXT4_FT_DIR_CSUM`).
const TAIL_TYPE: u8 = 0xde;

/// The fixed part of an entry; the name follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct DirentHeader {
    /// Inode; 0 if the entry is free (`inode`).
    pub inode: U32,
    /// Distance to the next entry, encoded; see [`rec_len_from_disk`] (`rec_len`).
    pub rec_len: U16,
    /// Bytes of the name (`name_len`).
    pub name_len: u8,
    /// Type code with `filetype`; see [`file_type_code`] (`file_type`).
    pub file_type: u8,
}

/// Looks like a free entry of 12 bytes and holds the block's checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct DirentTail {
    /// 0 (`det_reserved_zero1`).
    pub inode: U32,
    /// 12 (`det_rec_len`).
    pub rec_len: U16,
    /// 0 (`det_reserved_zero2`).
    pub name_len: u8,
    /// 0xde (`det_reserved_ft`).
    pub file_type: u8,
    /// `det_checksum`.
    pub checksum: U32,
}

const _: () = {
    assert!(size_of::<DirentHeader>() == DIRENT_HEADER_LEN);
    assert!(size_of::<DirentTail>() == DIR_TAIL_LEN);
};

impl DirentTail {
    /// A tail without a checksum yet.
    pub fn new() -> Self {
        DirentTail {
            inode: 0.into(),
            rec_len: (DIR_TAIL_LEN as u16).into(),
            name_len: 0,
            file_type: TAIL_TYPE,
            checksum: 0.into(),
        }
    }

    /// The tail of a directory block, if the last 12 bytes look like one.
    pub fn find(block: &[u8]) -> Option<DirentTail> {
        let (_, tail) = DirentTail::read_from_suffix(block).ok()?;
        let genuine = tail.inode.get() == 0
            && usize::from(tail.rec_len.get()) == DIR_TAIL_LEN
            && tail.name_len == 0
            && tail.file_type == TAIL_TYPE;
        genuine.then_some(tail)
    }
}

impl Default for DirentTail {
    fn default() -> Self {
        Self::new()
    }
}

/// The types by their codes, from 1 on (`EXT4_FT_*`).
const TYPES: [FileType; 7] = {
    use FileType::{BlockDevice, CharDevice, Directory, Fifo, Regular, Socket, Symlink};
    [Regular, Directory, CharDevice, BlockDevice, Fifo, Socket, Symlink]
};

/// Type code of an entry (`EXT4_FT_*`).
pub fn file_type_code(kind: FileType) -> u8 {
    // OK to cast: every type is in the list.
    TYPES.iter().position(|each| *each == kind).map_or(0, |i| i as u8 + 1)
}

/// The type that a code says; `None` for 0 (unknown) and codes without a meaning.
pub(crate) fn file_type_from_code(code: u8) -> Option<FileType> {
    TYPES.get(usize::from(code).checked_sub(1)?).copied()
}

/// Bytes that an entry with a name of `name_len` bytes takes (`EXT4_DIR_REC_LEN`).
pub(crate) fn rec_len_needed(name_len: usize) -> usize {
    (DIRENT_HEADER_LEN + name_len).next_multiple_of(4)
}

/// Decodes `rec_len`: below 64 KiB blocks it is the length itself, with them 0 and 65535 mean the
/// whole block and the two low bits are bits 16 and 17.
pub(crate) fn rec_len_from_disk(stored: u16, block_size: usize) -> usize {
    let stored = usize::from(stored);
    if block_size < 65536 {
        return stored;
    }
    match stored {
        0 | 65535 => block_size,
        _ => (stored & 65532) | ((stored & 3) << 16),
    }
}

/// Encodes a length of up to `block_size` bytes, a multiple of 4.
pub(crate) fn rec_len_to_disk(len: usize, block_size: usize) -> u16 {
    debug_assert!(len <= block_size && len.is_multiple_of(4));
    if len < 65536 {
        len as u16
    } else if len == block_size {
        if block_size == 65536 { 65535 } else { 0 }
    } else {
        ((len & 65532) | ((len >> 16) & 3)) as u16
    }
}

/// Writes an entry at `at`; `rec_len` reaches to the next one. Bytes behind the name are kept.
///
/// # Panics
/// If it does not fit into the block: a bug of the caller.
pub fn put_dirent(
    block: &mut [u8],
    at: usize,
    rec_len: usize,
    inode: InodeNo,
    type_code: u8,
    name: &[u8],
) {
    assert!(name.len() <= NAME_MAX && rec_len >= rec_len_needed(name.len()));
    let header = DirentHeader {
        inode: inode.0.into(),
        rec_len: rec_len_to_disk(rec_len, block.len()).into(),
        name_len: name.len() as u8,
        file_type: type_code,
    };
    block[at..at + DIRENT_HEADER_LEN].copy_from_slice(header.as_bytes());
    block[at + DIRENT_HEADER_LEN..][..name.len()].copy_from_slice(name);
}

/// One entry of a block, in use or free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirentRef<'a> {
    /// Offset in the block, bytes.
    pub at: usize,
    /// Distance to the next entry, bytes.
    pub rec_len: usize,
    /// Inode; [`InodeNo::NONE`] if free.
    pub inode: InodeNo,
    /// Type code; see `file_type_from_code`.
    pub type_code: u8,
    /// The name; anything in a free entry.
    pub name: &'a [u8],
}

/// Why a block's bytes are no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DirentDamage {
    /// The block ends in its header.
    #[error("entry at byte {0} is cut short")]
    Short(usize),
    /// Its length is none that there is.
    #[error("entry at byte {at} has a length of {rec_len}")]
    Length {
        /// Where it begins.
        at: usize,
        /// The length.
        rec_len: usize,
    },
    /// It is longer than the rest of the block.
    #[error("entry at byte {0} reaches beyond its block")]
    Beyond(usize),
    /// Its name is longer than it is.
    #[error("name of the entry at byte {0} is longer than the entry")]
    Name(usize),
}

/// The entries of a directory block, free ones and a tail's included. Ends after the first that
/// makes no sense, which it gives as an error in words. Never loops: each step is 8 bytes or more.
#[derive(Debug, Clone)]
pub struct DirEntries<'a> {
    block: &'a [u8],
    at: usize,
}

impl<'a> DirEntries<'a> {
    /// The entries of a whole block.
    pub fn new(block: &'a [u8]) -> Self {
        DirEntries { block, at: 0 }
    }

    /// The entries from byte `at` on, where one begins.
    pub fn at(block: &'a [u8], at: usize) -> Self {
        DirEntries { block, at }
    }

    fn read(&self) -> Result<DirentRef<'a>, DirentDamage> {
        let rest = &self.block[self.at..];
        let Ok((h, _)) = DirentHeader::read_from_prefix(rest) else {
            return Err(DirentDamage::Short(self.at));
        };
        let rec_len = rec_len_from_disk(h.rec_len.get(), self.block.len());
        let name_len = usize::from(h.name_len);
        // A free entry may be as short as its header and a name of no bytes.
        if rec_len < rec_len_needed(1) || !rec_len.is_multiple_of(4) {
            return Err(DirentDamage::Length { at: self.at, rec_len });
        }
        if rec_len > rest.len() {
            return Err(DirentDamage::Beyond(self.at));
        }
        if rec_len_needed(name_len) > rec_len {
            return Err(DirentDamage::Name(self.at));
        }
        Ok(DirentRef {
            at: self.at,
            rec_len,
            inode: InodeNo(h.inode.get()),
            type_code: h.file_type,
            name: &rest[DIRENT_HEADER_LEN..DIRENT_HEADER_LEN + name_len],
        })
    }
}

impl<'a> Iterator for DirEntries<'a> {
    type Item = Result<DirentRef<'a>, DirentDamage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.block.len() {
            return None;
        }
        let entry = self.read();
        match &entry {
            Ok(e) => self.at += e.rec_len,
            Err(_) => self.at = self.block.len(),
        }
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_64_kib_blocks() {
        for bs in [1024, 4096, 65536] {
            for len in [12, 1024, bs - 12, bs] {
                let stored = rec_len_to_disk(len, bs);
                assert_eq!(rec_len_from_disk(stored, bs), len, "{len} of {bs}");
            }
        }
        assert_eq!(rec_len_to_disk(65536, 65536), 65535);
    }

    #[test]
    fn entries_are_read_and_nonsense_ends() {
        let mut block = vec![0; 1024];
        put_dirent(&mut block, 0, 12, InodeNo(2), 2, b".");
        put_dirent(&mut block, 12, 1000, InodeNo(2), 2, b"..");
        block[1012..].copy_from_slice(DirentTail::new().as_bytes());
        let entries: Vec<_> = DirEntries::new(&block).map(Result::unwrap).collect();
        assert_eq!(entries.len(), 3);
        assert_eq!((entries[1].name, entries[1].rec_len), (&b".."[..], 1000));
        assert!(DirentTail::find(&block).is_some());
        for (at, value) in [(4, 0), (4, 3), (5, 0xff), (6, 200)] {
            let mut bad = block.clone();
            bad[at] = value;
            let all: Vec<_> = DirEntries::new(&bad).collect();
            assert!(all.last().unwrap().is_err(), "byte {at}");
        }
    }
}
