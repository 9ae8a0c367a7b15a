//! Sizes and counts of the new file system, as `ext2fs_initialize` and mke2fs settle them.

use std::sync::Arc;

use steadfast_block::DeviceInfo;
use steadfast_ext4_format::ondisk::{
    Checksums, Compat, DefaultMountOptions, ENCODING_UTF8_12_1, Features, HashVersion, Incompat,
    RoCompat, SUPERBLOCK_MAGIC, StateFlags, SuperFlags, Superblock,
};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::external;

use crate::options::{JournalChoice, Options};
use crate::refused;

/// Most clusters (blocks without `bigalloc`) a group: their number has 16 bits in short
/// descriptors.
const CLUSTERS_PER_GROUP_MAX: u32 = (1 << 16) - 8;
/// Blocks a cluster with `bigalloc`, as mke2fs.
const CLUSTER_BLOCKS: u32 = 16;
/// Largest cluster, bytes: the blocks of a group stay below 2^32.
const CLUSTER_MAX: u32 = 256 << 20;

/// The features that can be made.
fn possible() -> Features {
    let mut all = Options::upstream_features();
    all.compat |= Compat::HAS_JOURNAL | Compat::DIR_PREALLOC | Compat::STABLE_INODES;
    all.compat |= Compat::SPARSE_SUPER2 | Compat::FAST_COMMIT;
    all.incompat |= Incompat::META_BG | Incompat::EA_INODE | Incompat::CASEFOLD;
    all.ro_compat |= RoCompat::GDT_CSUM | RoCompat::BIGALLOC;
    all.ro_compat |= RoCompat::QUOTA | RoCompat::PROJECT;
    all
}

/// Usage types of mke2fs.conf: bytes of space for each inode by size of the file system.
fn default_inode_ratio(bytes: u64) -> u32 {
    const MIB: u64 = 1 << 20;
    match bytes {
        b if b < 3 * MIB => 8192,
        b if b < 512 * MIB => 4096,
        b if b < 4 * MIB * MIB => 16384,
        b if b < 16 * MIB * MIB => 32768,
        _ => 65536,
    }
}

/// The blocks of a journal device, which the file system's must equal. What is wrong with the
/// device is said when it is looked at as a journal.
fn journal_block_size(journal: &JournalChoice) -> Option<u32> {
    let JournalChoice::External { device, .. } = journal else { return None };
    external::open_device(Arc::clone(device)).ok().map(|found| found.log.block_size())
}

/// The size of blocks on a device, in bytes, where none is asked for.
#[must_use]
pub fn default_block_size(info: &DeviceInfo) -> u32 {
    // Files can be used in place, in memory, where a block is a page.
    let pages = info.physical_block == 4096 && info.atomic_write < 512;
    let by_size = if info.size < 512 << 20 && !pages { 1024 } else { 4096 };
    by_size.max(info.logical_block)
}

fn block_size(info: &DeviceInfo, options: &Options) -> Result<u32> {
    let wanted = options.block_size.or_else(|| journal_block_size(&options.journal));
    let size = wanted.unwrap_or_else(|| default_block_size(info));
    if !size.is_power_of_two() || !(1024..=65536).contains(&size) {
        let what = format!("blocks of {size} bytes: choose a power of two from 1024 to 65536");
        return Err(refused(what));
    }
    if size < info.logical_block {
        return Err(refused(format!(
            "{}: its sectors have {} bytes, blocks of {size} are too small",
            info.name, info.logical_block
        )));
    }
    Ok(size)
}

/// Blocks a cluster: 1 without `bigalloc`.
fn blocks_per_cluster(options: &Options, block_size: u32) -> Result<u32> {
    if !options.features.ro_compat.contains(RoCompat::BIGALLOC) {
        return match options.cluster_size {
            None => Ok(1),
            Some(_) => Err(refused("a size of clusters needs the bigalloc feature (-O bigalloc)")),
        };
    }
    let size = options.cluster_size.unwrap_or(block_size * CLUSTER_BLOCKS);
    if !size.is_power_of_two() || size <= block_size || size > CLUSTER_MAX {
        return Err(refused(format!(
            "clusters of {size} bytes: choose a power of two, more than a block ({block_size}) and \
             at most {CLUSTER_MAX}"
        )));
    }
    Ok(size / block_size)
}

