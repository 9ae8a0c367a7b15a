//! Walks through the old kind of block map: twelve direct blocks, then blocks of pointers of one,
//! two and three levels. In an ext4 file system only a few inodes have one.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{InodeNo, RawInode};
use steadfast_vfs::FileType;

use crate::FindingKind;
use crate::checker::Checker;
use crate::inodes::InodeExtents;
use crate::orphans::Fate;

/// Blocks that an inode points to directly.
const DIRECT: usize = 12;

/// One walk.
struct Walk {
    ino: InodeNo,
    keep_runs: bool,
    mapped: InodeExtents,
    /// The cluster of the block before.
    cluster: Option<u64>,
}

/// The pointer at an index of a block of pointers.
pub(super) fn pointer(block: &[u8], index: usize) -> u32 {
    let at = index * 4;
    block.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

impl Checker<'_> {
    /// Walks through the map of an inode without extents.
    pub(super) fn walk_block_map(
        &mut self,
        ino: InodeNo,
        inode: &RawInode,
    ) -> Result<InodeExtents> {
        let keep_runs = self.image.needs_runs(ino, inode);
        let mut walk = Walk { ino, keep_runs, mapped: InodeExtents::default(), cluster: None };
        let root = inode.block();
        let per_block = u64::from(self.image.layout.block_size / 4);
        let mut at = 0;
        for i in 0..DIRECT {
            self.map_data(&mut walk, at, pointer(root, i));
            at += 1;
        }
        let mut covers = 1;
        for level in 1..=3 {
            covers *= per_block;
            let block = pointer(root, DIRECT + level - 1);
            self.map_pointers(&mut walk, at, block, level, covers)?;
            at += covers;
        }
        let is_dir = inode.file_type() == Some(FileType::Directory);
        if is_dir && self.fate(ino, inode) == Fate::Stays {
            self.check_holes(&walk);
        }
        Ok(walk.mapped)
    }

    fn check_holes(&mut self, walk: &Walk) {
        let mapped: u64 = walk.mapped.runs.iter().map(|(_, _, len)| u64::from(*len)).sum();
        if mapped < walk.mapped.end {
            let (ino, text) = (walk.ino, "a directory with holes");
            self.inode_finding(ino, FindingKind::DirectoryHole, text);
        }
    }

    /// Whether a pointer leads to a block of the file system that is nobody else's.
    fn map_block(&mut self, walk: &mut Walk, block: u32) -> bool {
        let (ino, block) = (walk.ino, u64::from(block));
        if !self.image.layout.contains(block, 1) {
            let text = format_args!("points to block {block}, outside the file system");
            self.inode_finding(ino, FindingKind::BlockMap, text);
            return false;
        }
        let ratio = u64::from(self.image.layout.blocks_per_cluster);
        if walk.cluster.replace(block / ratio) == Some(block / ratio) && ratio > 1 {
            return true;
        }
        walk.mapped.blocks += ratio;
        !self.claim_for_inode(ino, block, 1)
    }

    fn map_data(&mut self, walk: &mut Walk, at: u64, block: u32) {
        if block == 0 {
            return;
        }
        if self.map_block(walk, block) && walk.keep_runs && at < 1 << 32 {
            walk.mapped.runs.push((at as u32, u64::from(block), 1));
        }
        walk.mapped.end = at + 1;
        walk.mapped.written_end = at + 1;
    }

    fn map_pointers(
        &mut self,
        walk: &mut Walk,
        at: u64,
        block: u32,
        level: usize,
        covers: u64,
    ) -> Result<()> {
        if block == 0 || !self.map_block(walk, block) {
            return Ok(());
        }
        let bytes = self.image.source.block(u64::from(block))?;
        let per_block = u64::from(self.image.layout.block_size / 4);
        let each = covers / per_block;
        for i in 0..per_block {
            let next = pointer(&bytes, i as usize);
            if level == 1 {
                self.map_data(walk, at + i, next);
            } else {
                self.map_pointers(walk, at + i * each, next, level - 1, each)?;
            }
        }
        Ok(())
    }
}
