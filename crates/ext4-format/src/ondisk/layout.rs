//! Where things are: derived once from a superblock that has been checked, then pure arithmetic.

mod places;

pub use places::is_sparse_backup;

use crate::error::{Ext4Error, Result, unsupported};
use crate::ondisk::group::DESC_SIZE_MAX;
use crate::ondisk::{
    Compat, Features, GroupNo, Incompat, InodeNo, MetadataChecksums, RoCompat, Superblock,
};

/// Geometry of a file system. Made only by [`Layout::new`], which guarantees that
/// * `block_size` is a power of two from 1024 to 65536 and `blocks_count` blocks fit the device;
/// * no divisor is zero and no product of these numbers overflows;
/// * the group descriptors, and the room reserved for more, lie in the first group or, with
///   `meta_bg`, in the first group of those that they describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Bytes a block.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks_count: u64,
    /// First block of group 0.
    pub first_data_block: u64,
    /// Blocks a group; the last may have fewer.
    pub blocks_per_group: u32,
    /// Blocks that one bit of a block bitmap stands for: 1 without `bigalloc`.
    pub blocks_per_cluster: u32,
    /// Groups.
    pub groups: u32,
    /// Inodes in all.
    pub inodes_count: u32,
    /// Inodes a group.
    pub inodes_per_group: u32,
    /// Bytes an inode.
    pub inode_size: u16,
    /// First inode that is not reserved.
    pub first_inode: InodeNo,
    /// Inodes beyond the first that are the file system's own: of quotas, and the orphan file; 0 is
    /// none.
    pub own_inodes: [InodeNo; 4],
    /// Bytes a group descriptor.
    pub desc_size: u16,
    /// Blocks of group descriptors, without those reserved.
    pub desc_blocks: u32,
    /// Blocks reserved behind the group descriptors.
    pub reserved_gdt_blocks: u32,
    /// Of the blocks of group descriptors, the first that lies in the groups it describes; all
    /// before it follow the superblock. `desc_blocks` without `meta_bg`.
    pub first_meta_bg: u32,
    /// The only groups with backups, with `sparse_super2`; 0 is none.
    pub only_backups: Option<[u32; 2]>,
    /// Blocks of a group's inode table.
    pub inode_table_blocks: u32,
    /// Groups a flexible group; 1 without `flex_bg`.
    pub groups_per_flex: u32,
    /// Features.
    pub features: Features,
    /// Checksums.
    pub checksums: MetadataChecksums,
}

/// Where an inode lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InodeLocation {
    /// Its group.
    pub group: GroupNo,
    /// Its number in the group, from 0.
    pub index: u32,
    /// Its block, counted from the first of the group's inode table.
    pub table_block: u32,
    /// Its offset in that block, bytes.
    pub offset: usize,
}

fn corrupt<T>(what: String) -> Result<T> {
    Err(Ext4Error::corrupt(what, "superblock"))
}

/// Blocks a cluster, which is what one bit of a block bitmap stands for: 1 without `bigalloc`.
fn blocks_per_cluster(sb: &Superblock) -> Result<u32> {
    let (block, cluster) = (sb.log_block_size.get(), sb.log_cluster_size.get());
    if !sb.features().ro_compat.contains(RoCompat::BIGALLOC) {
        if cluster != block {
            return corrupt("clusters are not blocks, but the bigalloc feature is off".into());
        }
        return Ok(1);
    }
    // At most 1 GiB (`EXT2_MAX_CLUSTER_LOG_SIZE`).
    if cluster < block || cluster > 20 {
        return corrupt(format!("clusters of 1024 << {cluster} bytes"));
    }
    Ok(1 << (cluster - block))
}

