//! The mount options that a superblock asks for: `tune2fs -o` and `tune2fs -E mount_opts=`.
//!
//! They hold where nothing else is said, as the kernel has it (fs/ext4/super.c:
//! `ext4_set_def_opts`, then `parse_apply_sb_mount_options`, then what mount(2) was given). Whoever
//! mounts what others have made begins with them: [`default_options`].

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{Compat, DefaultMountOptions, Superblock};
use steadfast_ext4_format::superblock;
use steadfast_vfs::foreign::Foreign;
use steadfast_vfs::options::{WordEffect, WrongOption, apply, split};

use super::table::OPTIONS;
use super::{DataMode, Dax, MountOptions};
use crate::file::dax_hindrance;

/// `base` with what the superblock asks for, and what it asks for and does not get: a line each,
/// for people. A device without a readable superblock changes nothing: the mount says what is
/// wrong.
pub fn default_options(
    device: &Arc<dyn BlockDevice>,
    base: MountOptions,
) -> (MountOptions, Vec<String>) {
    match superblock::find(&**device) {
        Ok(found) => of_superblock(&found.superblock, &**device, base),
        Err(_) => (base, Vec::new()),
    }
}

fn of_superblock(
    superblock: &Superblock,
    device: &dyn BlockDevice,
    mut options: MountOptions,
) -> (MountOptions, Vec<String>) {
    let asked = DefaultMountOptions::from_bits_retain(superblock.default_mount_options.get());
    let mut notes = Vec::new();
    // Without a journal the kernel passes over them.
    let has_journal = superblock.features().compat.contains(Compat::HAS_JOURNAL);
    let mode = asked & DefaultMountOptions::JOURNAL_WRITEBACK;
    if has_journal && !mode.is_empty() {
        options.data = match mode {
            DefaultMountOptions::JOURNAL_DATA => DataMode::Journal,
            DefaultMountOptions::JOURNAL_ORDERED => DataMode::Ordered,
            _ => DataMode::Writeback,
        };
    }
    if asked.contains(DefaultMountOptions::NO_DELALLOC) {
        options.delayed_allocation = false;
    }
    let not_done = [
        (DefaultMountOptions::NO_BARRIER, "nobarrier", "flushes are made all the same"),
        (DefaultMountOptions::BSD_GROUPS, "bsdgroups", "a new file has the group of who makes it"),
        (DefaultMountOptions::UID16, "uid16", "users and groups have 32 bits"),
    ];
    for (_, name, instead) in not_done.iter().filter(|(option, ..)| asked.contains(*option)) {
        notes.push(format!("the superblock asks for {name}, which is not done here: {instead}"));
    }
    let words = superblock.mount_words();
    match with_words(&words, superblock, device, &options) {
        Ok(changed) => options = changed,
        // All or nothing, as in the kernel.
        Err(e) => notes.push(format!(
            "the superblock's mount options '{}' are left out: {e}",
            Foreign::new(&words)
        )),
    }
    (options, notes)
}

/// Whether only whoever mounts may say a word: what the kernel's ext4 does not know either, and
/// what is about this machine. An image of a stranger does not decide about memory here.
fn is_for_mounts_only(word: &str) -> bool {
    matches!(word, "ro" | "rw" | "noload" | "norecovery" | "data=transact" | "fast_commit")
        || matches!(word, "accept_volatile" | "accept-volatile" | "use_reserved")
        || word.ends_with("atime")
        || word.starts_with("cache=")
        || word.starts_with("transact=")
}

/// The options changed by the superblock's words; why not, in words: also if they do not go
/// together or this device cannot be used so. A mount that says such a thing itself is refused, but
/// commands on images have no option to take it back.
fn with_words(
    text: &str,
    superblock: &Superblock,
    device: &dyn BlockDevice,
    base: &MountOptions,
) -> Result<MountOptions, String> {
    let mut options = base.clone();
    let features = superblock.features();
    for word in split(OPTIONS, text, |_| false) {
        if is_for_mounts_only(&word) {
            return Err(WrongOption::new(&word, "only a mount can say it").to_string());
        }
        if apply(OPTIONS, &word, &mut options).map_err(|e| e.to_string())? == WordEffect::Unknown {
            return Err(WrongOption::new(&word, "is unknown").to_string());
        }
    }
    if !features.compat.contains(Compat::HAS_JOURNAL) {
        options.data = base.data;
    }
    options.check().map_err(|e| e.to_string())?;
    let block_size = superblock.block_size().unwrap_or(0);
    let hindrance = dax_hindrance(device, block_size, features);
    match hindrance.filter(|_| options.dax == Dax::Always) {
        Some(what) => Err(format!("dax=always: {what}")),
        None => Ok(options),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use zerocopy::FromZeros;

    use super::*;

    fn begin(bits: DefaultMountOptions, words: &str, journal: bool) -> (MountOptions, Vec<String>) {
        let mut superblock = Superblock::new_zeroed();
        superblock.default_mount_options.set(bits.bits());
        superblock.mount_options[..words.len()].copy_from_slice(words.as_bytes());
        if journal {
            superblock.feature_compat.set(Compat::HAS_JOURNAL.bits());
        }
        let disk = steadfast_devices::source::Ram::new("disk", 1 << 20);
        of_superblock(&superblock, &disk, MountOptions::default())
    }

    /// What Linux 6.18 did with each of these (`/proc/fs/ext4/*/options`).
    #[test]
    fn a_superblock_is_obeyed_as_the_kernel_obeys_it() {
        let none = DefaultMountOptions::empty();
        let data = |bits, words: &str, journal| begin(bits, words, journal).0.data;
        assert_eq!(data(none, "", true), DataMode::Ordered);
        assert_eq!(data(DefaultMountOptions::JOURNAL_DATA, "", true), DataMode::Journal);
        assert_eq!(data(DefaultMountOptions::JOURNAL_WRITEBACK, "", true), DataMode::Writeback);
        let both = data(DefaultMountOptions::JOURNAL_WRITEBACK, "data=journal", true);
        assert_eq!(both, DataMode::Journal);
        // Not refused where there is no journal, as an option of a mount is.
        assert_eq!(data(DefaultMountOptions::JOURNAL_DATA, "", false), DataMode::Ordered);
        assert_eq!(data(none, "data=journal", false), DataMode::Ordered);
        let two = begin(none, "commit=9,nodelalloc", true);
        assert_eq!(two.0.journal.commit_interval, Duration::from_secs(9));
        assert!(!two.0.delayed_allocation && two.1.is_empty());
        let no = begin(DefaultMountOptions::NO_DELALLOC, "", true).0;
        assert!(!no.delayed_allocation);
        // A word that cannot be taken: none is.
        for words in [
            "foo=1,data=journal",
            "data=journal,foo=1",
            "commit=abc,data=journal",
            "ro,data=journal",
            "data=journal,cache=100t",
            "data=journal,accept_volatile",
            "data=transact",
            "data=journal,fast_commit",
            // Each word is one of the kernel's, but they do not go together.
            "journal_async_commit",
            "dax,data=journal",
        ] {
            let (options, notes) = begin(none, words, true);
            assert_eq!(options.data, DataMode::Ordered, "{words}");
            assert!(notes[0].contains(words), "{notes:?}");
        }
        let long = "x".repeat(64);
        assert!(begin(none, &long, true).1[0].contains(&long));
        assert_eq!(begin(DefaultMountOptions::BSD_GROUPS, "", true).1.len(), 1);
    }
}
