//! Blocks and inode numbers that a fast commit says are taken or given back.
//!
//! Other than what the allocator does for an operation, what is taken may be taken already and
//! what is given back may be free: of two files that had a block one after the other, the changes
//! may be recorded in either order. At the end every touched file claims what it has.

use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_ext4_format::{Ext4Error, Result, bitmap};

use crate::alloc::{inode_bitmap, modify_block_bitmap, take_inode};
use crate::meta::Txn;

/// These blocks are a file's.
pub(crate) fn claim_blocks(txn: &mut Txn<'_>, start: u64, len: u64) -> Result<()> {
    mark_blocks(txn, start, len, true)?;
    txn.space.taken.insert(start, start + len);
    Ok(())
}

/// These blocks are no file's any more. They are not given to anybody else in this
/// transaction.
pub(crate) fn disclaim_blocks(txn: &mut Txn<'_>, start: u64, len: u64) -> Result<()> {
    mark_blocks(txn, start, len, false)?;
    txn.space.freed.insert(start, start + len);
    Ok(())
}

fn mark_blocks(txn: &mut Txn<'_>, start: u64, len: u64, used: bool) -> Result<()> {
    if !txn.volume.valid_file_blocks(start, len) {
        let place = format!("fast commit, blocks {start}+{len}");
        return Err(Ext4Error::corrupt("blocks that no file may own", place));
    }
    let (mut at, end) = (start, start + len);
    while at < end {
        // OK to unwrap: the blocks are the volume's.
        let (group, bit) = txn.volume.layout.group_of_block(at).unwrap();
        let left_in_group = txn.volume.layout.blocks_in_group(group) - bit;
        let n = left_in_group.min(u32::try_from(end - at).unwrap_or(u32::MAX));
        let change = if used { bitmap::set } else { bitmap::clear };
        let already = modify_block_bitmap(txn, group, |map| change(map, bit, n))?;
        let desc = &mut txn.group_mut(group).desc;
        let free = desc.free_blocks();
        let free = if used { free.checked_sub(n - already) } else { Some(free + n - already) };
        let Some(free) = free else {
            let place = format!("group {group}");
            return Err(Ext4Error::corrupt("more free blocks in the bitmap than counted", place));
        };
        desc.set_free_blocks(free);
        at += u64::from(n);
    }
    Ok(())
}

/// Whether the inode's number is taken.
pub(crate) fn is_inode_number_taken(txn: &Txn<'_>, no: InodeNo) -> Result<bool> {
    let place = txn.volume.layout.inode_place(no)?;
    Ok(bitmap::is_set(&inode_bitmap(txn, place.group)?, place.index))
}

/// Takes the inode's number, which is free.
pub(crate) fn take_inode_number(txn: &mut Txn<'_>, no: InodeNo, directory: bool) -> Result<()> {
    let place = txn.volume.layout.inode_place(no)?;
    if txn.group(place.group).free_inodes() == 0 {
        let what = "more free inodes in the bitmap than counted";
        return Err(Ext4Error::corrupt(what, format!("group {}", place.group)));
    }
    take_inode(txn, place.group, place.index, directory).map(drop)
}

/// The inode becomes a directory, or is none any more.
pub(crate) fn count_directory(txn: &mut Txn<'_>, no: InodeNo, more: bool) -> Result<()> {
    let place = txn.volume.layout.inode_place(no)?;
    let desc = &mut txn.group_mut(place.group).desc;
    let dirs = desc.used_dirs();
    desc.set_used_dirs(if more { dirs + 1 } else { dirs.saturating_sub(1) });
    Ok(())
}

/// The superblock counts what the groups have.
pub(crate) fn sum_up_free(txn: &mut Txn<'_>) {
    let (mut blocks, mut inodes) = (0, 0u32);
    for group in txn.volume.layout.all_groups() {
        blocks += u64::from(txn.group(group).free_blocks());
        inodes = inodes.saturating_add(txn.group(group).free_inodes());
    }
    let superblock = txn.superblock_mut();
    superblock.set_free_blocks(blocks);
    superblock.free_inodes.set(inodes);
}
