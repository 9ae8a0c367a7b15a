//! The whole file system before a byte of it is written.

use std::collections::BTreeMap;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    GroupDesc, GroupFlags, GroupNo, InodeNo, Layout, RawInode, Superblock,
};

use crate::journal::{self, ExternalJournal};
use crate::options::{Contents, JournalChoice, Options};
use crate::space::UsedRanges;
use crate::tables::{self, Tables};

/// The whole file system. Every block that `space` says is used is a superblock or descriptor
/// (see [`Layout::group_overhead`]), one of `tables`, one of `contents`, or the journal's.
pub(super) struct Plan {
    pub(super) sb: Superblock,
    pub(super) layout: Layout,
    pub(super) time: u64,
    pub(super) space: UsedRanges,
    /// Blocks of superblocks, descriptors and tables, with all of their clusters.
    group_metadata: u64,
    pub(super) tables: Vec<Tables>,
    /// All inodes in use, reserved ones included.
    pub(super) inodes: BTreeMap<InodeNo, RawInode>,
    pub(super) directories: Vec<InodeNo>,
    /// Blocks of directories, extent trees, the resize inode and the orphan file.
    pub(super) contents: BTreeMap<u64, Vec<u8>>,
    /// Blocks of the internal journal.
    pub(super) journal: Vec<(u64, u64)>,
    /// Descriptors, without checksums of bitmaps.
    pub(super) groups: Vec<GroupDesc>,
}

impl Plan {
    /// Places everything.
    pub(super) fn new(sb: Superblock, layout: Layout, options: &Options) -> Result<Plan> {
        let mut space = UsedRanges::default();
        let tables = tables::place(&layout, &mut space)?;
        space.fill_clusters(layout.blocks_per_cluster.into());
        let mut plan = Plan {
            sb,
            layout,
            time: options.time,
            group_metadata: space.used(),
            space,
            tables,
            inodes: BTreeMap::new(),
            directories: Vec::new(),
            contents: BTreeMap::new(),
            journal: Vec::new(),
            groups: Vec::new(),
        };
        plan.add_reserved();
        plan.add_directories(options)?;
        plan.add_resize_inode()?;
        plan.add_quota_files()?;
        plan.add_orphan_file()?;
        if matches!(options.journal, JournalChoice::Internal | JournalChoice::InternalOf(_)) {
            let runs = journal::place_internal(&mut plan, options)?;
            plan.add_journal_inode(&runs)?;
            plan.journal = runs;
        }
        for (ino, inode) in &mut plan.inodes {
            plan.layout.checksums.set_inode(*ino, inode);
        }
        plan.describe_groups(options);
        plan.count();
        Ok(plan)
    }

    /// Names the external journal in the superblock.
    pub(super) fn attach(&mut self, external: &ExternalJournal) {
        self.sb.journal_uuid = *external.uuid.as_bytes();
    }

    /// Used blocks of a group.
    pub(super) fn used_blocks(&self, group: GroupNo) -> u32 {
        let start = self.layout.group_start(group);
        let end = start + u64::from(self.layout.blocks_in_group(group));
        self.space.used_in(start, end).map(|(s, e)| (e - s) as u32).sum()
    }

    /// Blocks of a group that a bitmap marked as uninitialised stands for.
    fn implied_blocks(&self, group: GroupNo) -> u32 {
        let start = self.layout.group_start(group);
        let end = start + u64::from(self.layout.blocks_in_group(group));
        let t = &self.tables[group.0 as usize];
        let within = |at: u64| u32::from((start..end).contains(&at));
        self.layout.group_overhead(group)
            + within(t.block_bitmap)
            + within(t.inode_bitmap)
            + within(t.inode_table) * self.layout.inode_table_blocks
    }

    fn describe_groups(&mut self, options: &Options) {
        let ipg = self.layout.inodes_per_group;
        let marks = self.layout.features.group_checksums();
        let zeroed = options.contents != Contents::Unknown || !marks;
        self.groups = self
            .layout
            .all_groups()
            .map(|group| {
                let t = self.tables[group.0 as usize];
                let (first, last) =
                    (self.layout.inode_number(group, 0), self.layout.inode_number(group, ipg - 1));
                let used: Vec<InodeNo> = self.inodes.range(first..=last).map(|(i, _)| *i).collect();
                let used_blocks = self.used_blocks(group);
                let mut d = GroupDesc::zeroed(usize::from(self.layout.desc_size));
                d.set_block_bitmap(t.block_bitmap);
                d.set_inode_bitmap(t.inode_bitmap);
                d.set_inode_table(t.inode_table);
                let free = self.layout.blocks_in_group(group) - used_blocks;
                d.set_free_blocks(free / self.layout.blocks_per_cluster);
                d.set_free_inodes(ipg - used.len() as u32);
                let dirs = self.directories.iter().filter(|i| (first..=last).contains(i)).count();
                d.set_used_dirs(dirs as u32);
                if marks {
                    let high = used.last().map_or(0, |i| i.0 - first.0 + 1);
                    d.set_itable_unused(ipg - high);
                    let mut flags = GroupFlags::empty();
                    flags.set(GroupFlags::INODE_ZEROED, zeroed);
                    flags.set(GroupFlags::INODE_UNINIT, used.is_empty());
                    let last_group = group.0 + 1 == self.layout.groups;
                    // With clusters all bitmaps are written.
                    let blank = used_blocks == self.implied_blocks(group)
                        && self.layout.blocks_per_cluster == 1
                        && !last_group;
                    flags.set(GroupFlags::BLOCK_UNINIT, blank && group.0 != 0);
                    d.set_flags(flags);
                }
                d
            })
            .collect();
    }

    fn count(&mut self) {
        let ratio = u64::from(self.layout.blocks_per_cluster);
        let free: u64 = self.groups.iter().map(|d| u64::from(d.free_blocks())).sum();
        self.sb.set_free_blocks(free * ratio);
        self.sb.free_inodes.set(self.groups.iter().map(GroupDesc::free_inodes).sum());
        let journal: u64 = self.journal.iter().map(|(_, len)| len.div_ceil(ratio)).sum();
        let overhead = self.layout.first_data_block + self.group_metadata / ratio + journal;
        self.sb.overhead_clusters.set(overhead.min(u64::from(u32::MAX)) as u32);
    }
}
