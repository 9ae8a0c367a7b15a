//! Group descriptors, and the blocks that hold metadata.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{GroupDesc, GroupFlags, GroupNo, Incompat};

use crate::FindingKind;
use crate::checker::Checker;

/// Blocks of descriptors that are read at once.
const BATCH: u64 = 256;

impl Checker<'_> {
    /// Reads all descriptors and checks them by themselves.
    pub(super) fn load_groups(&mut self) -> Result<()> {
        let size = usize::from(self.image.layout.desc_size);
        let behind = u64::from(self.image.layout.first_meta_bg);
        let first = self.image.layout.superblock_place().0 + 1;
        let mut runs: Vec<(u64, u64)> = (0..behind)
            .step_by(BATCH as usize)
            .map(|at| (first + at, BATCH.min(behind - at)))
            .collect();
        // With meta_bg: each in the first group that it describes.
        let per_block = self.image.layout.descs_per_block();
        let rest = self.image.layout.first_meta_bg..self.image.layout.desc_blocks;
        runs.extend(rest.map(|n| (self.image.layout.desc_place(GroupNo(n * per_block)).0, 1)));
        for (block, count) in runs {
            let bytes = self.image.source.blocks(block, count)?;
            let left = self.image.layout.groups as usize - self.image.groups.len();
            self.image.groups.extend(bytes.chunks_exact(size).take(left).map(GroupDesc::parse));
        }
        for group in self.image.layout.all_groups() {
            self.check_group(group);
        }
        Ok(())
    }

    fn check_group(&mut self, group: GroupNo) {
        let d = *self.image.group(group);
        let l = &self.image.layout;
        let place = format_args!("group {group}");
        if !l.checksums.verify_group_desc(group, &d) {
            let text = "the descriptor's checksum is wrong";
            self.findings.add(FindingKind::GroupDescriptorChecksum, place, text);
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

    /// Claims superblocks, descriptors, bitmaps and inode tables.
    pub(super) fn claim_metadata(&mut self) {
        for group in self.image.layout.all_groups() {
            let len = self.image.layout.group_overhead(group);
            let len = u64::from(len.min(self.image.layout.blocks_in_group(group)));
            self.claim_for_metadata(group, "superblock", self.image.layout.group_start(group), len);
        }
        let table = u64::from(self.image.layout.inode_table_blocks);
        for group in self.image.layout.all_groups() {
            let d = *self.image.group(group);
            self.claim_for_metadata(group, "block bitmap", d.block_bitmap(), 1);
            self.claim_for_metadata(group, "inode bitmap", d.inode_bitmap(), 1);
            self.claim_for_metadata(group, "inode table", d.inode_table(), table);
        }
        if self.image.layout.features.incompat.contains(Incompat::MMP) {
            let block = self.image.sb.mmp_block.get();
            if let Some((group, _)) = self.image.layout.group_of_block(block) {
                self.claim_for_metadata(group, "block of multiple-mount protection", block, 1);
            }
        }
    }

    fn claim_for_metadata(&mut self, group: GroupNo, what: &str, start: u64, len: u64) {
        if len == 0 || !self.image.layout.contains(start, len) {
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
