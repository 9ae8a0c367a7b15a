//! The superblock: 1024 bytes at byte 1024 (`struct ext4_super_block`).

mod values;

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

use crate::error::{Ext4Error, Result};
use crate::ondisk::csum::crc32c;
use crate::ondisk::{Compat, Features, Incompat, RoCompat};

/// Where the primary superblock lies, in bytes.
pub const SUPERBLOCK_OFFSET: u64 = 1024;
/// Its length in bytes.
pub const SUPERBLOCK_LEN: usize = 1024;
/// `EXT4_SUPER_MAGIC`.
pub const SUPERBLOCK_MAGIC: u16 = 0xef53;

/// The superblock as it stands on disk. Numbers of 64 bits that are split in halves have
/// accessors; a half beyond 32 bits counts only with the `64bit` feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
pub struct Superblock {
    /// Inodes in all (`s_inodes_count`).
    pub inodes_count: U32,
    /// Blocks in all, low half (`s_blocks_count_lo`).
    pub blocks_count_lo: U32,
    /// Blocks reserved for the super-user, low half (`s_r_blocks_count_lo`).
    pub reserved_blocks_lo: U32,
    /// Free blocks, low half (`s_free_blocks_count_lo`).
    pub free_blocks_lo: U32,
    /// Free inodes (`s_free_inodes_count`).
    pub free_inodes: U32,
    /// First block of group 0: 1 with 1 KiB blocks and no clusters, else 0 (`s_first_data_block`).
    pub first_data_block: U32,
    /// Block size is 1024 << this (`s_log_block_size`).
    pub log_block_size: U32,
    /// Cluster size is 1024 << this (`s_log_cluster_size`).
    pub log_cluster_size: U32,
    /// Blocks a group (`s_blocks_per_group`).
    pub blocks_per_group: U32,
    /// Clusters a group (`s_clusters_per_group`).
    pub clusters_per_group: U32,
    /// Inodes a group (`s_inodes_per_group`).
    pub inodes_per_group: U32,
    /// Last mount, seconds (`s_mtime`).
    pub mount_time: U32,
    /// Last write, seconds (`s_wtime`).
    pub write_time: U32,
    /// Mounts since the last check (`s_mnt_count`).
    pub mount_count: U16,
    /// Mounts after which to check; -1 never (`s_max_mnt_count`).
    pub max_mount_count: U16,
    /// [`SUPERBLOCK_MAGIC`] (`s_magic`).
    pub magic: U16,
    /// `StateFlags` (`s_state`).
    pub state: U16,
    /// What to do on errors: 1 go on, 2 read-only, 3 panic (`s_errors`).
    pub errors: U16,
    /// `s_minor_rev_level`.
    pub minor_revision: U16,
    /// Last check, seconds (`s_lastcheck`).
    pub last_check: U32,
    /// Longest time between checks, seconds (`s_checkinterval`).
    pub check_interval: U32,
    /// 0 is Linux (`s_creator_os`).
    pub creator_os: U32,
    /// 0 original, 1 with dynamic inode sizes (`s_rev_level`).
    pub revision: U32,
    /// User that may use reserved blocks (`s_def_resuid`).
    pub reserved_uid: U16,
    /// Group that may use reserved blocks (`s_def_resgid`).
    pub reserved_gid: U16,
    /// First inode that is not reserved (`s_first_ino`).
    pub first_inode: U32,
    /// Bytes an inode (`s_inode_size`).
    pub inode_size: U16,
    /// Group that this copy lies in (`s_block_group_nr`).
    pub block_group: U16,
    /// Use [`features`](Self::features) (`s_feature_compat`).
    pub feature_compat: U32,
    /// Use [`features`](Self::features) (`s_feature_incompat`).
    pub feature_incompat: U32,
    /// Use [`features`](Self::features) (`s_feature_ro_compat`).
    pub feature_ro_compat: U32,
    /// `s_uuid`.
    pub uuid: [u8; 16],
    /// Label, padded with NUL (`s_volume_name`).
    pub volume_name: [u8; 16],
    /// Folder it was last mounted on (`s_last_mounted`).
    pub last_mounted: [u8; 64],
    /// `s_algorithm_usage_bitmap`.
    pub algorithm_usage: U32,
    /// `s_prealloc_blocks`.
    pub prealloc_blocks: u8,
    /// `s_prealloc_dir_blocks`.
    pub prealloc_dir_blocks: u8,
    /// Blocks kept free behind the group descriptors for growth (`s_reserved_gdt_blocks`).
    pub reserved_gdt_blocks: U16,
    /// UUID of the external journal; zero with an internal one (`s_journal_uuid`).
    pub journal_uuid: [u8; 16],
    /// Inode of the internal journal; 0 with an external one (`s_journal_inum`).
    pub journal_inode: U32,
    /// Device number of the external journal, a hint (`s_journal_dev`).
    pub journal_device: U32,
    /// Head of the list of orphans (`s_last_orphan`).
    pub last_orphan: U32,
    /// Seed of directory hashes (`s_hash_seed`).
    pub hash_seed: [U32; 4],
    /// Hash of new directories (`s_def_hash_version`).
    pub default_hash_version: u8,
    /// 1 if `journal_blocks` is a copy of the journal's inode (`s_jnl_backup_type`).
    pub journal_backup_type: u8,
    /// Bytes a group descriptor, with `64bit` (`s_desc_size`).
    pub desc_size: U16,
    /// `DefaultMountOptions` (`s_default_mount_opts`).
    pub default_mount_options: U32,
    /// First group with `meta_bg` (`s_first_meta_bg`).
    pub first_meta_bg: U32,
    /// When it was made, seconds (`s_mkfs_time`).
    pub mkfs_time: U32,
    /// Copy of the journal inode's `i_block`, then size high and low (`s_jnl_blocks`).
    pub journal_blocks: [U32; 17],
    /// `s_blocks_count_hi`.
    pub blocks_count_hi: U32,
    /// `s_r_blocks_count_hi`.
    pub reserved_blocks_hi: U32,
    /// `s_free_blocks_count_hi`.
    pub free_blocks_hi: U32,
    /// Extra bytes that every inode has (`s_min_extra_isize`).
    pub min_extra_isize: U16,
    /// Extra bytes that new inodes reserve (`s_want_extra_isize`).
    pub want_extra_isize: U16,
    /// `SuperFlags` (`s_flags`).
    pub flags: U32,
    /// RAID chunk in blocks (`s_raid_stride`).
    pub raid_stride: U16,
    /// Seconds between MMP checks (`s_mmp_interval`).
    pub mmp_interval: U16,
    /// Block of MMP (`s_mmp_block`).
    pub mmp_block: U64,
    /// Blocks on all data disks (`s_raid_stripe_width`).
    pub raid_stripe_width: U32,
    /// A flexible group has 1 << this groups (`s_log_groups_per_flex`).
    pub log_groups_per_flex: u8,
    /// 1 is crc32c (`s_checksum_type`).
    pub checksum_type: u8,
    /// `s_encryption_level`.
    pub encryption_level: u8,
    /// `s_reserved_pad`.
    pub reserved_pad: u8,
    /// KiB written in its lifetime (`s_kbytes_written`).
    pub kbytes_written: U64,
    /// `s_snapshot_inum`.
    pub snapshot_inode: U32,
    /// `s_snapshot_id`.
    pub snapshot_id: U32,
    /// `s_snapshot_r_blocks_count`.
    pub snapshot_reserved_blocks: U64,
    /// `s_snapshot_list`.
    pub snapshot_list: U32,
    /// Errors seen by the kernel (`s_error_count`).
    pub error_count: U32,
    /// `s_first_error_time`.
    pub first_error_time: U32,
    /// `s_first_error_ino`.
    pub first_error_inode: U32,
    /// `s_first_error_block`.
    pub first_error_block: U64,
    /// `s_first_error_func`.
    pub first_error_function: [u8; 32],
    /// `s_first_error_line`.
    pub first_error_line: U32,
    /// `s_last_error_time`.
    pub last_error_time: U32,
    /// `s_last_error_ino`.
    pub last_error_inode: U32,
    /// `s_last_error_line`.
    pub last_error_line: U32,
    /// `s_last_error_block`.
    pub last_error_block: U64,
    /// `s_last_error_func`.
    pub last_error_function: [u8; 32],
    /// Mount options in words (`s_mount_opts`).
    pub mount_options: [u8; 64],
    /// `s_usr_quota_inum`.
    pub user_quota_inode: U32,
    /// `s_grp_quota_inum`.
    pub group_quota_inode: U32,
    /// Clusters of metadata; 0 if not counted (`s_overhead_clusters`).
    pub overhead_clusters: U32,
    /// Groups with backups, with `sparse_super2` (`s_backup_bgs`).
    pub backup_groups: [U32; 2],
    /// `s_encrypt_algos`.
    pub encrypt_algorithms: [u8; 4],
    /// `s_encrypt_pw_salt`.
    pub encrypt_salt: [u8; 16],
    /// Inode of lost+found (`s_lpf_ino`).
    pub lost_found_inode: U32,
    /// `s_prj_quota_inum`.
    pub project_quota_inode: U32,
    /// Seed of the checksums, with `metadata_csum_seed` (`s_checksum_seed`).
    pub checksum_seed: U32,
    /// Bits 32..40 of `write_time` (`s_wtime_hi`).
    pub write_time_hi: u8,
    /// `s_mtime_hi`.
    pub mount_time_hi: u8,
    /// `s_mkfs_time_hi`.
    pub mkfs_time_hi: u8,
    /// `s_lastcheck_hi`.
    pub last_check_hi: u8,
    /// `s_first_error_time_hi`.
    pub first_error_time_hi: u8,
    /// `s_last_error_time_hi`.
    pub last_error_time_hi: u8,
    /// `s_first_error_errcode`.
    pub first_error_code: u8,
    /// `s_last_error_errcode`.
    pub last_error_code: u8,
    /// Character set of names, with `casefold` (`s_encoding`).
    pub encoding: U16,
    /// `s_encoding_flags`.
    pub encoding_flags: U16,
    /// Inode of the orphan file (`s_orphan_file_inum`).
    pub orphan_file_inode: U32,
    /// `s_reserved`.
    pub reserved: [U32; 94],
    /// crc32c of all before it, from ~0 (`s_checksum`).
    pub checksum: U32,
}

