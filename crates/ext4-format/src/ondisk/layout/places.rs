//! Where groups, inodes and descriptors are.

use super::{InodeLocation, Layout};
use crate::error::{Ext4Error, Result};
use crate::ondisk::{GroupNo, InodeNo, RoCompat};

/// Whether a group has a superblock with `sparse_super`: 0, 1 and the powers of 3, 5 and 7.
pub fn is_sparse_backup(group: GroupNo) -> bool {
    let power_of = |base: u32| {
        let mut n = group.0;
        while n.is_multiple_of(base) {
            n /= base;
        }
        n == 1
    };
    group.0 <= 1 || power_of(3) || power_of(5) || power_of(7)
}

impl Layout {
    /// Bytes of the file system.
    pub fn size(&self) -> u64 {
        self.blocks_count * u64::from(self.block_size)
    }

    /// Byte offset of a block on the device.
    ///
    /// # Panics
    /// If the block is not one of the file system's: callers check numbers from disk with
    /// [`contains`](Self::contains).
    pub fn offset(&self, block: u64) -> u64 {
        assert!(block < self.blocks_count, "block {block} of {}", self.blocks_count);
        block * u64::from(self.block_size)
    }

    /// Whether `len` blocks from `block` on lie in a group (so block 0 of a 1 KiB file system
    /// does not count).
    pub fn contains(&self, block: u64, len: u64) -> bool {
        block >= self.first_data_block
            && block.checked_add(len).is_some_and(|end| end <= self.blocks_count)
    }

    /// All groups in order.
    pub fn all_groups(&self) -> impl DoubleEndedIterator<Item = GroupNo> + use<> {
        (0..self.groups).map(GroupNo)
    }

    /// First block of a group.
    pub fn group_start(&self, group: GroupNo) -> u64 {
        self.first_data_block + u64::from(group.0) * u64::from(self.blocks_per_group)
    }

    /// Blocks of a group: fewer in the last.
    pub fn blocks_in_group(&self, group: GroupNo) -> u32 {
        let left = self.blocks_count.saturating_sub(self.group_start(group));
        left.min(u64::from(self.blocks_per_group)) as u32
    }

    /// Clusters a group: what its block bitmap has bits for. The last group may have fewer.
    pub fn clusters_per_group(&self) -> u32 {
        self.blocks_per_group / self.blocks_per_cluster
    }

    /// Clusters of a group: fewer in the last, whose last cluster may reach beyond the end.
    #[inline]
    pub fn clusters_in_group(&self, group: GroupNo) -> u32 {
        self.blocks_in_group(group).div_ceil(self.blocks_per_cluster)
    }

    /// Bytes a cluster.
    pub fn cluster_size(&self) -> u64 {
        u64::from(self.block_size) * u64::from(self.blocks_per_cluster)
    }

    /// `[start, end)`, blocks of the volume or of a file, widened to whole clusters.
    pub fn whole_clusters(&self, start: u64, end: u64) -> (u64, u64) {
        let ratio = u64::from(self.blocks_per_cluster);
        (start - start % ratio, end.checked_next_multiple_of(ratio).unwrap_or(u64::MAX))
    }

    /// Group of a block and its number in the group. `None` if the block is in no group.
    pub fn group_of_block(&self, block: u64) -> Option<(GroupNo, u32)> {
        if !self.contains(block, 1) {
            return None;
        }
        let (n, bpg) = (block - self.first_data_block, u64::from(self.blocks_per_group));
        Some((GroupNo((n / bpg) as u32), (n % bpg) as u32))
    }

    /// Where an inode lies.
    ///
    /// # Errors
    /// [`Ext4Error::Corrupt`] if there is no such inode.
    #[inline]
    pub fn inode_place(&self, ino: InodeNo) -> Result<InodeLocation> {
        if ino == InodeNo::NONE || ino.0 > self.inodes_count {
            return Err(Ext4Error::corrupt(
                format!("there is no inode {ino}, only 1 to {}", self.inodes_count),
                "inode number",
            ));
        }
        let (group, index) =
            ((ino.0 - 1) / self.inodes_per_group, (ino.0 - 1) % self.inodes_per_group);
        let byte = u64::from(index) * u64::from(self.inode_size);
        Ok(InodeLocation {
            group: GroupNo(group),
            index,
            table_block: (byte / u64::from(self.block_size)) as u32,
            offset: (byte % u64::from(self.block_size)) as usize,
        })
    }

