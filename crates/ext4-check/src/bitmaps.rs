//! Bitmaps and counters against what was found in use.

use std::fmt::Display;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{GroupFlags, GroupNo};
use steadfast_vfs::FileType;

use crate::FindingKind;
use crate::claims::Claims;
use crate::finding::Findings;
use crate::image::Image;
use crate::table::InodeTable;

/// Free clusters (blocks without `bigalloc`), free inodes and directories of a group, as counted.
#[derive(Default)]
struct GroupCounts {
    free_clusters: u32,
    free_inodes: u32,
    directories: u32,
}

/// A bitmap as words of 64 bits; bits from `bits` on are left clear.
fn words_of(bytes: &[u8], bits: u32) -> Vec<u64> {
    let mut words: Vec<u64> =
        bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
    words.truncate((bits as usize).div_ceil(64));
    if let (Some(last), rest @ 1..) = (words.last_mut(), bits % 64) {
        *last &= (1 << rest) - 1;
    }
    words
}

/// Whether all bits from `from` to `to` are set.
fn all_set(bytes: &[u8], from: u32, to: u32) -> bool {
    (from..to).all(|i| bytes.get((i / 8) as usize).is_some_and(|b| b >> (i % 8) & 1 != 0))
}

/// The first bit in which two bitmaps differ, and how many there are.
fn differences(a: &[u64], b: &[u64]) -> Option<(u32, u32)> {
    let mut first = None;
    let mut count = 0;
    for (i, (x, y)) in a.iter().zip(b).enumerate() {
        let d = x ^ y;
        if d != 0 && first.is_none() {
            first = Some(i as u32 * 64 + d.trailing_zeros());
        }
        count += d.count_ones();
    }
    first.map(|f| (f, count))
}

/// Bitmaps and counters against who uses what.
pub(super) struct BitmapCheck<'c, 'a> {
    pub(super) image: &'c Image<'a>,
    pub(super) findings: &'c mut Findings,
    pub(super) claims: &'c Claims,
    pub(super) inodes: &'c InodeTable,
}

impl BitmapCheck<'_, '_> {
    /// Gives the numbers of free blocks and inodes.
    pub(super) fn run(&mut self) -> Result<(u64, u64)> {
        let (mut free_blocks, mut free_inodes) = (0u64, 0u64);
        for group in self.image.layout.all_groups() {
            let mut counted = GroupCounts::default();
            self.check_block_bitmap(group, &mut counted)?;
            self.check_inode_bitmap(group, &mut counted)?;
            self.check_group_counts(group, &counted);
            free_blocks += u64::from(counted.free_clusters);
            free_inodes += u64::from(counted.free_inodes);
        }
        free_blocks *= u64::from(self.image.layout.blocks_per_cluster);
        // While mounted the superblock's counters are only brought up to date now and then.
        if self.image.is_in_use() {
            return Ok((free_blocks, free_inodes));
        }
        let place = "superblock";
        let said = self.image.sb.free_blocks();
        if said != free_blocks {
            let text = format_args!("{said} free blocks, counted {free_blocks}");
            self.findings.add(FindingKind::FreeBlocks, place, text);
        }
        let said = u64::from(self.image.sb.free_inodes.get());
        if said != free_inodes {
            let text = format_args!("{said} free inodes, counted {free_inodes}");
            self.findings.add(FindingKind::FreeInodes, place, text);
        }
        Ok((free_blocks, free_inodes))
    }

    fn bitmap_finding(&mut self, group: GroupNo, kind: FindingKind, text: impl Display) {
        self.findings.add(kind, format_args!("group {group}"), text);
    }

    /// The words that a block bitmap marked as uninitialised stands for.
    fn implied_blocks(&self, group: GroupNo) -> Vec<u64> {
        let l = &self.image.layout;
        let bits = l.clusters_in_group(group);
        let (start, ratio) = (l.group_start(group), u64::from(l.blocks_per_cluster));
        let mut words = vec![0u64; (bits as usize).div_ceil(64)];
        let mut set = |block: u64| {
            if let Some(i) =
                block.checked_sub(start).map(|i| i / ratio).filter(|i| *i < bits.into())
            {
                words[(i / 64) as usize] |= 1 << (i % 64);
            }
        };
        let d = self.image.group(group);
        (0..u64::from(l.group_overhead(group))).for_each(|i| set(start + i));
        set(d.block_bitmap());
        set(d.inode_bitmap());
        let table = u64::from(l.inode_table_blocks);
        (0..table).for_each(|i| set(d.inode_table().saturating_add(i)));
        words
    }

