//! What a file system says of itself: the fields of dumpe2fs -h.

use std::fmt;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{
    Compat, DefaultMountOptions, HashVersion, Incompat, RoCompat, StateFlags, SuperFlags,
    Superblock,
};
use steadfast_ext4_format::{Result, superblock};
use uuid::Uuid;

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

/// A value of [`Info::rows`]: shown as dumpe2fs shows it, and typed for programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// Words.
    Text(String),
    /// There is none, and how that is shown.
    Nothing(&'static str),
    /// A number.
    Number(i128),
    /// A number, and what it means or is in.
    Named(u64, &'static str),
    /// Any number of words.
    List(Vec<String>),
    /// Seconds since 1970; 0 is never.
    Time(u64),
}

impl Field {
    fn number(n: impl Into<i128>) -> Field {
        Field::Number(n.into())
    }

    fn text(text: impl ToString) -> Field {
        Field::Text(text.to_string())
    }

    fn or_nothing(text: &str, none: &'static str) -> Field {
        if text.is_empty() { Field::Nothing(none) } else { Field::Text(text.to_owned()) }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Text(text) => f.write_str(text),
            Field::Nothing(none) => f.write_str(none),
            Field::Number(n) => write!(f, "{n}"),
            Field::Named(n, "") => write!(f, "{n}"),
            Field::Named(n, what) => write!(f, "{n} {what}"),
            Field::List(words) if words.is_empty() => f.write_str("(none)"),
            Field::List(words) => f.write_str(&words.join(" ")),
            Field::Time(seconds) => f.write_str(&time_text(*seconds)),
        }
    }
}

