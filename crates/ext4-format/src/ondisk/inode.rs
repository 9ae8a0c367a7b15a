//! The inode: 128 bytes that every file system has, 32 that the newer ones add, then room for
//! extended attributes (`struct ext4_inode`).

mod fields;

use steadfast_vfs::FileType;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of an inode in the oldest file systems, and of [`InodeCore`].
pub const GOOD_OLD_INODE_SIZE: usize = 128;

bitflags::bitflags! {
    /// Flags of an inode (`i_flags`).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct InodeFlags: u32 {
        /// `EXT4_SECRM_FL`.
        const SECURE_DELETE = 0x1;
        /// `EXT4_UNRM_FL`.
        const UNDELETE = 0x2;
        /// `EXT4_COMPR_FL`.
        const COMPRESSED = 0x4;
        /// Every write is synchronous (`EXT4_SYNC_FL`).
        const SYNC = 0x8;
        /// `EXT4_IMMUTABLE_FL`.
        const IMMUTABLE = 0x10;
        /// `EXT4_APPEND_FL`.
        const APPEND = 0x20;
        /// `EXT4_NODUMP_FL`.
        const NO_DUMP = 0x40;
        /// `EXT4_NOATIME_FL`.
        const NO_ATIME = 0x80;
        /// `EXT4_ENCRYPT_FL`.
        const ENCRYPTED = 0x800;
        /// The directory has a hash index (`EXT4_INDEX_FL`).
        const INDEX = 0x1000;
        /// `EXT4_IMAGIC_FL`.
        const IMAGIC = 0x2000;
        /// The file's data is journalled (`EXT4_JOURNAL_DATA_FL`).
        const JOURNAL_DATA = 0x4000;
        /// `EXT4_NOTAIL_FL`.
        const NO_TAIL = 0x8000;
        /// `EXT4_DIRSYNC_FL`.
        const DIR_SYNC = 0x1_0000;
        /// `EXT4_TOPDIR_FL`.
        const TOP_DIR = 0x2_0000;
        /// `i_blocks` counts file-system blocks (`EXT4_HUGE_FILE_FL`).
        const HUGE_FILE = 0x4_0000;
        /// The file is mapped by extents (`EXT4_EXTENTS_FL`).
        const EXTENTS = 0x8_0000;
        /// `EXT4_VERITY_FL`.
        const VERITY = 0x10_0000;
        /// The inode holds a large attribute's value (`EXT4_EA_INODE_FL`).
        const EA_INODE = 0x20_0000;
        /// `EXT4_EOFBLOCKS_FL`: blocks beyond the end (obsolete).
        const EOF_BLOCKS = 0x40_0000;
        /// `EXT4_DAX_FL`.
        const DAX = 0x200_0000;
        /// The contents are in the inode (`EXT4_INLINE_DATA_FL`).
        const INLINE_DATA = 0x1000_0000;
        /// `EXT4_PROJINHERIT_FL`.
        const PROJECT_INHERIT = 0x2000_0000;
        /// `EXT4_CASEFOLD_FL`.
        const CASEFOLD = 0x4000_0000;
        const _ = !0;
    }
}

/// The first 128 bytes of an inode.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct InodeCore {
    /// Type and permissions (`i_mode`).
    pub mode: U16,
    /// Owner, low half (`i_uid`).
    pub uid_lo: U16,
    /// Size in bytes, low half (`i_size_lo`).
    pub size_lo: U32,
    /// Last read, seconds (`i_atime`).
    pub atime: U32,
    /// Last change of the inode, seconds (`i_ctime`).
    pub ctime: U32,
    /// Last change of contents, seconds (`i_mtime`).
    pub mtime: U32,
    /// Deletion, seconds; in an orphan the next orphan's number (`i_dtime`).
    pub dtime: U32,
    /// Group, low half (`i_gid`).
    pub gid_lo: U16,
    /// Links (`i_links_count`).
    pub links: U16,
    /// Storage used, low half (`i_blocks_lo`).
    pub blocks_lo: U32,
    /// [`InodeFlags`] (`i_flags`).
    pub flags: U32,
    /// Version, low half (`osd1.linux1.l_i_version`).
    pub version_lo: U32,
    /// Extent tree, fast symlink or device number (`i_block`).
    pub block: [u8; 60],
    /// Changes when the number is used again (`i_generation`).
    pub generation: U32,
    /// Block of extended attributes, low half (`i_file_acl_lo`).
    pub file_acl_lo: U32,
    /// Size in bytes, high half (`i_size_high`).
    pub size_hi: U32,
    /// `i_obso_faddr`.
    pub obsolete_fragment: U32,
    /// Storage used, high 16 bits (`osd2.linux2.l_i_blocks_high`).
    pub blocks_hi: U16,
    /// Block of extended attributes, high 16 bits (`osd2.linux2.l_i_file_acl_high`).
    pub file_acl_hi: U16,
    /// Owner, high half (`osd2.linux2.l_i_uid_high`).
    pub uid_hi: U16,
    /// Group, high half (`osd2.linux2.l_i_gid_high`).
    pub gid_hi: U16,
    /// Checksum, low half (`osd2.linux2.l_i_checksum_lo`).
    pub checksum_lo: U16,
    /// `osd2.linux2.l_i_reserved`.
    pub reserved: U16,
}