    fn check_block_bitmap(&mut self, group: GroupNo, counted: &mut GroupCounts) -> Result<()> {
        let bits = self.image.layout.clusters_in_group(group);
        let uninit = self.image.group_flags(group).contains(GroupFlags::BLOCK_UNINIT);
        if uninit && self.claims.group(group).is_none() {
            counted.free_clusters = bits;
            return Ok(());
        }
        let d = *self.image.group(group);
        let on_disk = if uninit {
            self.implied_blocks(group)
        } else if self.image.layout.contains(d.block_bitmap(), 1) {
            let bytes = self.image.source.block(d.block_bitmap())?;
            let cpg = self.image.layout.clusters_per_group();
            if !self.image.layout.checksums.verify_block_bitmap(&bytes, cpg, &d) {
                let text = "the block bitmap's checksum is wrong";
                self.bitmap_finding(group, FindingKind::BlockBitmapChecksum, text);
            }
            if !all_set(&bytes, bits, self.image.layout.block_size * 8) {
                let text = "bits beyond the last block are clear";
                self.bitmap_finding(group, FindingKind::BitmapPadding, text);
            }
            words_of(&bytes, bits)
        } else {
            vec![0; (bits as usize).div_ceil(64)]
        };
        let empty;
        let claimed = match self.claims.group(group) {
            Some(words) => words,
            None => {
                empty = vec![0; on_disk.len()];
                &empty
            }
        };
        let used: u32 = claimed.iter().map(|w| w.count_ones()).sum();
        counted.free_clusters = bits.saturating_sub(used);
        if let Some((first, count)) = differences(&on_disk, claimed) {
            let ratio = u64::from(self.image.layout.blocks_per_cluster);
            let block = self.image.layout.group_start(group) + u64::from(first) * ratio;
            let what = if ratio == 1 { "blocks" } else { "clusters" };
            let text = format_args!(
                "the block bitmap is wrong for {count} {what}, the first is block {block}"
            );
            self.bitmap_finding(group, FindingKind::BlockBitmap, text);
        }
        Ok(())
    }

    fn check_inode_bitmap(&mut self, group: GroupNo, counted: &mut GroupCounts) -> Result<()> {
        let ipg = self.image.layout.inodes_per_group;
        let known = self.inodes.group(group);
        let mut used = vec![0u64; (ipg as usize).div_ceil(64)];
        for (i, _) in known.iter().enumerate().filter(|(_, k)| k.used) {
            used[i / 64] |= 1 << (i % 64);
        }
        let count = known.iter().filter(|k| k.used).count() as u32;
        counted.free_inodes = ipg - count;
        counted.directories =
            known.iter().filter(|k| k.used && k.kind == Some(FileType::Directory)).count() as u32;
        if self.image.group_flags(group).contains(GroupFlags::INODE_UNINIT) {
            return Ok(());
        }
        let d = *self.image.group(group);
        let on_disk = if self.image.layout.contains(d.inode_bitmap(), 1) {
            let bytes = self.image.source.block(d.inode_bitmap())?;
            if !self.image.layout.checksums.verify_inode_bitmap(&bytes, ipg, &d) {
                let text = "the inode bitmap's checksum is wrong";
                self.bitmap_finding(group, FindingKind::InodeBitmapChecksum, text);
            }
            if !all_set(&bytes, ipg, self.image.layout.block_size * 8) {
                let text = "bits beyond the last inode are clear";
                self.bitmap_finding(group, FindingKind::BitmapPadding, text);
            }
            words_of(&bytes, ipg)
        } else {
            vec![0; used.len()]
        };
        if let Some((first, count)) = differences(&on_disk, &used) {
            let ino = self.image.layout.inode_number(group, first);
            let text = format_args!(
                "the inode bitmap is wrong for {count} inodes, the first is inode {ino}"
            );
            self.bitmap_finding(group, FindingKind::InodeBitmap, text);
        }
        Ok(())
    }

    fn check_group_counts(&mut self, group: GroupNo, counted: &GroupCounts) {
        let d = *self.image.group(group);
        let free = if self.image.layout.blocks_per_cluster == 1 { "blocks" } else { "clusters" };
        let free = format!("free {free}");
        for (kind, what, said, counted) in [
            (FindingKind::FreeBlocks, free.as_str(), d.free_blocks(), counted.free_clusters),
            (FindingKind::FreeInodes, "free inodes", d.free_inodes(), counted.free_inodes),
            (FindingKind::UsedDirectories, "directories", d.used_dirs(), counted.directories),
        ] {
            if said != counted {
                self.bitmap_finding(group, kind, format_args!("{said} {what}, counted {counted}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_compared() {
        let bytes = [0xff, 0, 0, 0, 0, 0, 0, 0, 0xf1, 0xff, 0, 0, 0, 0, 0, 0];
        assert_eq!(words_of(&bytes, 70), [0xff, 0x31]);
        assert_eq!(differences(&[1, 0], &[1, 6]), Some((65, 2)));
        assert_eq!(differences(&[1, 6], &[1, 6]), None);
        assert!(all_set(&bytes, 68, 80) && !all_set(&bytes, 64, 80));
    }
}
