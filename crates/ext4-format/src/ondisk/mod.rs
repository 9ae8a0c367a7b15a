//! On-disk structures, one a file.
//!
//! Every structure is laid out by `zerocopy` with little-endian, unaligned integers; sizes and
//! offsets are asserted at compile time. Fields have readable names, with the kernel's
//! (`fs/ext4/ext4.h`, `ext4_extents.h`, `xattr.h`) in the doc comment.
//!
//! # Invariants
//!
//! 1. Reading a structure never panics, whatever the bytes: bad values come out as
//!    [`Ext4Error::Corrupt`](crate::error::Ext4Error) or as themselves, never as an index.
//! 2. Bits and fields that are not known here are kept as they were.
//! 3. Only a [`Layout`] made from a superblock that passed [`Layout::new`] is used for arithmetic
//!    on groups and inodes; it cannot overflow or divide by zero.
//!
//! Physical blocks are `u64`, blocks of a file are `u32`, inodes are [`InodeNo`] and groups
//! [`GroupNo`], so that one is not taken for another.

mod atomic_write;
pub mod csum;
mod dirent;
mod extent;
mod features;
mod group;
mod home_mark;
mod htree;
mod inode;
mod inode_time;
mod layout;
mod mmp;
mod numbers;
mod orphan;
mod quota;
mod redo;
mod superblock;
mod superblock_fields;
mod support;
mod xattr;

pub use csum::MetadataChecksums;
pub use dirent::{DIR_TAIL_LEN, file_type_code, put_dirent};
pub(crate) use dirent::{
    DIRENT_HEADER_LEN, DirentHeader, file_type_from_code, rec_len_from_disk, rec_len_needed,
    rec_len_to_disk,
};
pub use dirent::{DirEntries, DirentRef, DirentTail, NAME_MAX};
pub use extent::{EXTENT_MAGIC, MAX_UNWRITTEN_LEN, MAX_WRITTEN_LEN};
pub use extent::{Extent, ExtentHeader, ExtentIndex, ExtentLeaf};
pub(crate) use extent::{ExtentTail, MAX_EXTENT_DEPTH};
pub use features::{Compat, Features, Incompat, RoCompat};
pub use group::{GroupDesc, GroupFlags};
pub use home_mark::CHANGES_AT;
pub(crate) use htree::DxTail;
pub use htree::{DX_NODE_ENTRIES_OFFSET, DX_ROOT_ENTRIES_OFFSET, DxEntry};
pub use htree::{DxCountLimit, DxRootInfo, HashVersion, dx_entries_offset};
pub use inode::{GOOD_OLD_INODE_SIZE, InodeCore, InodeExtra, InodeFlags, RawInode, mode_of};
pub use layout::{InodeLocation, Layout, is_sparse_backup};
pub(crate) use mmp::MMP_MAGIC;
pub use mmp::Mmp;
pub use numbers::{FIRST_INODE_REV0, GroupNo, InodeNo};
pub use orphan::{ORPHAN_BLOCK_MAGIC, OrphanBlockTail, orphan_slots};
pub use quota::{
    QUOTA_BLOCK, QUOTA_DEPTH, QUOTA_ENTRIES, QUOTA_MAGIC, QUOTA_ROOT, QUOTA_VERSION,
    QuotaBlockHeader, QuotaEntry, QuotaInfo, quota_index,
};
pub use superblock::{SUPERBLOCK_LEN, SUPERBLOCK_MAGIC, SUPERBLOCK_OFFSET, Superblock};
pub use superblock_fields::{DefaultMountOptions, StateFlags, SuperFlags};
pub use support::{ENCODING_UTF8_12_1, check_writable_filesystem};
pub use support::{check_supported_filesystem, check_supported_journal_device, implemented};
pub use xattr::{XATTR_MAGIC, XattrBlockHeader, XattrEntry, xattr_block_hash, xattr_entry_hash};