const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<Superblock>() == SUPERBLOCK_LEN);
    assert!(offset_of!(Superblock, magic) == 0x38);
    assert!(offset_of!(Superblock, first_inode) == 0x54);
    assert!(offset_of!(Superblock, uuid) == 0x68);
    assert!(offset_of!(Superblock, reserved_gdt_blocks) == 0xce);
    assert!(offset_of!(Superblock, journal_uuid) == 0xd0);
    assert!(offset_of!(Superblock, hash_seed) == 0xec);
    assert!(offset_of!(Superblock, desc_size) == 0xfe);
    assert!(offset_of!(Superblock, journal_blocks) == 0x10c);
    assert!(offset_of!(Superblock, blocks_count_hi) == 0x150);
    assert!(offset_of!(Superblock, flags) == 0x160);
    assert!(offset_of!(Superblock, log_groups_per_flex) == 0x174);
    assert!(offset_of!(Superblock, kbytes_written) == 0x178);
    assert!(offset_of!(Superblock, error_count) == 0x194);
    assert!(offset_of!(Superblock, mount_options) == 0x200);
    assert!(offset_of!(Superblock, overhead_clusters) == 0x248);
    assert!(offset_of!(Superblock, lost_found_inode) == 0x268);
    assert!(offset_of!(Superblock, checksum_seed) == 0x270);
    assert!(offset_of!(Superblock, orphan_file_inode) == 0x280);
    assert!(offset_of!(Superblock, checksum) == 0x3fc);
};

