//! Where the bitmaps and inode tables of each group go.
//!
//! Without flexible groups, into the group itself. With them, all block bitmaps of a flexible
//! group come first in it, then all inode bitmaps, then all inode tables, each at the first place
//! where it fits behind its like.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{GroupNo, Layout};

use crate::options::refused;
use crate::space::UsedRanges;

/// Places of one group's tables.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tables {
    pub(super) block_bitmap: u64,
    pub(super) inode_bitmap: u64,
    pub(super) inode_table: u64,
}

/// Reserves superblocks and descriptors, then places every group's tables.
pub(super) fn place(layout: &Layout, space: &mut UsedRanges) -> Result<Vec<Tables>> {
    for group in layout.all_groups() {
        space.mark(layout.group_start(group), u64::from(layout.group_overhead(group)));
    }
    let mut all = vec![Tables::default(); layout.groups as usize];
    let per_flex = layout.groups_per_flex.min(layout.groups);
    for first in (0..layout.groups).step_by(per_flex as usize) {
        let last = (first + per_flex).min(layout.groups);
        place_flex(layout, space, first, &mut all[first as usize..last as usize])?;
    }
    Ok(all)
}

fn place_flex(
    layout: &Layout,
    space: &mut UsedRanges,
    first: u32,
    all: &mut [Tables],
) -> Result<()> {
    let last = GroupNo(first + all.len() as u32 - 1);
    let from = layout.group_start(GroupNo(first));
    let to = layout.group_start(last) + u64::from(layout.blocks_in_group(last));
    let mut put = |len: u64, near: u64| -> Result<u64> {
        // Tables may go behind the flexible group's end if it is too full.
        let at = space
            .find(near, to, len)
            .or_else(|| space.find(from, to, len))
            .or_else(|| space.find(layout.first_data_block, layout.blocks_count, len))
            .ok_or_else(|| refused("the device is too small for so many inodes"))?;
        space.mark(at, len);
        Ok(at)
    };
    let mut near = from;
    for t in all.iter_mut() {
        t.block_bitmap = put(1, near)?;
        near = t.block_bitmap + 1;
    }
    for t in all.iter_mut() {
        t.inode_bitmap = put(1, near)?;
        near = t.inode_bitmap + 1;
    }
    for t in all.iter_mut() {
        t.inode_table = put(u64::from(layout.inode_table_blocks), near)?;
        near = t.inode_table + u64::from(layout.inode_table_blocks);
    }
    Ok(())
}
