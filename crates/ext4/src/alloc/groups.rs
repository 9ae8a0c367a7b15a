//! The bitmaps of a group: read, synthesised where they were never written, changed.

use bytes::Bytes;
use steadfast_ext4_format::ondisk::{GroupDesc, GroupFlags, GroupNo};
use steadfast_ext4_format::{Ext4Error, Result};

use super::bitmap;
use crate::meta::Txn;

impl Txn<'_> {
    fn flags(&self, group: GroupNo) -> GroupFlags {
        if self.volume.layout.features.group_checksums() {
            self.group(group).flags()
        } else {
            GroupFlags::empty()
        }
    }

    /// A group's block bitmap.
    pub(crate) fn block_bitmap(&self, group: GroupNo) -> Result<Bytes> {
        if self.flags(group).contains(GroupFlags::BLOCK_UNINIT) {
            return Ok(self.fresh_block_bitmap(group).into());
        }
        let desc: &GroupDesc = self.group(group);
        let layout = &self.volume.layout;
        self.read_checked(desc.block_bitmap(), &|map| {
            if layout.checksums.verify_block_bitmap(map, layout.clusters_per_group(), desc) {
                return Ok(());
            }
            Err(Ext4Error::corrupt("wrong checksum", format!("block bitmap of group {group}")))
        })
    }

    /// The block bitmap of a group in which nothing but metadata is in use.
    fn fresh_block_bitmap(&self, group: GroupNo) -> Vec<u8> {
        let volume = self.volume;
        let layout = &volume.layout;
        let mut map = vec![0; layout.block_size as usize];
        let (start, blocks) = (layout.group_start(group), layout.blocks_in_group(group));
        let ratio = u64::from(layout.blocks_per_cluster);
        for (s, e) in volume.group_metadata.within(start, start + u64::from(blocks)) {
            let (first, end) = ((s - start) / ratio, (e - start).div_ceil(ratio));
            bitmap::set(&mut map, first as u32, (end - first) as u32);
        }
        let clusters = layout.clusters_in_group(group);
        bitmap::set(&mut map, clusters, layout.block_size * 8 - clusters);
        map
    }

    /// A group's inode bitmap.
    pub(crate) fn inode_bitmap(&self, group: GroupNo) -> Result<Bytes> {
        let layout = &self.volume.layout;
        if self.flags(group).contains(GroupFlags::INODE_UNINIT) {
            let mut map = vec![0; layout.block_size as usize];
            let used = layout.inodes_per_group;
            bitmap::set(&mut map, used, layout.block_size * 8 - used);
            return Ok(map.into());
        }
        let desc = self.group(group);
        self.read_checked(desc.inode_bitmap(), &|map| {
            if layout.checksums.verify_inode_bitmap(map, layout.inodes_per_group, desc) {
                return Ok(());
            }
            Err(Ext4Error::corrupt("wrong checksum", format!("inode bitmap of group {group}")))
        })
    }

    /// Changes a group's block bitmap; one that was never written is written now.
    pub(crate) fn modify_block_bitmap<R>(
        &mut self,
        group: GroupNo,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        let map = self.block_bitmap(group)?;
        let uninit = self.flags(group).contains(GroupFlags::BLOCK_UNINIT);
        let edit = self.group_mut(group);
        edit.blocks_changed = true;
        let block = edit.desc.block_bitmap();
        if uninit {
            edit.desc.set_flags(edit.desc.flags().difference(GroupFlags::BLOCK_UNINIT));
            self.create(block, map);
        }
        self.modify(block, change)
    }

    /// Changes a group's inode bitmap; one that was never written is written now.
    pub(crate) fn modify_inode_bitmap<R>(
        &mut self,
        group: GroupNo,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R> {
        let map = self.inode_bitmap(group)?;
        let uninit = self.flags(group).contains(GroupFlags::INODE_UNINIT);
        let edit = self.group_mut(group);
        edit.inodes_changed = true;
        let block = edit.desc.inode_bitmap();
        if uninit {
            edit.desc.set_flags(edit.desc.flags().difference(GroupFlags::INODE_UNINIT));
            self.create(block, map);
        }
        self.modify(block, change)
    }
}
