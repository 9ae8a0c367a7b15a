//! Groups, inodes and descriptors of the new file system, which depend on each other.

use steadfast_block::DeviceInfo;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    Compat, Features, GroupNo, Incompat, RoCompat, is_sparse_backup,
};

use crate::choices::{blocks_per_cluster, default_inode_ratio};
use crate::options::{Options, refused};

/// Most clusters (blocks without `bigalloc`) a group: their number has 16 bits in short
/// descriptors.
const CLUSTERS_PER_GROUP_MAX: u32 = (1 << 16) - 8;
/// Blocks of the smallest file system with the features that it has by itself.
const SMALLEST_BLOCKS: u64 = 60;

/// Counts that depend on each other.
pub(super) struct Counts {
    pub blocks: u64,
    pub blocks_per_cluster: u32,
    pub blocks_per_group: u32,
    pub inodes_per_group: u32,
    pub groups: u32,
    pub desc_blocks: u32,
    pub reserved_gdt: u32,
    /// For the super-user.
    pub reserved: u64,
}

/// Blocks that a file system is to be able to grow to unless it is said: 1024 times its size.
fn grown(blocks: u64) -> u64 {
    const MOST: u64 = 0xffff_ffff;
    if blocks < MOST / 1024 { blocks * 1024 } else { MOST }
}

/// Blocks reserved for descriptors: enough to grow so far (`calc_reserved_gdt_blocks`).
fn reserved_gdt(grown: u64, first: u64, bpg: u32, descs_per_block: u32, desc_blocks: u32) -> u32 {
    let groups = (grown - first).div_ceil(u64::from(bpg));
    groups.div_ceil(u64::from(descs_per_block)).saturating_sub(u64::from(desc_blocks)) as u32
}

/// Blocks of a group's inode table, and its inodes: at least `ipg`, whole blocks of the table and
/// whole bytes of the bitmap.
fn inode_table(mut ipg: u64, groups: u64, inodes: u64, inode_size: u64, bs: u64) -> (u64, u32) {
    loop {
        let filled = (ipg * inode_size).div_ceil(bs) * bs / inode_size;
        let rounded = filled.max(8) & !7;
        if rounded * groups < inodes.min(12) {
            ipg += 8;
        } else if rounded * groups > u64::from(u32::MAX) {
            ipg -= 1;
        } else {
            return ((rounded * inode_size).div_ceil(bs), rounded as u32);
        }
    }
}

/// Inodes that are wanted in all.
fn inodes_wanted(options: &Options, bytes: u64, cluster_size: u32) -> u64 {
    // A file takes a cluster at the least.
    let default = || default_inode_ratio(bytes).max(cluster_size);
    let ratio = options.inode_ratio.unwrap_or_else(default);
    let inodes = match options.inodes {
        Some(n) => u64::from(n),
        None => (bytes / u64::from(ratio)).min(u64::from(u32::MAX)),
    };
    inodes.max(12)
}

pub(super) fn counts(
    info: &DeviceInfo,
    options: &Options,
    features: Features,
    block_size: u32,
) -> Result<Counts> {
    let too_small = || {
        refused(format!(
            "too small for a file system: {} bytes are {} blocks of {block_size} bytes, about \
             {SMALLEST_BLOCKS} are needed",
            info.size,
            info.size / u64::from(block_size)
        ))
    };
    let is_backup = |group| {
        let sparse = features.ro_compat.contains(RoCompat::SPARSE_SUPER);
        let named = features.compat.contains(Compat::SPARSE_SUPER2);
        named || !sparse || is_sparse_backup(GroupNo(group))
    };
    let bs = u64::from(block_size);
    let per_cluster = blocks_per_cluster(options, block_size)?;
    let first = u64::from(block_size == 1024 && per_cluster == 1);
    // As mke2fs: whole pages of a device, exactly what was asked for otherwise.
    let whole_pages = (info.size / bs) & !((4096 / bs).max(1) - 1);
    let wanted = options.blocks.unwrap_or(whole_pages);
    let wide = features.incompat.contains(Incompat::BIT64);
    if !wide && wanted > u64::from(u32::MAX) {
        return Err(refused("more than 2^32 blocks need the 64bit feature"));
    }
    let wanted = wanted - wanted % u64::from(per_cluster);
    let inodes = inodes_wanted(options, wanted * bs, block_size * per_cluster);
    let descs_per_block = block_size / if wide { 64 } else { 32 };
    let inode_size = u64::from(options.inode_size);
    let cpg = (block_size * 8).min(CLUSTERS_PER_GROUP_MAX);
    let (mut blocks, mut bpg) = (wanted, cpg * per_cluster);
    // As mke2fs: reckoned anew when blocks are left out, not when they come back because groups
    // became smaller.
    let mut reserved = (wanted as f64 * options.reserved_percent / 100.0) as u64;
    let ratio = 100.0 * reserved as f64 / wanted.max(1) as f64;
    loop {
        if blocks <= first + 8 {
            return Err(too_small());
        }
        let groups = (blocks - first).div_ceil(u64::from(bpg));
        let Ok(groups32) = u32::try_from(groups) else { return Err(refused("too many groups")) };
        let desc_blocks = groups.div_ceil(u64::from(descs_per_block)) as u32;
        let ipg = inodes.div_ceil(groups);
        if ipg > u64::from(block_size * 8) {
            // More inodes than a bitmap can hold: smaller groups, hence more of them.
            if bpg < 256 || per_cluster > 1 {
                return Err(refused(format!("{inodes} inodes are too many for its size")));
            }
            (bpg, blocks) = (bpg - 8, wanted);
            continue;
        }
        // As mke2fs: their number has 16 bits in short descriptors.
        let ipg = ipg.min((1 << 16) - bs / inode_size);
        let (table, ipg) = inode_table(ipg, groups, inodes, inode_size, bs);
        let reserved_gdt = if features.compat.contains(Compat::RESIZE_INODE) {
            let enough = |to| reserved_gdt(to, first, bpg, descs_per_block, desc_blocks);
            let by_default = || enough(grown(blocks));
            // As mke2fs: what needs no block more is not taken at its word.
            let wanted = options.grows_to.map_or(0, enough);
            (if wanted > 0 { wanted } else { by_default() }).min(block_size / 4)
        } else {
            0
        };
        let meta_bg = features.incompat.contains(Incompat::META_BG);
        let descs_in_group = if meta_bg { 1 } else { desc_blocks };
        let backup = u64::from(1 + descs_in_group + reserved_gdt);
        if backup + table + 2 > u64::from(bpg) {
            return Err(refused(format!(
                "{inodes} inodes and the group descriptors leave no room in a group: choose \
                 fewer inodes or larger blocks"
            )));
        }
        let last_needs = 2 + table + if meta_bg || is_backup(groups32 - 1) { backup } else { 0 };
        let rest = (blocks - first) % u64::from(bpg);
        if groups == 1 && rest != 0 && rest < last_needs {
            return Err(too_small());
        }
        if rest != 0 && rest < last_needs + 50 {
            // A last group without room for its own tables is left out.
            blocks -= rest;
            reserved = (ratio * blocks as f64 / 100.0) as u64;
            continue;
        }
        return Ok(Counts {
            blocks,
            blocks_per_cluster: per_cluster,
            blocks_per_group: bpg,
            inodes_per_group: ipg,
            groups: groups32,
            desc_blocks,
            reserved_gdt,
            reserved,
        });
    }
}