    /// The inode with this number in a group, from 0.
    pub fn inode_number(&self, group: GroupNo, index: u32) -> InodeNo {
        InodeNo(group.0 * self.inodes_per_group + index + 1)
    }

    /// Inodes that a block holds.
    pub fn inodes_per_block(&self) -> u32 {
        self.block_size / u32::from(self.inode_size)
    }

    /// Whether a group begins with a superblock: all groups, or with `sparse_super` 0, 1 and the
    /// powers of 3, 5 and 7, or with `sparse_super2` 0 and those that the superblock names.
    pub fn has_superblock(&self, group: GroupNo) -> bool {
        if let Some(only) = self.only_backups {
            return group.0 == 0 || only.contains(&group.0);
        }
        !self.features.ro_compat.contains(RoCompat::SPARSE_SUPER) || is_sparse_backup(group)
    }

    /// Groups with backups of superblock and descriptors, without group 0.
    pub fn backup_groups(&self) -> impl Iterator<Item = GroupNo> + '_ {
        (1..self.groups).map(GroupNo).filter(|g| self.has_superblock(*g))
    }

    /// Descriptors that a block holds.
    pub fn descs_per_block(&self) -> u32 {
        self.block_size / u32::from(self.desc_size)
    }

    /// Which block of descriptors, by its number, stands behind a group's superblock (or at its
    /// beginning) with `meta_bg`: the first, second and last group of those it describes have
    /// one.
    pub fn meta_desc_block(&self, group: GroupNo) -> Option<u32> {
        let per_block = self.descs_per_block();
        let (block, index) = (group.0 / per_block, group.0 % per_block);
        (block >= self.first_meta_bg && [0, 1, per_block - 1].contains(&index)).then_some(block)
    }

    /// Blocks of descriptors that follow every superblock in the groups before `meta_bg`'s.
    fn descs_behind_superblock(&self, group: GroupNo) -> u32 {
        if group.0 / self.descs_per_block() >= self.first_meta_bg { 0 } else { self.first_meta_bg }
    }

    /// Blocks at the beginning of a group that hold superblock, descriptors and the room for
    /// more.
    pub fn group_overhead(&self, group: GroupNo) -> u32 {
        let mut superblock = u32::from(self.has_superblock(group));
        if group.0 == 0 {
            // Up to and with the superblock: with clusters, block 0 of 1 KiB is in the group.
            superblock += (self.superblock_place().0 - self.first_data_block) as u32;
        }
        match self.descs_behind_superblock(group) {
            0 => superblock + u32::from(self.meta_desc_block(group).is_some()),
            _ if superblock == 0 => 0,
            descs => superblock + descs + self.reserved_gdt_blocks,
        }
    }

    /// Block and offset in it, bytes, of a group's descriptor (the primary copy).
    #[inline]
    pub fn desc_place(&self, group: GroupNo) -> (u64, usize) {
        let per_block = self.descs_per_block();
        let number = group.0 / per_block;
        let block = if number < self.first_meta_bg {
            self.superblock_place().0 + 1 + u64::from(number)
        } else if number == 0 {
            self.superblock_place().0 + 1
        } else {
            let first = GroupNo(number * per_block);
            self.group_start(first) + u64::from(self.has_superblock(first))
        };
        (block, (group.0 % per_block) as usize * usize::from(self.desc_size))
    }

    /// Block that holds the primary superblock, and its offset in it in bytes.
    pub fn superblock_place(&self) -> (u64, usize) {
        if self.block_size == 1024 { (1, 0) } else { (0, 1024) }
    }

    /// Longest file in bytes that the block numbers of an extent tree reach.
    pub fn max_file_size(&self) -> u64 {
        ((1u64 << 32) - 1) * u64::from(self.block_size)
    }
}
