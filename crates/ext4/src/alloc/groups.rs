//! The bitmaps of a group: read, synthesised where they were never written, changed.

use bytes::Bytes;
use steadfast_ext4_format::ondisk::{GroupDesc, GroupFlags, GroupNo};
use steadfast_ext4_format::{Ext4Error, Result, bitmap};

use crate::meta::Txn;

fn group_flags(txn: &Txn<'_>, group: GroupNo) -> GroupFlags {
    if txn.volume.layout.features.group_checksums() {
        txn.group(group).flags()
    } else {
        GroupFlags::empty()
    }
}

/// A group's block bitmap.
pub(crate) fn block_bitmap(txn: &Txn<'_>, group: GroupNo) -> Result<Bytes> {
    if group_flags(txn, group).contains(GroupFlags::BLOCK_UNINIT) {
        return Ok(fresh_block_bitmap(txn, group).into());
    }
    let desc: &GroupDesc = txn.group(group);
    let layout = &txn.volume.layout;
    txn.read_checked(desc.block_bitmap(), &|map| {
        if layout.checksums.verify_block_bitmap(map, layout.clusters_per_group(), desc) {
            return Ok(());
        }
        Err(Ext4Error::corrupt("wrong checksum", format!("block bitmap of group {group}")))
    })
}

/// The block bitmap of a group in which nothing but metadata is in use.
fn fresh_block_bitmap(txn: &Txn<'_>, group: GroupNo) -> Vec<u8> {
    let volume = txn.volume;
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
pub(crate) fn inode_bitmap(txn: &Txn<'_>, group: GroupNo) -> Result<Bytes> {
    let layout = &txn.volume.layout;
    if group_flags(txn, group).contains(GroupFlags::INODE_UNINIT) {
        let mut map = vec![0; layout.block_size as usize];
        let used = layout.inodes_per_group;
        bitmap::set(&mut map, used, layout.block_size * 8 - used);
        return Ok(map.into());
    }
    let desc = txn.group(group);
    txn.read_checked(desc.inode_bitmap(), &|map| {
        if layout.checksums.verify_inode_bitmap(map, layout.inodes_per_group, desc) {
            return Ok(());
        }
        Err(Ext4Error::corrupt("wrong checksum", format!("inode bitmap of group {group}")))
    })
}

/// Changes a group's block bitmap; one that was never written is written now.
pub(crate) fn modify_block_bitmap<R>(
    txn: &mut Txn<'_>,
    group: GroupNo,
    change: impl FnOnce(&mut [u8]) -> R,
) -> Result<R> {
    let map = block_bitmap(txn, group)?;
    let uninit = group_flags(txn, group).contains(GroupFlags::BLOCK_UNINIT);
    let edit = txn.group_mut(group);
    edit.blocks_changed = true;
    let block = edit.desc.block_bitmap();
    if uninit {
        edit.desc.set_flags(edit.desc.flags().difference(GroupFlags::BLOCK_UNINIT));
        txn.create(block, map);
    }
    txn.modify(block, change)
}

/// Changes a group's inode bitmap; one that was never written is written now.
pub(crate) fn modify_inode_bitmap<R>(
    txn: &mut Txn<'_>,
    group: GroupNo,
    change: impl FnOnce(&mut [u8]) -> R,
) -> Result<R> {
    let map = inode_bitmap(txn, group)?;
    let uninit = group_flags(txn, group).contains(GroupFlags::INODE_UNINIT);
    let edit = txn.group_mut(group);
    edit.inodes_changed = true;
    let block = edit.desc.inode_bitmap();
    if uninit {
        edit.desc.set_flags(edit.desc.flags().difference(GroupFlags::INODE_UNINIT));
        txn.create(block, map);
    }
    txn.modify(block, change)
}
