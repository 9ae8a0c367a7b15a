//! What the options choose: block and cluster size, inodes, features; and what is refused.

use std::sync::Arc;

use steadfast_block::DeviceInfo;
use steadfast_ext4_format::ondisk::{Compat, Features, Incompat, RoCompat};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::external;

use crate::options::{JournalChoice, Options, refused};

/// Blocks a cluster with `bigalloc`, as mke2fs.
const CLUSTER_BLOCKS: u32 = 16;
/// Largest cluster, bytes: the blocks of a group stay below 2^32.
const CLUSTER_MAX: u32 = 256 << 20;

/// The features that can be made.
pub(super) fn possible() -> Features {
    let mut all = Options::upstream_features();
    all.compat |= Compat::HAS_JOURNAL | Compat::DIR_PREALLOC | Compat::STABLE_INODES;
    all.compat |= Compat::SPARSE_SUPER2 | Compat::FAST_COMMIT;
    all.incompat |= Incompat::META_BG | Incompat::EA_INODE | Incompat::CASEFOLD;
    all.ro_compat |= RoCompat::GDT_CSUM | RoCompat::BIGALLOC;
    all.ro_compat |= RoCompat::QUOTA | RoCompat::PROJECT;
    all
}

/// Usage types of mke2fs.conf: bytes of space for each inode by size of the file system.
pub(super) fn default_inode_ratio(bytes: u64) -> u32 {
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

pub(super) fn block_size(info: &DeviceInfo, options: &Options) -> Result<u32> {
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
pub(super) fn blocks_per_cluster(options: &Options, block_size: u32) -> Result<u32> {
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

pub(super) fn features(options: &Options) -> Result<Features> {
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

pub(super) fn check(info: &DeviceInfo, options: &Options, block_size: u32) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use steadfast_ext4_format::ondisk::implemented;

    use super::*;

    /// Whoever implements a feature has it made, or says here that others make it.
    #[test]
    fn what_is_implemented_can_be_made_or_is_named() {
        let by_others = Features {
            compat: Compat::empty(),
            incompat: Incompat::NEEDS_RECOVERY
                | Incompat::LARGE_DIR
                | Incompat::INLINE_DATA
                | Incompat::ENCRYPT
                | Incompat::MMP,
            ro_compat: RoCompat::VERITY | RoCompat::ORPHAN_PRESENT,
        };
        assert_eq!(implemented().without(possible()), by_others);
        assert_eq!(possible().without(implemented()), Features::default());
    }
}
