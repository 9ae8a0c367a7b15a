//! What describes a volume: it stays what it is while the file system is mounted.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_block::planted::BugSwitch;
use steadfast_ext4_format::RangeSet;
use steadfast_ext4_format::ondisk::{GroupDesc, Incompat, Layout, Superblock};

use crate::planted::Bug;
use crate::state::{Clock, Stamps, Status};

/// The device, and where things are on it. The parts that change are in `Parts`.
pub struct Volume {
    pub(crate) device: Arc<dyn BlockDevice>,
    /// Geometry, features and the checksums' seed.
    pub layout: Layout,
    /// Blocks of superblocks, descriptors, bitmaps and inode tables.
    pub(crate) group_metadata: RangeSet,
    /// Those and the journal's: no file may own them.
    pub(crate) system_blocks: RangeSet,
    pub(crate) clock: Clock,
    /// The times of its inodes.
    pub(crate) stamps: Stamps,
    /// Whether it may be used and written, and why not.
    pub(crate) status: Arc<Status>,
    /// A bug that the crash explorer is to find.
    pub(crate) planted: BugSwitch<Bug>,
}

impl Volume {
    /// Bytes a block.
    pub fn block_size(&self) -> u64 {
        self.layout.block_size.into()
    }

    /// Whether a run of blocks may belong to a file.
    pub(crate) fn valid_file_blocks(&self, start: u64, len: u64) -> bool {
        self.layout.contains(start, len) && !self.system_blocks.overlaps(start, start + len)
    }
}

impl Volume {
    /// Whether this bug is switched on.
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.planted.has(bug)
    }
}

/// Superblocks, descriptors, bitmaps and inode tables of all groups.
pub(crate) fn group_metadata(layout: &Layout, groups: &[GroupDesc]) -> RangeSet {
    let mut set = RangeSet::new();
    for group in layout.all_groups() {
        let start = layout.group_start(group);
        set.insert(start, start + u64::from(layout.group_overhead(group)));
        let desc = &groups[group.0 as usize];
        for (block, len) in [
            (desc.block_bitmap(), 1),
            (desc.inode_bitmap(), 1),
            (desc.inode_table(), u64::from(layout.inode_table_blocks)),
        ] {
            set.insert(block, block + len);
        }
    }
    set
}

/// What no file may own: the groups' metadata, the journal's blocks, and the block of
/// multiple-mount protection.
pub(crate) fn system_blocks(
    layout: &Layout,
    superblock: &Superblock,
    group_metadata: &RangeSet,
    journal_blocks: &RangeSet,
) -> RangeSet {
    let mut system_blocks = group_metadata.clone();
    for (start, end) in journal_blocks.iter() {
        system_blocks.insert(start, end);
    }
    if layout.features.incompat.contains(Incompat::MMP) {
        let block = superblock.mmp_block.get();
        system_blocks.insert(block, block.saturating_add(1));
    }
    whole_clusters(layout, system_blocks)
}

/// No file may have a block of a cluster that has one of these.
fn whole_clusters(layout: &Layout, blocks: RangeSet) -> RangeSet {
    if layout.blocks_per_cluster == 1 {
        return blocks;
    }
    let mut whole = RangeSet::new();
    for (start, end) in blocks.iter() {
        let (start, end) = layout.whole_clusters(start, end);
        whole.insert(start, end);
    }
    whole
}