impl Superblock {
    /// All zeros.
    pub fn zeroed() -> Self {
        zerocopy::FromZeros::new_zeroed()
    }

    /// Takes the first 1024 of `bytes` (those at byte 1024 of the device) as a superblock.
    ///
    /// # Errors
    /// Too few bytes, no magic, or a wrong checksum where the features say there is one.
    pub fn parse(bytes: &[u8]) -> Result<Superblock> {
        let sb = Self::parse_unchecked(bytes)?;
        if !sb.checksum_ok() {
            return Err(Ext4Error::corrupt(
                format!(
                    "checksum is {:#010x}, computed {:#010x}",
                    sb.checksum.get(),
                    sb.computed_checksum()
                ),
                "superblock",
            ));
        }
        Ok(sb)
    }

    /// As [`parse`](Self::parse), but lets a wrong checksum pass.
    ///
    /// # Errors
    /// Too few bytes or no magic.
    pub fn parse_unchecked(bytes: &[u8]) -> Result<Superblock> {
        let Ok((sb, _)) = Superblock::read_from_prefix(bytes) else {
            return Err(Ext4Error::corrupt("the device is too small to hold one", "superblock"));
        };
        let magic = sb.magic.get();
        if magic != SUPERBLOCK_MAGIC {
            let found = format!("the magic number is {magic:#06x}, not 0xef53");
            return Err(Ext4Error::NoFileSystem { found });
        }
        Ok(sb)
    }

    /// The three sets of features.
    pub fn features(&self) -> Features {
        Features {
            compat: Compat::from_bits_retain(self.feature_compat.get()),
            incompat: Incompat::from_bits_retain(self.feature_incompat.get()),
            ro_compat: RoCompat::from_bits_retain(self.feature_ro_compat.get()),
        }
    }

    /// Sets the three sets of features.
    pub fn set_features(&mut self, f: Features) {
        self.feature_compat.set(f.compat.bits());
        self.feature_incompat.set(f.incompat.bits());
        self.feature_ro_compat.set(f.ro_compat.bits());
    }

    /// What the checksum should be.
    pub fn computed_checksum(&self) -> u32 {
        crc32c(!0, &self.as_bytes()[..SUPERBLOCK_LEN - 4])
    }

    /// Whether the checksum is right, or there is none.
    pub fn checksum_ok(&self) -> bool {
        !self.features().metadata_csum() || self.checksum.get() == self.computed_checksum()
    }

    /// Sets the checksum, if there is to be one.
    pub fn update_checksum(&mut self) {
        if self.features().metadata_csum() {
            self.checksum.set(self.computed_checksum());
        }
    }
}
