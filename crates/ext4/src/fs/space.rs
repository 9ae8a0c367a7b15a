//! How much space there is.

use steadfast_vfs::{Result, StatFs};

use crate::mounted::Ext4;

pub(super) fn statfs(fs: &Ext4) -> Result<StatFs> {
    // As on the kernel's ext4, where a final unlink has deleted the file when it returns.
    fs.parts.holds.settle(0);
    let layout = &fs.volume.layout;
    let space = *fs.parts.allocator.counts();
    let free = space.free_blocks.saturating_sub(space.promised());
    let withheld = space.reserved_blocks + space.cushion_blocks;
    Ok(StatFs {
        block_size: layout.block_size,
        blocks: layout.blocks_count.saturating_sub(overhead(fs)),
        blocks_free: free,
        blocks_available: free.saturating_sub(withheld),
        inodes: layout.inodes_count.into(),
        inodes_free: space.free_inodes,
        name_max: 255,
    })
}

/// Blocks that can never hold data, as the kernel counts them for `statfs`.
fn overhead(fs: &Ext4) -> u64 {
    let clusters = fs.parts.lock_meta().superblock.overhead_clusters.get();
    let kept = u64::from(clusters) * u64::from(fs.volume.layout.blocks_per_cluster);
    if kept > 0 && kept < fs.volume.layout.blocks_count {
        return kept;
    }
    fs.volume.layout.first_data_block + fs.volume.system_blocks.len()
}
