//! The superblock of the new file system, as `ext2fs_initialize` and mke2fs settle it.

use steadfast_block::DeviceInfo;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{
    Compat, DefaultMountOptions, ENCODING_UTF8_12_1, HashVersion, Incompat, MetadataChecksums,
    SUPERBLOCK_MAGIC, StateFlags, SuperFlags, Superblock,
};

use crate::choices::{block_size, check, features};
use crate::counts::counts;
use crate::options::{Options, refused};

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
        sb.checksum_seed.set(MetadataChecksums::of(&plain).seed().unwrap_or(0));
    }
}

fn set_times(sb: &mut Superblock, time: u64) {
    let (lo, hi) = (time as u32, (time >> 32) as u8);
    sb.mkfs_time.set(lo);
    sb.write_time.set(lo);
    sb.last_check.set(lo);
    (sb.mkfs_time_hi, sb.write_time_hi, sb.last_check_hi) = (hi, hi, hi);
}
