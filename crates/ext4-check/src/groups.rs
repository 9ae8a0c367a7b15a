//! Group descriptors, and the blocks that hold metadata.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{GroupDesc, GroupFlags, GroupNo, Incompat};

use crate::{Checker, FindingKind};

/// Blocks of descriptors that are read at once.
const BATCH: u64 = 256;

impl Checker<'_> {
    /// Reads all descriptors and checks them by themselves.
    pub(super) fn load_groups(&mut self) -> Result<()> {
        let size = usize::from(self.layout.desc_size);
        let behind = u64::from(self.layout.first_meta_bg);
        let first = self.layout.superblock_place().0 + 1;
        let mut runs: Vec<(u64, u64)> = (0..behind)
            .step_by(BATCH as usize)
            .map(|at| (first + at, BATCH.min(behind - at)))
            .collect();
        // With meta_bg: each in the first group that it describes.
        let per_block = self.layout.descs_per_block();
        let rest = self.layout.first_meta_bg..self.layout.desc_blocks;
        runs.extend(rest.map(|n| (self.layout.desc_place(GroupNo(n * per_block)).0, 1)));
        for (block, count) in runs {
            let bytes = self.source.blocks(block, count)?;
            let left = self.layout.groups as usize - self.groups.len();
            self.groups.extend(bytes.chunks_exact(size).take(left).map(GroupDesc::parse));
        }
        for group in self.layout.all_groups() {
            self.check_group(group);
        }
        Ok(())
    }

    fn check_group(&mut self, group: GroupNo) {
        let d = self.groups[group.0 as usize];
        let l = &self.layout;
        let place = format_args!("group {group}");
        if !l.checksums.verify_group_desc(group, &d) {
            self.findings.add(
                FindingKind::GroupDescriptorChecksum,
                place,
                format_args!("the descriptor's checksum is wrong"),
            );
        }
        let mut bad = |text: std::fmt::Arguments| {
            self.findings.add(FindingKind::GroupDescriptor, format_args!("group {group}"), text);
        };
        let flex = l.features.incompat.contains(Incompat::FLEX_BG);
        let start = l.group_start(group);
        let end = start + u64::from(l.blocks_in_group(group));
        for (what, block, len) in [
            ("block bitmap", d.block_bitmap(), 1),
            ("inode bitmap", d.inode_bitmap(), 1),
            ("inode table", d.inode_table(), u64::from(l.inode_table_blocks)),
        ] {
            if !l.contains(block, len) {
                bad(format_args!("the {what} is at block {block}, outside the file system"));
            } else if !flex && (block < start || block + len > end) {
                bad(format_args!("the {what} is at block {block}, outside the group"));
            }
        }
        if d.free_blocks() > l.clusters_in_group(group) {
            bad(format_args!("{} free blocks", d.free_blocks()));
        }
        if d.free_inodes() > l.inodes_per_group {
            bad(format_args!("{} free inodes", d.free_inodes()));
        }
        if d.itable_unused() > l.inodes_per_group {
            bad(format_args!("{} inodes never used", d.itable_unused()));
        }
        // Its bitmap also says where the group ends: mke2fs always writes it.
        let last = group.0 + 1 == l.groups;
        if last && d.flags().contains(GroupFlags::BLOCK_UNINIT) {
            bad(format_args!("the block bitmap of the last group is marked as uninitialised"));
        }
        let marks = GroupFlags::INODE_UNINIT | GroupFlags::BLOCK_UNINIT;
        if !l.features.group_checksums() && d.flags().intersects(marks) {
            bad(format_args!("marked as uninitialised, which needs checksums"));
        }
    }

    /// Whether a group's descriptor says where the inode table is.
    pub(super) fn has_inode_table(&self, group: GroupNo) -> bool {
        let d = &self.groups[group.0 as usize];
        self.layout.contains(d.inode_table(), u64::from(self.layout.inode_table_blocks))
    }

    /// Flags of a group, none where they mean nothing.
    pub(super) fn group_flags(&self, group: GroupNo) -> GroupFlags {
        let d = &self.groups[group.0 as usize];
        if self.layout.features.group_checksums() && self.verify_group(group) {
            d.flags()
        } else {
            GroupFlags::empty()
        }
    }

    /// Whether a group's descriptor has the right checksum.
    fn verify_group(&self, group: GroupNo) -> bool {
        self.layout.checksums.verify_group_desc(group, &self.groups[group.0 as usize])
    }

    /// Inodes at the beginning of a group's table that may have been used.
    pub(super) fn inodes_to_scan(&self, group: GroupNo) -> u32 {
        let l = &self.layout;
        if !self.has_inode_table(group) {
            return 0;
        }
        if !l.features.group_checksums() || !self.verify_group(group) {
            return l.inodes_per_group;
        }
        if self.group_flags(group).contains(GroupFlags::INODE_UNINIT) {
            return 0;
        }
        let unused = self.groups[group.0 as usize].itable_unused();
        l.inodes_per_group - unused.min(l.inodes_per_group)
    }

    /// Claims superblocks, descriptors, bitmaps and inode tables.
    pub(super) fn claim_metadata(&mut self) {
        for group in self.layout.all_groups() {
            let len = self.layout.group_overhead(group);
            let len = u64::from(len.min(self.layout.blocks_in_group(group)));
            self.claim_for_metadata(group, "superblock", self.layout.group_start(group), len);
        }
        let table = u64::from(self.layout.inode_table_blocks);
        for group in self.layout.all_groups() {
            let d = self.groups[group.0 as usize];
            self.claim_for_metadata(group, "block bitmap", d.block_bitmap(), 1);
            self.claim_for_metadata(group, "inode bitmap", d.inode_bitmap(), 1);
            self.claim_for_metadata(group, "inode table", d.inode_table(), table);
        }
        if self.layout.features.incompat.contains(Incompat::MMP) {
            let block = self.sb.mmp_block.get();
            if let Some((group, _)) = self.layout.group_of_block(block) {
                self.claim_for_metadata(group, "block of multiple-mount protection", block, 1);
            }
        }
    }

    fn claim_for_metadata(&mut self, group: GroupNo, what: &str, start: u64, len: u64) {
        if len == 0 || !self.layout.contains(start, len) {
            return;
        }
        let findings = &mut self.findings;
        self.claims.claim_metadata(start, len, |block, n| {
            findings.add(
                FindingKind::MetadataPlace,
                format_args!("group {group}"),
                format_args!("{n} blocks from {block} on, in the {what}, are other metadata too"),
            );
        });
    }
}
