//! What a file system says of itself: the fields of dumpe2fs -h.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use uuid::Uuid;

use crate::error::Result;
use crate::ondisk::{
    Compat, DefaultMountOptions, ErrorsBehaviour, HashVersion, Incompat, RoCompat, SUPERBLOCK_LEN,
    SUPERBLOCK_OFFSET, StateFlags, SuperFlags, Superblock,
};

/// What a file system, or a journal device, says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The superblock as it is.
    pub superblock: Superblock,
    /// Label; empty if there is none.
    pub label: String,
    /// Folder it was last mounted on; empty if never.
    pub last_mounted: String,
    /// Identity.
    pub uuid: Uuid,
    /// Names of the features, as dumpe2fs prints them.
    pub features: Vec<String>,
    /// Whether it is a journal device rather than a file system.
    pub is_journal_device: bool,
    /// Bytes a block.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Blocks reserved for the super-user.
    pub reserved_blocks: u64,
    /// Inodes in all.
    pub inodes: u32,
    /// Free inodes.
    pub free_inodes: u32,
    /// The journal must be replayed.
    pub needs_recovery: bool,
    /// UUID of the external journal, if there is one.
    pub external_journal: Option<Uuid>,
    /// Whether the superblock's checksum is right (or there is none).
    pub checksum_ok: bool,
}

/// Reads what a file system or a journal device says of itself. Looks at the superblock only, and
/// takes features that are not implemented, and a wrong checksum, as they are.
///
/// # Errors
/// Of the device; [`Corrupt`](crate::error::Ext4Error::Corrupt) if there is no superblock.
pub fn info(device: &Arc<dyn BlockDevice>) -> Result<Info> {
    let info = device.info();
    let end = SUPERBLOCK_OFFSET + SUPERBLOCK_LEN as u64;
    let len = end.next_multiple_of(u64::from(info.logical_block)).min(info.size);
    let bytes = if len == 0 { bytes::Bytes::new() } else { device.read(0, len)? };
    let sb = Superblock::parse_mended(bytes.get(SUPERBLOCK_OFFSET as usize..).unwrap_or(&[]))?;
    let f = sb.features();
    Ok(Info {
        label: sb.label(),
        last_mounted: sb.last_mounted(),
        uuid: Uuid::from_bytes(sb.uuid),
        features: f.names(),
        is_journal_device: f.incompat.contains(Incompat::JOURNAL_DEV),
        block_size: sb.block_size().unwrap_or(0),
        blocks: sb.blocks_count(),
        free_blocks: sb.free_blocks(),
        reserved_blocks: sb.reserved_blocks(),
        inodes: sb.inodes_count.get(),
        free_inodes: sb.free_inodes.get(),
        needs_recovery: f.incompat.contains(Incompat::NEEDS_RECOVERY),
        external_journal: sb.has_external_journal().then(|| Uuid::from_bytes(sb.journal_uuid)),
        checksum_ok: sb.checksum_ok(),
        superblock: sb,
    })
}