/// Bytes 128 to 160 of an inode; a field exists only if `extra_isize` reaches over it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct InodeExtra {
    /// How many bytes beyond 128 hold fields (`i_extra_isize`).
    pub extra_isize: U16,
    /// Checksum, high half (`i_checksum_hi`).
    pub checksum_hi: U16,
    /// `i_ctime_extra`.
    pub ctime_extra: U32,
    /// `i_mtime_extra`.
    pub mtime_extra: U32,
    /// `i_atime_extra`.
    pub atime_extra: U32,
    /// Creation, seconds (`i_crtime`).
    pub crtime: U32,
    /// `i_crtime_extra`.
    pub crtime_extra: U32,
    /// Version, high half (`i_version_hi`).
    pub version_hi: U32,
    /// `i_projid`.
    pub project: U32,
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<InodeCore>() == GOOD_OLD_INODE_SIZE);
    assert!(offset_of!(InodeCore, block) == 0x28);
    assert!(offset_of!(InodeCore, generation) == 0x64);
    assert!(offset_of!(InodeCore, checksum_lo) == 0x7c);
    assert!(size_of::<InodeExtra>() == 32);
    assert!(offset_of!(InodeExtra, crtime) == 0x90 - 0x80);
    assert!(offset_of!(InodeExtra, project) == 0x9c - 0x80);
};

/// An inode as it stands in the table: all `inode_size` bytes, with accessors that know which
/// fields exist. What is not understood is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawInode {
    bytes: Box<[u8]>,
}

impl RawInode {
    /// An inode of zeros with `extra_isize` bytes of extra fields (at most what fits).
    pub fn new(inode_size: usize, extra_isize: u16) -> Self {
        let bytes = vec![0; inode_size.max(GOOD_OLD_INODE_SIZE)].into_boxed_slice();
        let mut inode = RawInode { bytes };
        if let Some(e) = inode.extra_mut() {
            e.extra_isize.set(extra_isize.min((inode_size - GOOD_OLD_INODE_SIZE) as u16));
        }
        inode
    }

    /// Takes the bytes of a slot of the inode table; fewer than 128 are padded with zeros.
    pub fn from_bytes(slot: &[u8]) -> Self {
        let mut bytes = slot.to_vec();
        bytes.resize(bytes.len().max(GOOD_OLD_INODE_SIZE), 0);
        RawInode { bytes: bytes.into_boxed_slice() }
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, to be changed.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The first 128 bytes.
    #[inline]
    pub fn core(&self) -> &InodeCore {
        // OK to unwrap: there are always 128 bytes, and the type needs no alignment.
        InodeCore::ref_from_prefix(&self.bytes).unwrap().0
    }

    /// The first 128 bytes, to be changed.
    #[inline]
    pub fn core_mut(&mut self) -> &mut InodeCore {
        // OK to unwrap: as above.
        InodeCore::mut_from_prefix(&mut self.bytes).unwrap().0
    }

    /// Bytes 128 to 160 as they are; `None` in a 128-byte inode. Check `extra_isize` before
    /// believing a field.
    #[inline]
    pub fn extra(&self) -> Option<&InodeExtra> {
        InodeExtra::ref_from_prefix(&self.bytes[GOOD_OLD_INODE_SIZE..]).ok().map(|(e, _)| e)
    }

    /// Bytes 128 to 160, to be changed.
    #[inline]
    pub fn extra_mut(&mut self) -> Option<&mut InodeExtra> {
        InodeExtra::mut_from_prefix(&mut self.bytes[GOOD_OLD_INODE_SIZE..]).ok().map(|(e, _)| e)
    }

    /// Bytes beyond 128 that hold fields; no more than there are.
    pub fn extra_isize(&self) -> usize {
        let room = self.bytes.len() - GOOD_OLD_INODE_SIZE;
        self.extra().map_or(0, |e| usize::from(e.extra_isize.get()).min(room))
    }

    /// Whether the field that begins at `offset` bytes of [`InodeExtra`] and has `len` exists:
    /// `extra_isize` reaches over it.
    #[inline]
    pub(crate) fn has_extra(&self, offset: usize, len: usize) -> bool {
        offset + len <= self.extra_isize()
    }

    /// What lies between the extra fields and the end: attributes in the inode, if any.
    pub fn xattr_region(&self) -> &[u8] {
        &self.bytes[GOOD_OLD_INODE_SIZE + self.extra_isize()..]
    }

    /// As [`xattr_region`](Self::xattr_region), to be changed.
    pub(crate) fn xattr_region_mut(&mut self) -> &mut [u8] {
        let start = GOOD_OLD_INODE_SIZE + self.extra_isize();
        &mut self.bytes[start..]
    }

    /// Whether every byte is zero: a slot that was never used.
    pub fn is_blank(&self) -> bool {
        self.bytes.iter().all(|b| *b == 0)
    }
}

/// The type in a mode; `None` if it is none of the seven.
#[inline]
pub fn file_type_from_mode(mode: u16) -> Option<FileType> {
    Some(match mode & 0xf000 {
        0x1000 => FileType::Fifo,
        0x2000 => FileType::CharDevice,
        0x4000 => FileType::Directory,
        0x6000 => FileType::BlockDevice,
        0x8000 => FileType::Regular,
        0xa000 => FileType::Symlink,
        0xc000 => FileType::Socket,
        _ => return None,
    })
}

/// The type's bits of a mode.
#[inline]
pub fn mode_of(kind: FileType) -> u16 {
    match kind {
        FileType::Fifo => 0x1000,
        FileType::CharDevice => 0x2000,
        FileType::Directory => 0x4000,
        FileType::BlockDevice => 0x6000,
        FileType::Regular => 0x8000,
        FileType::Symlink => 0xa000,
        FileType::Socket => 0xc000,
    }
}

#[cfg(test)]
mod tests {
    use steadfast_vfs::Timestamp;

