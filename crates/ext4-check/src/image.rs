//! The file system as it is on the disk.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    GroupDesc, GroupFlags, GroupNo, Incompat, InodeNo, Layout, RawInode, RoCompat, StateFlags,
    Superblock,
};
use steadfast_ext4_format::quota::{KINDS, file_of};
use steadfast_vfs::FileType;

use crate::ahead::ReadRange;
use crate::source::Source;

/// Blocks of an inode table that are read at once.
const BATCH: u32 = 64;

/// The blocks, and what the superblock and the descriptors say of them. Only the layout and the
/// superblock's checksum have been checked.
pub(super) struct Image<'a> {
    pub(super) source: Source<'a>,
    pub(super) device: &'a Arc<dyn BlockDevice>,
    pub(super) sb: Superblock,
    pub(super) layout: Layout,
    /// Of all groups, once they were read.
    pub(super) groups: Vec<GroupDesc>,
}

impl Image<'_> {
    /// The descriptor of a group.
    pub(super) fn group(&self, group: GroupNo) -> &GroupDesc {
        &self.groups[group.0 as usize]
    }

    /// Whether the journal holds transactions that are not in place.
    pub(super) fn needs_recovery(&self) -> bool {
        self.sb.features().incompat.contains(Incompat::NEEDS_RECOVERY)
    }

    /// Whether counters in the superblock may be old: it is mounted, or was not unmounted cleanly.
    pub(super) fn is_in_use(&self) -> bool {
        let state = StateFlags::from_bits_retain(self.sb.state.get());
        self.needs_recovery() || !state.contains(StateFlags::VALID)
    }

    /// Whether a group's descriptor says where the inode table is.
    pub(super) fn has_inode_table(&self, group: GroupNo) -> bool {
        let d = self.group(group);
        self.layout.contains(d.inode_table(), u64::from(self.layout.inode_table_blocks))
    }

    /// Flags of a group, none where they mean nothing.
    pub(super) fn group_flags(&self, group: GroupNo) -> GroupFlags {
        let d = self.group(group);
        if self.layout.features.group_checksums() && self.verify_group(group) {
            d.flags()
        } else {
            GroupFlags::empty()
        }
    }

    /// Whether a group's descriptor has the right checksum.
    fn verify_group(&self, group: GroupNo) -> bool {
        self.layout.checksums.verify_group_desc(group, self.group(group))
    }

    /// Inodes at the beginning of a group's table that may have been used.
    pub(super) fn inodes_to_scan(&self, group: GroupNo) -> u32 {
        let l = &self.layout;
        if !self.has_inode_table(group) {
            return 0;
        }
        if !l.features.group_checksums() || !self.verify_group(group) {
            return l.inodes_per_group;
        }
        if self.group_flags(group).contains(GroupFlags::INODE_UNINIT) {
            return 0;
        }
        let unused = self.group(group).itable_unused();
        l.inodes_per_group - unused.min(l.inodes_per_group)
    }

    /// One inode, read by itself; `None` if its table cannot be found.
    pub(super) fn read_inode(&self, ino: InodeNo) -> Result<Option<RawInode>> {
        let Ok(place) = self.layout.inode_place(ino) else { return Ok(None) };
        if !self.has_inode_table(place.group) || place.index >= self.inodes_to_scan(place.group) {
            return Ok(None);
        }
        let table = self.group(place.group).inode_table();
        let block = self.source.block(table + u64::from(place.table_block))?;
        let size = usize::from(self.layout.inode_size);
        Ok(Some(RawInode::from_bytes(&block[place.offset..place.offset + size])))
    }

    /// What is read at once of a group's inode table: block of the table, first block and length.
    pub(super) fn table_pieces(
        &self,
        group: GroupNo,
    ) -> impl Iterator<Item = (u32, ReadRange)> + use<> {
        let blocks = self.inodes_to_scan(group).div_ceil(self.layout.inodes_per_block());
        let table = self.group(group).inode_table();
        (0..blocks)
            .step_by(BATCH as usize)
            .map(move |at| (at, (table + u64::from(at), BATCH.min(blocks - at))))
    }

    /// Whether a time of deletion is rather the number of the next orphan.
    pub(super) fn is_inode_number(&self, deleted: u32) -> bool {
        let early = |t: u32| t != 0 && t < self.layout.inodes_count;
        let sb = &self.sb;
        let clock_was_wrong =
            early(sb.write_time.get()) || early(sb.mount_time.get()) || early(sb.mkfs_time.get());
        deleted < self.layout.inodes_count && !clock_was_wrong
    }

    /// Whether the superblock says that this is the journal or a quota file.
    pub(super) fn is_named(&self, ino: InodeNo) -> bool {
        self.sb.journal_inode.get() == ino.0 || self.is_quota_file(ino)
    }

    /// Whether an inode's runs are needed later.
    pub(super) fn needs_runs(&self, ino: InodeNo, inode: &RawInode) -> bool {
        ino.0 == self.sb.journal_inode.get()
            || ino.0 == self.sb.orphan_file_inode.get()
            || self.is_quota_file(ino)
            || matches!(inode.file_type(), Some(FileType::Directory | FileType::Symlink))
    }

    /// Whether the file system keeps quotas.
    pub(super) fn has_quota(&self) -> bool {
        self.layout.features.ro_compat.contains(RoCompat::QUOTA)
    }

    /// Whether the superblock names the inode as a quota file.
    pub(super) fn is_quota_file(&self, ino: InodeNo) -> bool {
        self.has_quota() && KINDS.iter().any(|kind| file_of(&self.sb, *kind) == ino)
    }

    /// Whether values may be in inodes.
    pub(super) fn has_values(&self) -> bool {
        self.layout.features.incompat.contains(Incompat::EA_INODE)
    }
}