fn features(options: &Options) -> Result<Features> {
    let mut f = options.features;
    f.compat.set(Compat::HAS_JOURNAL, options.has_journal());
    let impossible = f.without(possible());
    if impossible != Features::default() {
        let what = format!("making {}", impossible.names().join(", "));
        return Err(Ext4Error::Unsupported { what });
    }
    let has_extents = f.incompat.contains(Incompat::EXTENT);
    if f.incompat.contains(Incompat::BIT64) && !has_extents {
        return Err(refused("64bit needs extent: pointers of block maps have 32 bits"));
    }
    if f.ro_compat.contains(RoCompat::BIGALLOC) && !has_extents {
        return Err(refused("bigalloc needs extent: block maps do not know of clusters"));
    }
    let sparse = f.ro_compat.contains(RoCompat::SPARSE_SUPER);
    let resize = f.compat.contains(Compat::RESIZE_INODE);
    if resize && !sparse {
        return Err(refused("resize_inode needs sparse_super"));
    }
    if resize && f.incompat.contains(Incompat::META_BG) {
        return Err(refused("meta_bg and resize_inode exclude each other: leave one out"));
    }
    if f.metadata_csum() {
        // One replaces the other; the kernel warns where both are set.
        f.ro_compat.remove(RoCompat::GDT_CSUM);
    } else if f.incompat.contains(Incompat::CSUM_SEED) {
        return Err(refused("metadata_csum_seed needs metadata_csum"));
    }
    if f.compat.contains(Compat::ORPHAN_FILE) && !options.has_journal() {
        return Err(refused("orphan_file needs a journal"));
    }
    if f.compat.contains(Compat::FAST_COMMIT) && !options.has_journal() {
        return Err(refused("fast_commit needs a journal"));
    }
    Ok(f)
}

fn check(info: &DeviceInfo, options: &Options, block_size: u32) -> Result<()> {
    let inode_size = u32::from(options.inode_size);
    if !inode_size.is_power_of_two() || inode_size < 128 || inode_size > block_size {
        return Err(refused(format!(
            "inodes of {inode_size} bytes: choose a power of two from 128 bytes to a block \
             ({block_size} bytes)"
        )));
    }
    if options.label.len() > 16 {
        return Err(refused(format!("the label {:?} is longer than 16 bytes", options.label)));
    }
    if !(0.0..=50.0).contains(&options.reserved_percent) {
        let what = format!("{} percent reserved: choose 0 to 50", options.reserved_percent);
        return Err(refused(what));
    }
    let flex = options.groups_per_flex;
    if options.features.incompat.contains(Incompat::FLEX_BG)
        && (!flex.is_power_of_two() || flex > 1 << 16)
    {
        return Err(refused(format!(
            "{flex} groups a flexible group: choose a power of two up to 65536"
        )));
    }
    if options.inode_ratio.is_some_and(|r| r < block_size.min(1024) || r > 4 << 20) {
        return Err(refused("choose 1024 bytes to 4 MiB (4194304 bytes) for each inode"));
    }
    if options.features.ro_compat.contains(RoCompat::PROJECT) && inode_size <= 128 {
        return Err(refused("project needs inodes of more than 128 bytes (-I 256)"));
    }
    let quota_with_values = options.features.ro_compat.contains(RoCompat::QUOTA)
        && options.features.incompat.contains(Incompat::EA_INODE);
    if quota_with_values {
        return Err(refused("quota together with ea_inode"));
    }
    let strict = options.strict_encoding;
    if strict && !options.features.incompat.contains(Incompat::CASEFOLD) {
        return Err(refused("encoding_flags needs casefold (-O casefold)"));
    }
    if options.grows_to.is_some() && !options.features.compat.contains(Compat::RESIZE_INODE) {
        return Err(refused("resize needs the resize_inode feature"));
    }
    if let JournalChoice::InternalOf(n) = options.journal
        && n < 1024
    {
        let kib = 1024 * u64::from(block_size) / 1024;
        return Err(refused(format!(
            "a journal of {n} blocks: it has at least 1024 (here {kib} KiB)"
        )));
    }
    let available = info.size / u64::from(block_size);
    let blocks = options.blocks.unwrap_or(available);
    if let Some(n) = options.grows_to.filter(|n| *n <= blocks || *n > u64::from(u32::MAX)) {
        return Err(refused(format!("resize={n}: more than its {blocks} blocks, below 2^32")));
    }
    if let Some(n) = options.blocks.filter(|n| *n > available) {
        return Err(refused(format!(
            "{}: {n} blocks of {block_size} bytes do not fit, only {available}",
            info.name
        )));
    }
    Ok(())
}