fn check_sizes(sb: &Superblock, block_size: u32) -> Result<()> {
    let max_bits = block_size * 8;
    let per_cluster = blocks_per_cluster(sb)?;
    let (bpg, cpg) = (sb.blocks_per_group.get(), sb.clusters_per_group.get());
    if cpg < 8 || cpg > max_bits || !bpg.is_multiple_of(8) {
        return corrupt(format!("{bpg} blocks a group, {cpg} clusters"));
    }
    if u64::from(cpg) * u64::from(per_cluster) != u64::from(bpg) {
        return corrupt(format!("{cpg} clusters and {bpg} blocks a group"));
    }
    let inode_size = u32::from(sb.inode_size());
    if inode_size < 128 || inode_size > block_size || !inode_size.is_power_of_two() {
        return corrupt(format!("inodes of {inode_size} bytes"));
    }
    let ipg = sb.inodes_per_group.get();
    if ipg < block_size / inode_size || ipg > max_bits || !ipg.is_multiple_of(8) {
        return corrupt(format!("{ipg} inodes a group"));
    }
    // With clusters the boot block belongs to the first one.
    let expected_first = u32::from(block_size == 1024 && per_cluster == 1);
    if sb.first_data_block.get() != expected_first {
        return corrupt(format!("the first data block is {}", sb.first_data_block));
    }
    if sb.reserved_gdt_blocks.get() > (block_size / 4) as u16 {
        return corrupt(format!("{} reserved descriptor blocks", sb.reserved_gdt_blocks));
    }
    if sb.features().metadata_csum() && sb.checksum_type != 1 {
        return unsupported(format!("checksum algorithm {}", sb.checksum_type));
    }
    Ok(())
}

impl Layout {
    /// Checks the superblock's numbers against each other and against the device's size in bytes.
    ///
    /// # Errors
    /// [`Ext4Error::Corrupt`] for numbers that cannot be, [`Ext4Error::Refused`] if the file
    /// system is larger than the device (a truncated image).
    pub fn new(sb: &Superblock, device_size: u64) -> Result<Layout> {
        let Some(block_size) = sb.block_size() else {
            return corrupt(format!("block size 1024 << {}", sb.log_block_size));
        };
        check_sizes(sb, block_size)?;
        let features = sb.features();
        let desc_size = desc_size(sb)?;
        let (blocks, first) = (sb.blocks_count(), u64::from(sb.first_data_block.get()));
        let bpg = sb.blocks_per_group.get();
        if blocks <= first {
            return corrupt(format!("{blocks} blocks in all"));
        }
        if blocks > device_size / u64::from(block_size) {
            return corrupt(format!(
                "the file system has {blocks} blocks of {block_size} bytes, the device only \
                 {device_size} bytes: an image cut short?"
            ));
        }
        let Ok(groups) = u32::try_from((blocks - first).div_ceil(u64::from(bpg))) else {
            return corrupt("more than 2^32 groups".into());
        };
        let ipg = sb.inodes_per_group.get();
        let inodes_count = sb.inodes_count.get();
        if u64::from(groups) * u64::from(ipg) != u64::from(inodes_count) {
            return corrupt(format!("{inodes_count} inodes, but {groups} groups of {ipg} inodes"));
        }
        let first_inode = sb.first_inode();
        if first_inode.0 < super::FIRST_INODE_REV0 || first_inode.0 > inodes_count {
            return corrupt(format!("the first usable inode is {first_inode}"));
        }
        let flex = features.incompat.contains(Incompat::FLEX_BG);
        let log_flex = u32::from(sb.log_groups_per_flex);
        let resize = features.compat.contains(Compat::RESIZE_INODE);
        // Cannot be cut: 2^32 groups of 64 bytes in blocks of 1024 at least.
        let desc_blocks =
            (u64::from(groups) * u64::from(desc_size)).div_ceil(u64::from(block_size)) as u32;
        let meta_bg = features.incompat.contains(Incompat::META_BG);
        let first_meta_bg = if meta_bg { sb.first_meta_bg.get() } else { desc_blocks };
        if first_meta_bg > desc_blocks {
            return corrupt(format!("the first meta group is {first_meta_bg} of {desc_blocks}"));
        }
        let sparse2 = features.compat.contains(Compat::SPARSE_SUPER2);
        let layout = Layout {
            block_size,
            blocks_count: blocks,
            first_data_block: first,
            blocks_per_group: bpg,
            blocks_per_cluster: blocks_per_cluster(sb)?,
            groups,
            inodes_count,
            inodes_per_group: ipg,
            inode_size: sb.inode_size(),
            first_inode,
            own_inodes: [
                InodeNo(sb.user_quota_inode.get()),
                InodeNo(sb.group_quota_inode.get()),
                InodeNo(sb.project_quota_inode.get()),
                InodeNo(sb.orphan_file_inode.get()),
            ],
            desc_size,
            desc_blocks,
            reserved_gdt_blocks: if resize { u32::from(sb.reserved_gdt_blocks.get()) } else { 0 },
            first_meta_bg,
            only_backups: sparse2.then(|| sb.backup_groups.map(|g| g.get())),
            // Cannot be cut: a table has no more blocks than a bitmap has bits.
            inode_table_blocks: (u64::from(ipg) * u64::from(sb.inode_size()))
                .div_ceil(u64::from(block_size)) as u32,
            groups_per_flex: if flex && (1..=31).contains(&log_flex) { 1 << log_flex } else { 1 },
            features,
            checksums: MetadataChecksums::of(sb),
        };
        if layout.group_overhead(GroupNo(0)) >= layout.blocks_in_group(GroupNo(0)) {
            return corrupt("the group descriptors do not fit into the first group".into());
        }
        if !layout.contains(layout.desc_place(GroupNo(groups - 1)).0, 1) {
            return corrupt("the last group descriptors lie beyond the end".into());
        }
        Ok(layout)
    }