/// Reads what a file system or a journal device says of itself. Looks at the superblock only, and
/// takes features that are not implemented, and a wrong checksum, as they are.
///
/// # Errors
/// Of the device; as for [`superblock::find`] if there is no superblock.
pub fn info(device: &Arc<dyn BlockDevice>) -> Result<Info> {
    let sb = superblock::find(&**device)?.superblock;
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
    /// Names and values as dumpe2fs -h has them. Times are UTC.
    pub fn rows(&self) -> Vec<(&'static str, Field)> {
        let sb = &self.superblock;
        let mut rows = vec![
            ("Filesystem volume name", Field::or_nothing(&self.label, "<none>")),
            ("Last mounted on", Field::or_nothing(&self.last_mounted, "<not available>")),
            ("Filesystem UUID", Field::text(self.uuid)),
            ("Filesystem magic number", Field::Text(format!("0x{:04X}", sb.magic.get()))),
            ("Filesystem revision #", revision(sb)),
            ("Filesystem features", Field::List(self.features.clone())),
            ("Filesystem flags", flags(sb)),
            ("Default mount options", mount_options(sb)),
            ("Filesystem state", Field::Text(state(sb))),
            ("Errors behavior", Field::Text(errors(sb))),
            ("Inode count", Field::number(self.inodes)),
            ("Block count", Field::number(self.blocks)),
            ("Reserved block count", Field::number(self.reserved_blocks)),
            ("Overhead clusters", Field::number(sb.overhead_clusters.get())),
            ("Free blocks", Field::number(self.free_blocks)),
            ("Free inodes", Field::number(self.free_inodes)),
            ("First block", Field::number(sb.first_data_block.get())),
            ("Block size", Field::number(self.block_size)),
        ];
        let words = sb.mount_words();
        if let Some(at) = rows.iter().position(|(name, _)| *name == "Filesystem state")
            && !words.is_empty()
        {
            rows.insert(at, ("Mount options", Field::Text(words)));
        }
        if has_clusters(sb) {
            rows.push((
                "Cluster size",
                Field::number(1024u64 << sb.log_cluster_size.get().min(32)),
            ));
        }
        rows.extend(self.layout_rows());
        rows.extend(self.journal_rows());
        rows
    }

    fn layout_rows(&self) -> Vec<(&'static str, Field)> {
        let sb = &self.superblock;
        let f = sb.features();
        let mut rows = Vec::new();
        if f.incompat.contains(Incompat::BIT64) {
            rows.push(("Group descriptor size", Field::number(sb.desc_size.get())));
        }
        if sb.reserved_gdt_blocks.get() != 0 {
            rows.push(("Reserved GDT blocks", Field::number(sb.reserved_gdt_blocks.get())));
        }
        rows.push(("Blocks per group", Field::number(sb.blocks_per_group.get())));
        if has_clusters(sb) {
            rows.push(("Clusters per group", Field::number(sb.clusters_per_group.get())));
        }
        rows.push(("Inodes per group", Field::number(sb.inodes_per_group.get())));
        if f.incompat.contains(Incompat::FLEX_BG) && sb.log_groups_per_flex < 32 {
            rows.push(("Flex block group size", Field::number(1u64 << sb.log_groups_per_flex)));
        }
        let at = |lo: u32, hi: u8| Field::Time(u64::from(lo) | u64::from(hi) << 32);
        rows.push(("Filesystem created", at(sb.mkfs_time.get(), sb.mkfs_time_hi)));
        rows.push(("Last mount time", at(sb.mount_time.get(), sb.mount_time_hi)));
        rows.push(("Last write time", at(sb.write_time.get(), sb.write_time_hi)));
        rows.push(("Mount count", Field::number(sb.mount_count.get())));
        rows.push(("Maximum mount count", Field::number(sb.max_mount_count.get() as i16)));
        rows.push(("Last checked", at(sb.last_check.get(), sb.last_check_hi)));
        if sb.kbytes_written.get() != 0 {
            rows.push(("Lifetime writes", Field::Named(sb.kbytes_written.get(), "kB")));
        }
        rows.push(("First inode", Field::number(sb.first_inode().0)));
        rows.push(("Inode size", Field::number(sb.inode_size())));
        if sb.want_extra_isize.get() != 0 {
            rows.push(("Required extra isize", Field::number(sb.min_extra_isize.get())));
            rows.push(("Desired extra isize", Field::number(sb.want_extra_isize.get())));
        }
        if f.compat.contains(Compat::DIR_INDEX) {
            let hash = HashVersion::from_code(sb.default_hash_version);
            let hash = hash.map_or("unknown", |h| h.name());
            rows.push(("Default directory hash", Field::text(hash)));
            let seed: Vec<u8> = sb.hash_seed.iter().flat_map(|w| w.get().to_le_bytes()).collect();
            let seed = Uuid::from_slice(&seed).unwrap_or_default();
            rows.push(("Directory Hash Seed", Field::text(seed)));
        }
        rows
    }

    fn journal_rows(&self) -> Vec<(&'static str, Field)> {
        let sb = &self.superblock;
        let f = sb.features();
        let mut rows = Vec::new();
        if let Some(uuid) = self.external_journal {
            rows.push(("Journal UUID", Field::text(uuid)));
        } else if sb.journal_inode.get() != 0 {
            rows.push(("Journal inode", Field::number(sb.journal_inode.get())));
        }
        if sb.last_orphan.get() != 0 {
            rows.push(("First orphan inode", Field::number(sb.last_orphan.get())));
        }
        if f.compat.contains(Compat::ORPHAN_FILE) {
            rows.push(("Orphan file inode", Field::number(sb.orphan_file_inode.get())));
        }
        if f.ro_compat.contains(RoCompat::METADATA_CSUM) {
            let right = if self.checksum_ok { "" } else { " (wrong)" };
            rows.push(("Checksum type", Field::text("crc32c")));
            rows.push(("Checksum", Field::Text(format!("{:#010x}{right}", sb.checksum.get()))));
        }
        if f.incompat.contains(Incompat::CSUM_SEED) {
            rows.push(("Checksum seed", Field::Text(format!("{:#010x}", sb.checksum_seed.get()))));
        }
        rows
    }
}

fn revision(sb: &Superblock) -> Field {
    let name = match sb.revision.get() {
        0 => "(original)",
        1 => "(dynamic)",
        _ => "",
    };
    Field::Named(sb.revision.get().into(), name)
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

fn flags(sb: &Superblock) -> Field {
    let flags = SuperFlags::from_bits_retain(sb.flags.get());
    let names = [
        (SuperFlags::SIGNED_HASH, "signed_directory_hash"),
        (SuperFlags::UNSIGNED_HASH, "unsigned_directory_hash"),
        (SuperFlags::TEST, "test_filesystem"),
    ];
    let set = names.iter().filter(|(f, _)| flags.contains(*f));
    Field::List(set.map(|(_, name)| (*name).to_owned()).collect())
}

fn mount_options(sb: &Superblock) -> Field {
    let names = DefaultMountOptions::from_bits_retain(sb.default_mount_options.get()).names();
    Field::List(names.into_iter().map(ToOwned::to_owned).collect())
}

fn state(sb: &Superblock) -> String {
    let state = StateFlags::from_bits_retain(sb.state.get());
    let clean = if state.contains(StateFlags::VALID) { "clean" } else { "not clean" };
    let errors = if state.contains(StateFlags::ERROR) { " with errors" } else { "" };
    format!("{clean}{errors}")
}

fn errors(sb: &Superblock) -> String {
    match sb.errors.get() {
        1 => "Continue".into(),
        2 => "Remount read-only".into(),
        3 => "Panic".into(),
        code => format!("Unknown ({code})"),
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
