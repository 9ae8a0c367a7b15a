//! Mount options that are taken and change nothing: those of mount(8) and fstab(5) that are for
//! others, and those of the kernel's ext4 that are our only way, or have no meaning here.

/// Options without a value.
const WORDS: &[&str] = &[
    // mount(8), fstab(5), mount.fuse(8)
    "defaults",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "loop",
    "async",
    "exec",
    "nomand",
    "loud",
    "silent",
    "noiversion",
    "nolazytime",
    // Times of access kept in memory may be lost; ours are not.
    "lazytime",
    "default_permissions",
    // ext4(5): our only way
    "acl",
    "user_xattr",
    "barrier",
    "bsddf",
    "nogrpid",
    "sysvgroups",
    "journal_checksum",
    "nouid32",
    "block_validity",
    "quota",
    "noquota",
    "usrquota",
    "grpquota",
    "prjquota",
    "nodiscard",
    "nodax",
    // ext4(5): how the kernel goes about it
    "discard",
    "nojournal_checksum",
    "noblock_validity",
    "orlov",
    "oldalloc",
    "check=none",
    "nocheck",
    "mblk_io_submit",
    "nomblk_io_submit",
    "dioread_lock",
    "dioread_nolock",
    "nodioread_nolock",
    "init_itable",
    "noinit_itable",
    "prefetch_block_bitmaps",
    "no_prefetch_block_bitmaps",
    "no_mbcache",
    "nombcache",
    "nowarn_on_error",
    "warn_on_error",
    "i_version",
    "iversion",
];

/// Options with any value.
const KEYS: &[&str] = &[
    // What the table of mounts shows, and mount(8) hands back when it remounts.
    "user_id",
    "group_id",
    "rootmode",
    "blksize",
    "max_read",
    "comment",
    "fsname",
    "subtype",
    "stripe",
    "max_batch_time",
    "min_batch_time",
    "journal_ioprio",
    "inode_readahead_blks",
    "init_itable",
    "mb_optimize_scan",
];

/// Options with one value of several.
const VALUES: &[&str] = &[
    "errors=remount-ro",
    "barrier=1",
    // A failed write of data always aborts here.
    "data_err=abort",
    "data_err=ignore",
    "resuid=0",
    "resgid=0",
    "dax=never",
];

/// Whether an option is one of them.
pub fn is_accepted(word: &str) -> bool {
    let key = word.split_once('=').map(|(key, _)| key);
    WORDS.contains(&word)
        || VALUES.contains(&word)
        || key.is_some_and(|key| KEYS.contains(&key))
        // Notes for systemd and others, not for whoever mounts.
        || word.starts_with("x-")
        || word.starts_with("X-")
}

#[cfg(test)]
mod tests {
    use super::is_accepted;

    #[test]
    fn what_changes_nothing_is_told_from_the_rest() {
        for word in ["acl", "x-systemd.automount", "stripe=16", "errors=remount-ro", "_netdev"] {
            assert!(is_accepted(word), "{word}");
        }
        for word in ["noacl", "errors=panic", "dax", "grpid", "resuid=7", "stripe", "sync"] {
            assert!(!is_accepted(word), "{word}");
        }
    }
}
