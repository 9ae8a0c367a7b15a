//! Taking and freeing inode numbers.
//!
//! Files go into the group of their directory, or near it. Directories at the top spread over the
//! groups, those below stay near their parent as long as its group has room for what will be in
//! them (after Orlov; kernel: fs/ext4/ialloc.c).

use steadfast_ext4_format::dir::DirFormat;
use steadfast_ext4_format::dir::hash::hash_name;
use steadfast_ext4_format::ondisk::{GroupFlags, GroupNo, InodeFlags, InodeNo, RawInode};
use steadfast_ext4_format::{Ext4Error, Result, bitmap};
use steadfast_vfs::{FileType, FsError};

use super::groups::{inode_bitmap, modify_block_bitmap, modify_inode_bitmap};
use crate::meta::Txn;
use crate::state::Allocator;

impl Allocator {
    /// Takes an inode number for a new inode in directory `parent`; `name` spreads directories.
    pub(crate) fn allocate_inode(
        &self,
        txn: &mut Txn<'_>,
        parent: InodeNo,
        above: &RawInode,
        (kind, name): (FileType, &[u8]),
    ) -> Result<InodeNo> {
        let group = if kind == FileType::Directory {
            self.group_for_directory(txn, parent, above, name)?
        } else {
            group_for_file(txn, parent)?
        };
        let groups = txn.volume.layout.groups;
        for i in 0..groups {
            let group = GroupNo((group.0 + i) % groups);
            if txn.group(group).free_inodes() == 0 {
                continue;
            }
            if let Some(index) = free_inode_in(txn, group)? {
                return take_inode(txn, group, index, kind == FileType::Directory);
            }
        }
        Err(Ext4Error::Fs(FsError::NoSpace { what: "inodes" }))
    }

    fn group_for_directory(
        &self,
        txn: &Txn<'_>,
        parent: InodeNo,
        above: &RawInode,
        name: &[u8],
    ) -> Result<GroupNo> {
        let layout = &txn.volume.layout;
        let groups = u64::from(layout.groups);
        let space = *self.counts();
        let average_inodes = space.free_inodes / groups;
        let average_blocks = space.free_blocks / groups;
        let home = layout.inode_place(parent)?.group;
        let has = |g: &GroupNo, inodes: u64, blocks: u64| {
            let d = txn.group(*g);
            let enough = u64::from(d.free_inodes()) >= inodes.max(1);
            enough && u64::from(d.free_blocks()) >= blocks
        };
        let top = parent == InodeNo::ROOT || above.flags().contains(InodeFlags::TOP_DIR);
        if top {
            // By the name: an operation that runs again once its blocks are in memory has to come
            // to the same group.
            let format = DirFormat::of(txn.superblock())?;
            let hash = hash_name(format.hash_version, &format.hash_seed, name);
            let start = hash.major / 2 % layout.groups;
            let spread = (0..layout.groups).map(|i| GroupNo((start + i) % layout.groups));
            let fewest = spread
                .filter(|g| has(g, average_inodes, average_blocks))
                .min_by_key(|g| txn.group(*g).used_dirs());
            if let Some(group) = fewest {
                return Ok(group);
            }
        }
        let near = (0..layout.groups).map(|i| GroupNo((home.0 + i) % layout.groups));
        // Near the parent, unless its group is nearly full or crowded with directories.
        let least_inodes = average_inodes.saturating_sub(u64::from(layout.inodes_per_group) / 4);
        let least_blocks = average_blocks.saturating_sub(u64::from(layout.blocks_per_group) / 4);
        let found = near.into_iter().find(|g| has(g, least_inodes, least_blocks));
        Ok(found.unwrap_or(home))
    }
}

fn free_inode_in(txn: &Txn<'_>, group: GroupNo) -> Result<Option<u32>> {
    let layout = &txn.volume.layout;
    let map = inode_bitmap(txn, group)?;
    let mut from = if group.0 == 0 { layout.first_inode.0 - 1 } else { 0 };
    while let Some(index) = bitmap::next_free(&map, from, layout.inodes_per_group) {
        // A rollback has freed a number that the kernel still uses.
        if !txn.holds.contains(layout.inode_number(group, index)) {
            return Ok(Some(index));
        }
        from = index + 1;
    }
    Ok(None)
}

/// The parent's group, else groups at quadratic distances, else any.
fn group_for_file(txn: &Txn<'_>, parent: InodeNo) -> Result<GroupNo> {
    let layout = &txn.volume.layout;
    let home = layout.inode_place(parent)?.group;
    let has_room = |g: &GroupNo| {
        let d = txn.group(*g);
        d.free_inodes() > 0 && d.free_blocks() > 0
    };
    if has_room(&home) {
        return Ok(home);
    }
    let start = home.0.wrapping_add(parent.0) % layout.groups;
    let hops = std::iter::successors(Some(1u32), |h| h.checked_mul(2));
    let by_hash = hops.take_while(|h| *h < layout.groups).scan(start, |at, hop| {
        *at = (*at + hop) % layout.groups;
        Some(GroupNo(*at))
    });
    Ok(by_hash.into_iter().find(has_room).unwrap_or(home))
}

pub(crate) fn take_inode(
    txn: &mut Txn<'_>,
    group: GroupNo,
    index: u32,
    directory: bool,
) -> Result<InodeNo> {
    // The block bitmap is written first: a group with inodes in use counts as initialised.
    if txn.group(group).flags().contains(GroupFlags::BLOCK_UNINIT) {
        modify_block_bitmap(txn, group, |_| ())?;
    }
    let never_used = txn.group(group).flags().contains(GroupFlags::INODE_UNINIT);
    modify_inode_bitmap(txn, group, |map| bitmap::set(map, index, 1))?;
    let per_group = txn.volume.layout.inodes_per_group;
    let checksums = txn.volume.layout.features.group_checksums();
    let desc = &mut txn.group_mut(group).desc;
    desc.set_free_inodes(desc.free_inodes().saturating_sub(1));
    if directory {
        desc.set_used_dirs(desc.used_dirs() + 1);
    }
    if checksums {
        let unused = if never_used { per_group } else { desc.itable_unused() };
        desc.set_itable_unused(unused.min(per_group - index - 1));
    }
    txn.space.inodes_delta -= 1;
    Ok(txn.volume.layout.inode_number(group, index))
}

/// Gives an inode number back.
pub(crate) fn free_inode_number(txn: &mut Txn<'_>, no: InodeNo, directory: bool) -> Result<()> {
    let place = txn.volume.layout.inode_place(no)?;
    let clear = |map: &mut [u8]| bitmap::clear(map, place.index, 1);
    if modify_inode_bitmap(txn, place.group, clear)? > 0 {
        let what = "deleting an inode that the bitmap calls free";
        return Err(Ext4Error::corrupt(what, format!("inode {no}")));
    }
    let desc = &mut txn.group_mut(place.group).desc;
    desc.set_free_inodes(desc.free_inodes() + 1);
    if directory {
        desc.set_used_dirs(desc.used_dirs().saturating_sub(1));
    }
    txn.space.inodes_delta += 1;
    Ok(())
}