    use super::*;

    #[test]
    fn fields_beyond_extra_isize_do_not_exist() {
        let t = Timestamp { secs: 0x1_0000_0007, nanos: 9 };
        let mut short = RawInode::new(256, 4);
        short.set_mtime(t);
        short.set_crtime(t);
        assert_eq!(short.mtime(), Timestamp { secs: i64::from(i32::MAX), nanos: 0 });
        assert_eq!(short.crtime(), None);
        assert_eq!(short.xattr_region().len(), 256 - 132);
        let mut long = RawInode::new(256, 32);
        long.set_mtime(t);
        long.set_crtime(t);
        assert_eq!((long.mtime(), long.crtime()), (t, Some(t)));
        let mut old = RawInode::new(128, 32);
        old.set_mtime(Timestamp { secs: 5, nanos: 5 });
        assert_eq!(old.mtime(), Timestamp { secs: 5, nanos: 0 });
        assert!(old.extra().is_none() && old.xattr_region().is_empty());
    }

    #[test]
    fn a_wild_extra_isize_is_bounded() {
        let mut inode = RawInode::new(256, 32);
        inode.extra_mut().unwrap().extra_isize.set(u16::MAX);
        assert_eq!(inode.extra_isize(), 128);
        assert!(inode.xattr_region().is_empty());
    }

    #[test]
    fn storage_beyond_48_bits_is_counted_in_blocks() {
        let mut inode = RawInode::new(256, 32);
        inode.set_sectors(80, 4096);
        assert_eq!((inode.blocks_field(), inode.sectors(4096)), (80, 80));
        inode.set_sectors(1 << 49, 4096);
        assert!(inode.flags().contains(InodeFlags::HUGE_FILE));
        assert_eq!(inode.sectors(4096), 1 << 49);
    }

    #[test]
    fn device_numbers_have_two_forms() {
        let mut inode = RawInode::new(128, 0);
        inode.set_mode(FileType::BlockDevice, 0o600);
        inode.block_mut()[..4].copy_from_slice(&0x0803u32.to_le_bytes());
        assert_eq!(inode.rdev(), 8 << 32 | 3);
        inode.block_mut()[..4].fill(0);
        inode.block_mut()[4..8].copy_from_slice(&0x0010_3b01u32.to_le_bytes());
        assert_eq!(inode.rdev(), 59 << 32 | 0x101);
        for rdev in [0, 5 << 32 | 1, 300 << 32 | 7, 8 << 32 | 256, 0xfff << 32 | 0xf_ffff] {
            assert!(inode.set_rdev(rdev));
            assert_eq!(inode.rdev(), rdev);
        }
        assert!(!inode.set_rdev(0x1000 << 32) && !inode.set_rdev(1 << 20));
    }
}
