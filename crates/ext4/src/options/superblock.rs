//! The mount options that a superblock asks for: `tune2fs -o` and `tune2fs -E mount_opts=`.
//!
//! They hold where nothing else is said, as the kernel has it (fs/ext4/super.c:
//! `ext4_set_def_opts`, then `parse_apply_sb_mount_options`, then what mount(2) was given). Whoever
//! mounts what others have made begins with them: [`default_options`].

use std::ffi::CStr;
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{Compat, DefaultMountOptions, Superblock};
use steadfast_ext4_format::superblock;
use steadfast_vfs::options::{WordEffect, WrongOption, apply, names, split, unknown};

use super::table::OPTIONS;
use super::{DataMode, MountOptions};

/// `base` with what the superblock asks for, and what it asks for and does not get: a line each,
/// for people. A device without a readable superblock changes nothing: the mount says what is
/// wrong.
pub fn default_options(
    device: &Arc<dyn BlockDevice>,
    base: MountOptions,
) -> (MountOptions, Vec<String>) {
    match superblock::find(&**device) {
        Ok(found) => of_superblock(&found.superblock, base),
        Err(_) => (base, Vec::new()),
    }
}

fn of_superblock(
    superblock: &Superblock,
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
    ];
    for (_, name, instead) in not_done.iter().filter(|(option, ..)| asked.contains(*option)) {
        notes.push(format!("the superblock asks for {name}, which is not done here: {instead}"));
    }
    let words = in_words(superblock);
    match with_words(&words, has_journal, &options) {
        Ok(changed) => options = changed,
        // All or nothing, as in the kernel.
        Err(e) => notes.push(format!("the superblock's mount options '{words}' are left out: {e}")),
    }
    (options, notes)
}

/// `mount_opts=`: of 64 bytes what is before the first zero.
fn in_words(superblock: &Superblock) -> String {
    let bytes = &superblock.mount_options[..];
    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
    String::from_utf8_lossy(text).into_owned()
}

fn with_words(
    text: &str,
    has_journal: bool,
    base: &MountOptions,
) -> Result<MountOptions, WrongOption> {
    let mut options = base.clone();
    for word in split(OPTIONS, text, |_| false) {
        if matches!(&*word, "ro" | "rw" | "noload" | "norecovery") || word.ends_with("atime") {
            return Err(WrongOption::new(&word, "only a mount can say it"));
        }
        if apply(OPTIONS, &word, &mut options)? == WordEffect::Unknown {
            return Err(unknown(&word, &names(OPTIONS)));
        }
    }
    if !has_journal {
        options.data = base.data;
    }
    Ok(options)
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
        of_superblock(&superblock, MountOptions::default())
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