    /// Whether no name may lead to the inode: it is the file system's own (the kernel's
    /// `is_special_ino`). The root is not.
    pub fn is_reserved(&self, no: InodeNo) -> bool {
        no != InodeNo::ROOT && (no < self.first_inode || self.own_inodes.contains(&no))
    }
}

/// Bytes a descriptor: 32, or with `64bit` what the superblock says, 64 and more.
fn desc_size(sb: &Superblock) -> Result<u16> {
    if !sb.features().incompat.contains(Incompat::BIT64) {
        return Ok(32);
    }
    match sb.desc_size.get() {
        n if n >= 64 && n.is_power_of_two() && n <= DESC_SIZE_MAX => Ok(n),
        n => corrupt(format!("group descriptors of {n} bytes with the 64bit feature")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Superblock {
        let mut sb = Superblock::zeroed();
        sb.revision.set(1);
        sb.log_block_size.set(2);
        sb.log_cluster_size.set(2);
        sb.blocks_count_lo.set(100_000);
        sb.blocks_per_group.set(32768);
        sb.clusters_per_group.set(32768);
        sb.inodes_per_group.set(6256);
        sb.inodes_count.set(6256 * 4);
        sb.inode_size.set(256);
        sb.first_inode.set(11);
        sb.desc_size.set(64);
        sb.feature_incompat.set((Incompat::BIT64 | Incompat::FLEX_BG).bits());
        sb.feature_ro_compat.set(RoCompat::SPARSE_SUPER.bits());
        sb.log_groups_per_flex = 4;
        sb
    }

    #[test]
    fn places() {
        let l = Layout::new(&sample(), 100_000 * 4096).unwrap();
        assert_eq!((l.groups, l.blocks_in_group(GroupNo(3)), l.groups_per_flex), (4, 1696, 16));
        assert_eq!(l.group_of_block(32768), Some((GroupNo(1), 0)));
        assert_eq!(l.group_of_block(100_000), None);
        let p = l.inode_place(InodeNo(6257 + 17)).unwrap();
        assert_eq!((p.group, p.index, p.table_block, p.offset), (GroupNo(1), 17, 1, 256));
        assert_eq!(l.inode_number(p.group, p.index), InodeNo(6257 + 17));
        assert!(l.inode_place(InodeNo(0)).is_err() && l.inode_place(InodeNo(25025)).is_err());
        assert_eq!(l.desc_place(GroupNo(2)), (1, 128));
        let mut many = l.clone();
        many.groups = 60;
        let backups: Vec<u32> = many.backup_groups().map(|g| g.0).collect();
        assert_eq!(backups, [1, 3, 5, 7, 9, 25, 27, 49]);
        many.only_backups = Some([1, 59]);
        assert_eq!(many.backup_groups().map(|g| g.0).collect::<Vec<_>>(), [1, 59]);
    }

    #[test]
    fn descriptors_lie_in_the_groups_they_describe() {
        let mut sb = sample();
        sb.feature_incompat.set(sb.feature_incompat.get() | Incompat::META_BG.bits());
        let mut l = Layout::new(&sb, 100_000 * 4096).unwrap();
        assert_eq!(l.desc_place(GroupNo(2)), (1, 128));
        let overheads: Vec<u32> = l.all_groups().map(|g| l.group_overhead(g)).collect();
        // Superblock and descriptors, the same, nothing, a superblock alone.
        assert_eq!(overheads, [2, 2, 0, 1]);
        (l.groups, l.desc_blocks, l.blocks_count) = (200, 4, 200 * 32768);
        assert_eq!(l.desc_place(GroupNo(65)), (64 * 32768, 64));
        assert_eq!(l.group_overhead(GroupNo(127)), 1);
        l.first_meta_bg = 1;
        assert_eq!(l.desc_place(GroupNo(63)).0, 1);
        assert_eq!((l.group_overhead(GroupNo(63)), l.group_overhead(GroupNo(49))), (0, 2));
        assert_eq!(l.desc_place(GroupNo(64)).0, 64 * 32768);
        sb.first_meta_bg.set(2);
        assert!(Layout::new(&sb, 100_000 * 4096).is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        type Spoil = fn(&mut Superblock);
        let spoils: [(&str, Spoil); 16] = [
            ("block size", |s| s.log_block_size.set(60)),
            ("clusters", |s| s.log_cluster_size.set(3)),
            ("clusters of", |s| {
                s.feature_ro_compat.set(RoCompat::BIGALLOC.bits());
                s.log_cluster_size.set(u32::MAX);
            }),
            ("blocks a group", |s| s.blocks_per_group.set(0)),
            ("blocks a group", |s| s.blocks_per_group.set(32776)),
            ("clusters", |s| s.clusters_per_group.set(1)),
            ("inodes a group", |s| s.inodes_per_group.set(0)),
            ("inodes a group", |s| s.inodes_per_group.set(1 << 31)),
            ("bytes", |s| s.inode_size.set(0)),
            ("bytes", |s| s.inode_size.set(8192)),
            ("inodes", |s| s.inodes_count.set(5)),
            ("first usable inode", |s| s.first_inode.set(0)),
            ("first data block", |s| s.first_data_block.set(7)),
            ("blocks in all", |s| s.blocks_count_lo.set(0)),
            ("descriptors of", |s| s.desc_size.set(33)),
            ("reserved descriptor", |s| s.reserved_gdt_blocks.set(5000)),
        ];
        for (part, spoil) in spoils {
            let mut sb = sample();
            spoil(&mut sb);
            let error = Layout::new(&sb, 100_000 * 4096).unwrap_err();
            assert!(matches!(error, Ext4Error::Corrupt { .. }), "{part}: {error}");
            assert!(error.to_string().contains(part), "{part}: {error}");
        }
        let short = Layout::new(&sample(), 99_999 * 4096).unwrap_err();
        assert!(short.to_string().contains("cut short"), "{short}");
        // The largest of everything: products stay in bounds.
        let mut large = sample();
        large.log_block_size.set(6);
        large.log_cluster_size.set(6);
        large.inode_size.set(1 << 15);
        large.inodes_per_group.set(1 << 19);
        large.inodes_count.set(1 << 21);
        assert_eq!(Layout::new(&large, 1 << 40).unwrap().inode_table_blocks, 1 << 18);
        let mut wide = sample();
        wide.blocks_count_hi.set(u32::MAX);
        assert!(Layout::new(&wide, u64::MAX).is_err());
    }
}
