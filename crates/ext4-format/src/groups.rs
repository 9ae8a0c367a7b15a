//! The group descriptors.

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_journal::{FsBlock, Overlay};

use crate::error::{Ext4Error, Result};
use crate::ondisk::{GroupDesc, GroupNo, Incompat, Layout};

/// Reads and checks all group descriptors.
pub fn read(
    device: &dyn BlockDevice,
    layout: &Layout,
    overlay: &Overlay,
) -> Result<Vec<GroupDesc>> {
    let mut groups = Vec::new();
    let mut current: Option<(u64, Bytes)> = None;
    for group in layout.all_groups() {
        let (block, offset) = layout.desc_place(group);
        if current.as_ref().is_none_or(|(b, _)| *b != block) {
            current = Some((block, read_block(device, layout, overlay, block)?));
        }
        // OK to unwrap: just filled.
        let bytes = &current.as_ref().unwrap().1;
        let desc = GroupDesc::parse(&bytes[offset..offset + usize::from(layout.desc_size)]);
        check(layout, group, &desc)?;
        groups.push(desc);
    }
    Ok(groups)
}

/// A block from the overlay or the device.
pub fn read_block(
    device: &dyn BlockDevice,
    layout: &Layout,
    overlay: &Overlay,
    block: u64,
) -> Result<Bytes> {
    if let Some(image) = overlay.get(&FsBlock(block)) {
        return Ok(image.clone());
    }
    if block >= layout.blocks_count {
        let place = format!("block {block}");
        return Err(Ext4Error::corrupt("a block beyond the end of the file system", place));
    }
    let size = u64::from(layout.block_size);
    Ok(device.read(block * size, size)?)
}

fn check(layout: &Layout, group: GroupNo, desc: &GroupDesc) -> Result<()> {
    let bad = |what: String| Err(Ext4Error::corrupt(what, format!("descriptor of group {group}")));
    if !layout.checksums.verify_group_desc(group, desc) {
        return bad("wrong checksum".into());
    }
    let flexible = layout.features.incompat.contains(Incompat::FLEX_BG);
    let start = layout.group_start(group);
    let end = start + u64::from(layout.blocks_in_group(group));
    for (name, block, len) in [
        ("block bitmap", desc.block_bitmap(), 1),
        ("inode bitmap", desc.inode_bitmap(), 1),
        ("inode table", desc.inode_table(), u64::from(layout.inode_table_blocks)),
    ] {
        let inside =
            layout.contains(block, len) && (flexible || (block >= start && block + len <= end));
        if !inside {
            return bad(format!("the {name} is said to be at block {block}"));
        }
    }
    if desc.free_blocks() > layout.clusters_in_group(group)
        || desc.free_inodes() > layout.inodes_per_group
        || desc.itable_unused() > layout.inodes_per_group
    {
        return bad("more free than there is".into());
    }
    Ok(())
}