impl Info {
    /// Names and values as dumpe2fs -h has them, for people. Times are UTC.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let sb = &self.superblock;
        let or = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_string();
        let mut rows = vec![
            ("Filesystem volume name", or(&self.label, "<none>")),
            ("Last mounted on", or(&self.last_mounted, "<not available>")),
            ("Filesystem UUID", self.uuid.to_string()),
            ("Filesystem magic number", format!("{:#06X}", sb.magic.get()).replace("0X", "0x")),
            ("Filesystem revision #", revision(sb)),
            ("Filesystem features", self.features.join(" ")),
            ("Filesystem flags", flags(sb)),
            ("Default mount options", mount_options(sb)),
            ("Filesystem state", state(sb)),
            ("Errors behavior", errors(sb)),
            ("Inode count", self.inodes.to_string()),
            ("Block count", self.blocks.to_string()),
            ("Reserved block count", self.reserved_blocks.to_string()),
            ("Overhead clusters", sb.overhead_clusters.to_string()),
            ("Free blocks", self.free_blocks.to_string()),
            ("Free inodes", self.free_inodes.to_string()),
            ("First block", sb.first_data_block.to_string()),
            ("Block size", self.block_size.to_string()),
        ];
        if has_clusters(sb) {
            rows.push(("Cluster size", (1024u64 << sb.log_cluster_size.get().min(32)).to_string()));
        }
        rows.extend(self.layout_rows());
        rows.extend(self.journal_rows());
        rows
    }

    fn layout_rows(&self) -> Vec<(&'static str, String)> {
        let sb = &self.superblock;
        let f = sb.features();
        let mut rows = Vec::new();
        if f.incompat.contains(Incompat::BIT64) {
            rows.push(("Group descriptor size", sb.desc_size.to_string()));
        }
        if sb.reserved_gdt_blocks.get() != 0 {
            rows.push(("Reserved GDT blocks", sb.reserved_gdt_blocks.to_string()));
        }
        rows.push(("Blocks per group", sb.blocks_per_group.to_string()));
        if has_clusters(sb) {
            rows.push(("Clusters per group", sb.clusters_per_group.to_string()));
        }
        rows.push(("Inodes per group", sb.inodes_per_group.to_string()));
        if f.incompat.contains(Incompat::FLEX_BG) && sb.log_groups_per_flex < 32 {
            rows.push(("Flex block group size", (1u64 << sb.log_groups_per_flex).to_string()));
        }
        let at = |lo: u32, hi: u8| time_text(u64::from(lo) | u64::from(hi) << 32);
        rows.push(("Filesystem created", at(sb.mkfs_time.get(), sb.mkfs_time_hi)));
        rows.push(("Last mount time", at(sb.mount_time.get(), sb.mount_time_hi)));
        rows.push(("Last write time", at(sb.write_time.get(), sb.write_time_hi)));
        rows.push(("Mount count", sb.mount_count.to_string()));
        rows.push(("Maximum mount count", (sb.max_mount_count.get() as i16).to_string()));
        rows.push(("Last checked", at(sb.last_check.get(), sb.last_check_hi)));
        if sb.kbytes_written.get() != 0 {
            rows.push(("Lifetime writes", format!("{} kB", sb.kbytes_written)));
        }
        rows.push(("First inode", sb.first_inode().to_string()));
        rows.push(("Inode size", sb.inode_size().to_string()));
        if sb.want_extra_isize.get() != 0 {
            rows.push(("Required extra isize", sb.min_extra_isize.to_string()));
            rows.push(("Desired extra isize", sb.want_extra_isize.to_string()));
        }
        if f.compat.contains(Compat::DIR_INDEX) {
            let hash = HashVersion::from_code(sb.default_hash_version);
            rows.push(("Default directory hash", hash.map_or("unknown", |h| h.name()).into()));
            let seed: Vec<u8> = sb.hash_seed.iter().flat_map(|w| w.get().to_le_bytes()).collect();
            let seed = Uuid::from_slice(&seed).unwrap_or_default();
            rows.push(("Directory Hash Seed", seed.to_string()));
        }
        rows
    }

    fn journal_rows(&self) -> Vec<(&'static str, String)> {
        let sb = &self.superblock;
        let f = sb.features();
        let mut rows = Vec::new();
        if let Some(uuid) = self.external_journal {
            rows.push(("Journal UUID", uuid.to_string()));
        } else if sb.journal_inode.get() != 0 {
            rows.push(("Journal inode", sb.journal_inode.to_string()));
        }
        if sb.last_orphan.get() != 0 {
            rows.push(("First orphan inode", sb.last_orphan.to_string()));
        }
        if f.compat.contains(Compat::ORPHAN_FILE) {
            rows.push(("Orphan file inode", sb.orphan_file_inode.to_string()));
        }
        if f.ro_compat.contains(RoCompat::METADATA_CSUM) {
            let right = if self.checksum_ok { "" } else { " (wrong)" };
            rows.push(("Checksum type", "crc32c".into()));
            rows.push(("Checksum", format!("{:#010x}{right}", sb.checksum.get())));
        }
        if f.incompat.contains(Incompat::CSUM_SEED) {
            rows.push(("Checksum seed", format!("{:#010x}", sb.checksum_seed.get())));
        }
        rows
    }
}

fn revision(sb: &Superblock) -> String {
    match sb.revision.get() {
        0 => "0 (original)".into(),
        1 => "1 (dynamic)".into(),
        n => n.to_string(),
    }
}

/// A time in UTC; "n/a" for never.
fn time_text(seconds: u64) -> String {
    if seconds == 0 {
        return "n/a".into();
    }
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Days are counted from 1 March of the year 0, in eras of 400 years, so that the leap day
    // comes last in its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year + month / 10, (month + 2) % 12 + 1);
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02} {h:02}:{m:02}:{s:02} UTC")
}

fn flags(sb: &Superblock) -> String {
    let flags = SuperFlags::from_bits_retain(sb.flags.get());
    let names = [
        (SuperFlags::SIGNED_HASH, "signed_directory_hash"),
        (SuperFlags::UNSIGNED_HASH, "unsigned_directory_hash"),
        (SuperFlags::TEST, "test_filesystem"),
    ];
    let set: Vec<&str> =
        names.iter().filter(|(f, _)| flags.contains(*f)).map(|(_, n)| *n).collect();
    if set.is_empty() { "(none)".into() } else { set.join(" ") }
}

fn mount_options(sb: &Superblock) -> String {
    let names = DefaultMountOptions::from_bits_retain(sb.default_mount_options.get()).names();
    if names.is_empty() { "(none)".into() } else { names.join(" ") }
}

fn state(sb: &Superblock) -> String {
    let state = StateFlags::from_bits_retain(sb.state.get());
    let clean = if state.contains(StateFlags::VALID) { "clean" } else { "not clean" };
    let errors = if state.contains(StateFlags::ERROR) { " with errors" } else { "" };
    format!("{clean}{errors}")
}

fn errors(sb: &Superblock) -> String {
    match ErrorsBehaviour::from(sb.errors.get()) {
        ErrorsBehaviour::Continue => "Continue".into(),
        ErrorsBehaviour::ReadOnly => "Remount read-only".into(),
        ErrorsBehaviour::Panic => "Panic".into(),
        ErrorsBehaviour::Unknown(code) => format!("Unknown ({code})"),
    }
}

fn has_clusters(sb: &Superblock) -> bool {
    sb.features().ro_compat.contains(RoCompat::BIGALLOC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(time_text(1), "1970-01-01 00:00:01 UTC");
        assert_eq!(time_text(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(time_text(1_767_225_599), "2025-12-31 23:59:59 UTC");
        assert_eq!(time_text(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }
}
