//! The resize inode: its double-indirect block points to each block that is reserved behind the
//! group descriptors, and each of those lists its copies in the backups. All but the
//! double-indirect block itself are claimed as metadata already.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{Compat, InodeNo, RawInode};

use crate::FindingKind;
use crate::blockmap::pointer;
use crate::checker::Checker;

/// Index of the double-indirect pointer in an inode.
const DOUBLE: usize = 13;

impl Checker<'_> {
    pub(super) fn check_resize(&mut self, inode: &RawInode) -> Result<()> {
        let root = inode.block();
        let used: Vec<usize> = (0..15).filter(|i| pointer(root, *i) != 0).collect();
        if !self.image.layout.features.compat.contains(Compat::RESIZE_INODE) {
            if !used.is_empty() || inode.blocks_field() != 0 {
                self.bad_resize("it is in use, but the resize_inode feature is off");
            }
            return Ok(());
        }
        if self.image.layout.reserved_gdt_blocks == 0 && used.is_empty() {
            return Ok(());
        }
        let double = u64::from(pointer(root, DOUBLE));
        if used != [DOUBLE] || inode.links() != 1 || !self.image.layout.contains(double, 1) {
            self.bad_resize("it does not consist of one double-indirect block");
            return Ok(());
        }
        if self.claim_for_inode(InodeNo::RESIZE, double, 1) {
            return Ok(());
        }
        let blocks = self.walk_reserved(double)?;
        // Each of them counts as a whole cluster.
        let unit = self.image.layout.cluster_size() / 512;
        if inode.blocks_field() != blocks * unit {
            let text =
                format_args!("storage used is {}, counted {}", inode.blocks_field(), blocks * unit);
            self.findings.add(FindingKind::InodeBlocks, "inode 7", text);
        }
        Ok(())
    }

    fn bad_resize(&mut self, text: &str) {
        let place = "inode 7 (resize)";
        self.findings.add(FindingKind::ResizeInode, place, text);
    }

    /// Checks the pointers, and counts all blocks that are pointed to.
    fn walk_reserved(&mut self, double: u64) -> Result<u64> {
        let pointers = self.image.source.block(double)?;
        let per_block = pointers.len() / 4;
        let bpg = u64::from(self.image.layout.blocks_per_group);
        let desc_blocks = self.image.layout.desc_blocks as usize;
        let first = self.image.layout.superblock_place().0 + 1 + desc_blocks as u64;
        let backups: Vec<u64> = self.image.layout.backup_groups().map(|g| u64::from(g.0)).collect();
        for i in 0..self.image.layout.reserved_gdt_blocks as usize {
            let primary = first + i as u64;
            if u64::from(pointer(&pointers, (desc_blocks + i) % per_block)) != primary {
                self.bad_resize("its pointers do not match the reserved blocks");
                break;
            }
            let list = self.image.source.block(primary)?;
            let right = backups
                .iter()
                .enumerate()
                .all(|(j, group)| u64::from(pointer(&list, j)) == primary + group * bpg);
            if !right {
                self.bad_resize("the copies of a reserved block are not where they should be");
                break;
            }
        }
        self.count_reserved(&pointers)
    }

    /// All blocks that are pointed to, also where nothing should be.
    fn count_reserved(&mut self, pointers: &[u8]) -> Result<u64> {
        let per_block = pointers.len() / 4;
        let mut count = 1;
        for list in (0..per_block).map(|i| u64::from(pointer(pointers, i))).filter(|p| *p != 0) {
            if !self.image.layout.contains(list, 1) {
                self.bad_resize("it points outside the file system");
                continue;
            }
            count += 1;
            let list = self.image.source.block(list)?;
            for copy in (0..per_block).map(|j| u64::from(pointer(&list, j))).filter(|p| *p != 0) {
                if !self.image.layout.contains(copy, 1) {
                    self.bad_resize("it points outside the file system");
                }
                count += 1;
            }
        }
        Ok(count)
    }
}