/// Blocks of the smallest file system with the features that it has by itself.
const SMALLEST_BLOCKS: u64 = 60;

/// Counts that depend on each other.
struct Counts {
    blocks: u64,
    blocks_per_cluster: u32,
    blocks_per_group: u32,
    inodes_per_group: u32,
    groups: u32,
    desc_blocks: u32,
    reserved_gdt: u32,
    /// For the super-user.
    reserved: u64,
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

fn is_backup(features: Features, group: u32) -> bool {
    let power_of = |base: u32| {
        let mut n = group;
        while n.is_multiple_of(base) {
            n /= base;
        }
        n == 1
    };
    let sparse = features.ro_compat.contains(RoCompat::SPARSE_SUPER);
    let named = features.compat.contains(Compat::SPARSE_SUPER2);
    named || !sparse || group <= 1 || power_of(3) || power_of(5) || power_of(7)
}

fn counts(
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
    let cluster_size = block_size * per_cluster;
    let ratio = options.inode_ratio.unwrap_or_else(|| {
        let ratio = default_inode_ratio(wanted * bs);
        if per_cluster > 1 { ratio.max(cluster_size) } else { ratio }
    });
    let inodes = match options.inodes {
        Some(n) => u64::from(n),
        None => (wanted * bs / u64::from(ratio)).min(u64::from(u32::MAX)),
    };
    let inodes = inodes.max(12);
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
        let mut ipg = inodes.div_ceil(groups);
        let per_block = bs / inode_size;
        if ipg > u64::from(block_size * 8).min((1 << 16) - per_block) {
            // More inodes than a bitmap can hold: smaller groups, hence more of them.
            if bpg < 256 || per_cluster > 1 {
                return Err(refused(format!("{inodes} inodes are too many for its size")));
            }
            (bpg, blocks) = (bpg - 8, wanted);
            continue;
        }
        let (table, ipg) = loop {
            // Whole blocks of the table, and whole bytes of the bitmap.
            let filled = (ipg * inode_size).div_ceil(bs) * bs / inode_size;
            let rounded = filled.max(8) & !7;
            if rounded * groups < inodes.min(12) {
                ipg += 8;
            } else if rounded * groups > u64::from(u32::MAX) {
                ipg -= 1;
            } else {
                break ((rounded * inode_size).div_ceil(bs), rounded as u32);
            }
        };
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
        let last_needs =
            2 + table + if meta_bg || is_backup(features, groups32 - 1) { backup } else { 0 };
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

/// The superblock, complete but for what is counted later: free blocks and inodes, the journal,
/// the orphan file.
pub(super) fn superblock(info: &DeviceInfo, options: &Options) -> Result<Superblock> {
    let block_size = block_size(info, options)?;
    check(info, options, block_size)?;
    let features = features(options)?;
    let c = counts(info, options, features, block_size)?;
    let meta_bg = features.incompat.contains(Incompat::META_BG);
    if !meta_bg && c.desc_blocks + c.reserved_gdt > c.blocks_per_group * 3 / 4 {
        return Err(refused("so many groups need meta_bg or larger blocks"));
    }
    let mut sb = Superblock::zeroed();
    sb.set_features(features);
    sb.magic.set(SUPERBLOCK_MAGIC);
    sb.state.set(StateFlags::VALID.bits());
    sb.errors.set(1);
    sb.revision.set(1);
    let log = block_size.trailing_zeros() - 10;
    sb.log_block_size.set(log);
    sb.log_cluster_size.set(log + c.blocks_per_cluster.trailing_zeros());
    sb.first_data_block.set(u32::from(block_size == 1024 && c.blocks_per_cluster == 1));
    sb.set_blocks_count(c.blocks);
    sb.set_reserved_blocks(c.reserved);
    sb.blocks_per_group.set(c.blocks_per_group);
    sb.clusters_per_group.set(c.blocks_per_group / c.blocks_per_cluster);
    sb.inodes_per_group.set(c.inodes_per_group);
    sb.inodes_count.set(c.inodes_per_group * c.groups);
    sb.reserved_gdt_blocks.set(c.reserved_gdt as u16);
    sb.first_inode.set(11);
    sb.inode_size.set(options.inode_size);
    if options.inode_size >= 160 {
        sb.min_extra_isize.set(32);
        sb.want_extra_isize.set(32);
    }
    if features.incompat.contains(Incompat::BIT64) {
        sb.desc_size.set(64);
    }
    if features.compat.contains(Compat::SPARSE_SUPER2) {
        // The second group and the last, as mke2fs.
        sb.backup_groups[0].set(u32::from(c.groups > 1));
        sb.backup_groups[1].set(if c.groups > 2 { c.groups - 1 } else { 0 });
    }
    if features.incompat.contains(Incompat::FLEX_BG) {
        sb.log_groups_per_flex = options.groups_per_flex.trailing_zeros() as u8;
    }
    if features.incompat.contains(Incompat::CASEFOLD) {
        sb.encoding.set(ENCODING_UTF8_12_1);
        sb.encoding_flags.set(u16::from(options.strict_encoding));
    }
    let stride = u16::try_from(options.raid_stride)
        .map_err(|_| refused(format!("stride={}: at most 65535", options.raid_stride)))?;
    sb.raid_stride.set(stride);
    sb.raid_stripe_width.set(options.raid_stripe_width);
    set_identity(&mut sb, options);
    set_times(&mut sb, options.time);
    Ok(sb)
}

fn set_identity(sb: &mut Superblock, options: &Options) {
    sb.uuid = *options.uuid.as_bytes();
    for (word, bytes) in sb.hash_seed.iter_mut().zip(options.hash_seed.as_bytes().chunks_exact(4)) {
        // OK to unwrap: the chunks have four bytes.
        word.set(u32::from_le_bytes(bytes.try_into().unwrap()));
    }
    sb.default_hash_version = HashVersion::HalfMd4.code();
    sb.flags.set(SuperFlags::SIGNED_HASH.bits());
    sb.volume_name[..options.label.len()].copy_from_slice(options.label.as_bytes());
    let mount = DefaultMountOptions::USER_XATTR | DefaultMountOptions::ACL;
    sb.default_mount_options.set(mount.bits());
    sb.max_mount_count.set(u16::MAX);
    if sb.features().metadata_csum() {
        sb.checksum_type = 1;
    }
    if sb.features().incompat.contains(Incompat::CSUM_SEED) {
        // Of the UUID, which the seed then outlives.
        let mut plain = *sb;
        plain.feature_incompat.set(0);
        sb.checksum_seed.set(Checksums::of(&plain).seed().unwrap_or(0));
    }
}

fn set_times(sb: &mut Superblock, time: u64) {
    let (lo, hi) = (time as u32, (time >> 32) as u8);
    sb.mkfs_time.set(lo);
    sb.write_time.set(lo);
    sb.last_check.set(lo);
    (sb.mkfs_time_hi, sb.write_time_hi, sb.last_check_hi) = (hi, hi, hi);
}
