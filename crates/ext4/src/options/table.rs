//! The mount options of ext4, each named once: `steadfast mount`, its help, the lab's scenarios and
//! `steadfast status` go by this table. A new option is an entry here.

use std::time::Duration;

use steadfast_vfs::options::{Form, MountOption, WrongOption};
use steadfast_vfs::{TransactPolicy, switch};

use super::{AccessTimes, DataMode, Dax, MountOptions, words};

const DATA: &[&str] = &words(&DataMode::NAMES);
const DAX: &[&str] = &words(&Dax::WORDS);
const ACCESS_TIMES: &[&str] = &{
    let (names, negations) = (words(&AccessTimes::NAMES), words(&AccessTimes::NEGATIONS));
    [names[0], names[1], names[2], negations[0], negations[1], negations[2]]
};

const FS: &str = "ext4";
const JOURNAL: &str = "journal";
const PAGES: &str = "page cache";

/// An option that a mount keeps for as long as it lasts.
const fn option(
    of: &'static str,
    form: Form<MountOptions>,
    help: &'static str,
) -> MountOption<MountOptions> {
    MountOption { of, form, remount: false, help }
}

/// The table.
pub static OPTIONS: &[MountOption<MountOptions>] = &[
    option(
        FS,
        Form::Choice {
            key: "data",
            words: DATA,
            set: |o, word| o.data = DataMode::of_name(word).unwrap_or_default(),
            get: |o| o.data.name(),
        },
        "what the journal promises about contents",
    ),
    option(
        FS,
        Form::List {
            key: "transact",
            shown: "WORDS",
            is_part: TransactPolicy::is_word,
            set: |o, words| {
                o.transact = words.parse::<TransactPolicy>()?;
                Ok(())
            },
            get: |o| (o.data == DataMode::Transact).then(|| o.transact.to_string()),
        },
        "with data=transact: what makes a transaction point; unmounting does unless the words say \
         no-umount",
    ),
    option(
        JOURNAL,
        Form::Number {
            key: "commit",
            shown: "SECONDS",
            range: 1..=3600,
            set: |o, seconds| o.journal.commit_interval = Duration::from_secs(seconds),
            get: |o| o.journal.commit_interval.as_secs(),
        },
        "how long changes may stay unwritten; through a mount contents too, because sync(2) does \
         not reach it (fsync does)",
    ),
    switch! { JOURNAL, journal.fast_commits, ["fast_commit"], [], false,
    "an fsync writes small records of what changed instead of whole blocks, where it can; \
     for file systems with this feature. After a crash mount first (or steadfast replay): \
     e2fsck (1.47) replays such records wrongly, also the kernel's" },
    switch! { JOURNAL, journal.async_commit, ["journal_async_commit"], [], false,
    "commit without waiting for the blocks before the commit block" },
    switch! { JOURNAL, journal.accept_volatile, ["accept_volatile", "accept-volatile"], [], false,
    "accept a journal device that loses its contents without power" },
    switch! { FS, read_only, ["ro"], ["rw"], true, "change nothing" },
    switch! { JOURNAL, no_load, ["noload", "norecovery"], [], false,
    "with ro: do not look at the journal" },
    option(
        FS,
        Form::Switch {
            on: &["delalloc"],
            off: &["nodelalloc"],
            set: |o, on| o.delayed_allocation = on,
            // With data=journal what is written gets its place at once, as with the kernel.
            get: |o| o.delayed_allocation && o.data != DataMode::Journal,
        },
        "allocate when contents are written back, not when they are written",
    ),
    option(
        FS,
        Form::OneOf {
            words: DAX,
            set: |o, word| o.dax = Dax::of_word(word).unwrap_or_default(),
            get: |o| o.dax.word(),
        },
        "files that are read and written in place, where the device is memory: none, those with \
         the flag (chattr +x), or all. Memory maps (mmap) still go through the kernel's page \
         cache: FUSE has no other way",
    ),
    switch! { FS, auto_da_alloc, ["auto_da_alloc", "auto_da_alloc=1"],
    ["noauto_da_alloc", "auto_da_alloc=0"], false,
    "write a file out before it is renamed over another, and when it was truncated to 0 \
     bytes and is closed" },
    MountOption {
        of: FS,
        form: Form::OneOf {
            words: ACCESS_TIMES,
            set: |o, word| o.access_times = o.access_times.changed_by(word),
            get: |o| o.access_times.name(),
        },
        remount: true,
        help: "when reading changes a time of access",
    },
    switch! { FS, no_directory_access_times, ["nodiratime"], ["diratime"], true,
    "never for reading a directory" },
    switch! { FS, sync_names, ["dirsync"], [], false,
    "a name that is made, renamed or removed is durable when the call returns; sync does \
     so too" },
    switch! { FS, use_reserved, ["use_reserved"], [], false,
    "everybody may use the reserved blocks; without it nobody may, not even root" },
    switch! { FS, minix_df, ["minixdf"], ["bsddf"], false,
    "df counts the file system's own blocks as space" },
    option(
        PAGES,
        Form::Size {
            key: "cache",
            least: 1 << 20,
            set: |o, bytes| o.cache_bytes = Some(bytes),
            get: |o| o.cache_bytes,
        },
        "memory for contents, metadata, names and what waits in the journal; a mount has 512m \
         without it",
    ),
    // Before what is not offered: some values of those do nothing.
    option(FS, WITHOUT_EFFECT, "our only way, or how the kernel goes about it (ext4(5))"),
    option(
        FS,
        Form::NotOffered { words: &["errors=continue", "errors=panic"], keys: &[] },
        "a damaged file system always becomes read-only",
    ),
    option(
        FS,
        Form::NotOffered { words: &["barrier=0", "nobarrier"], keys: &[] },
        "without flushes a power cut damages the file system",
    ),
    option(
        FS,
        Form::NotOffered { words: &[], keys: &["sb"] },
        "only the first superblock is mounted by: where it is damaged, repair it with e2fsck -b",
    ),
    option(FS, Form::NotOffered { words: &[], keys: &["auto_da_alloc"] }, "its value is 0 or 1"),
    option(FS, Form::NotOffered { words: &[], keys: &["dax"] }, "never, inode or always"),
    option(
        FS,
        Form::NotOffered { words: &["noacl", "nouser_xattr"], keys: &[] },
        "access control lists and attributes always hold",
    ),
    option(
        FS,
        Form::NotOffered { words: &[], keys: &["resuid", "resgid"] },
        "no user gets the reserved blocks here, whatever the superblock says; use_reserved gives \
         them to everybody",
    ),
    option(
        FS,
        Form::NotOffered { words: &["grpid", "bsdgroups"], keys: &[] },
        "a new file has its folder's group where the folder has the set-group-id bit",
    ),
    option(
        FS,
        Form::NotOffered { words: &[], keys: &["usrjquota", "grpjquota", "jqfmt"] },
        "quotas are kept in the file system's own inodes: mkfs -O quota, or tune2fs -O quota",
    ),
    option(
        FS,
        Form::NotOffered { words: &[], keys: &["journal_dev"] },
        "name the journal by its path: journal=PATH",
    ),
    option(
        FS,
        Form::NotOffered {
            words: &["inlinecrypt", "test_dummy_encryption"],
            keys: &["test_dummy_encryption"],
        },
        "contents of encrypted files cannot be read or written here",
    ),
];

const WITHOUT_EFFECT: Form<MountOptions> = Form::WithoutEffect {
    words: &[
        // Our only way.
        "acl",
        "user_xattr",
        "barrier",
        "barrier=1",
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
        "errors=remount-ro",
        // A failed write of data always aborts here.
        "data_err=abort",
        "data_err=ignore",
        // They take the reserved blocks from whom the superblock names; nobody has them here.
        "resuid=0",
        "resgid=0",
        // No quota files: there are none here in any case.
        "usrjquota=",
        "grpjquota=",
        // How the kernel goes about it.
        "discard",
        "nojournal_checksum",
        "noblock_validity",
        "orlov",
        "oldalloc",
        "bh",
        "nobh",
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
    ],
    keys: &[
        "stripe",
        "max_batch_time",
        "min_batch_time",
        "journal_ioprio",
        "inode_readahead_blks",
        "init_itable",
        "mb_optimize_scan",
    ],
    prefixes: &[],
};

/// Whether the kernel's ext4 refuses this option where there is no journal
/// (`__ext4_fill_super`, fs/ext4/super.c). Not `commit=`, which bounds the age of contents too.
pub fn speaks_of_journal(word: &str) -> bool {
    word.starts_with("data=")
        || matches!(word, "journal_checksum" | "journal_async_commit" | "data_err=abort")
}

/// What is wrong with options together; `given`: the words.
///
/// # Errors
/// An option that has no effect without another, which is not there: somebody counts on it.
pub fn check_together(options: &MountOptions, given: &[String]) -> Result<(), WrongOption> {
    let transact = given.iter().find(|word| word.starts_with("transact="));
    match transact {
        // Otherwise somebody counts on transaction points that are never made.
        Some(word) if options.data != DataMode::Transact => {
            Err(WrongOption::new(word, "transact= needs data=transact"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use steadfast_vfs::options::{WordEffect, apply, in_force, split, texts};

    use super::*;

    #[test]
    fn what_is_in_force_can_be_given_again() {
        let text = "data=transact,transact=fsync,timed=5s,commit=9,fast_commit,noload,ro,\
                    nodelalloc,noauto_da_alloc,strictatime,nodiratime,cache=8m,use_reserved";
        let words = split(OPTIONS, text, |_| false);
        assert!(words.contains(&"transact=fsync,timed=5s".to_owned()), "{words:?}");
        let mut options = MountOptions::default();
        for word in &words {
            assert_eq!(apply(OPTIONS, word, &mut options), Ok(WordEffect::Set), "{word}");
        }
        let now = in_force(OPTIONS, &options);
        for word in &words {
            let is =
                |w: &String| w == word || word.starts_with("transact") && w.starts_with("transact");
            assert!(now.iter().any(is), "no {word} in {now:?}");
        }
        let mut again = MountOptions::default();
        for word in &now {
            assert_eq!(apply(OPTIONS, word, &mut again), Ok(WordEffect::Set), "{word}");
        }
        assert_eq!(in_force(OPTIONS, &again), now);
    }

    #[test]
    fn data_that_goes_through_the_journal_is_not_delayed() {
        for (data, said) in [(DataMode::Ordered, "delalloc"), (DataMode::Journal, "nodelalloc")] {
            let options = MountOptions { data, ..MountOptions::default() };
            let now = in_force(OPTIONS, &options);
            assert!(now.contains(&said.to_owned()), "{data:?}: {now:?}");
        }
    }

    #[test]
    fn defaults_are_the_structures_own() {
        let texts = texts(OPTIONS);
        let default = |words: &str| texts.iter().find(|t| t.words.starts_with(words)).unwrap();
        assert_eq!(default("data=").default, "ordered");
        assert_eq!(default("commit=").default, "5");
        assert_eq!(default("delalloc").default, "delalloc");
        assert_eq!(default("relatime").default, "relatime");
        assert_eq!(default("ro").default, "rw");
        assert_eq!(default("fast_commit").default, "");
    }

    #[test]
    fn other_spellings_are_taken() {
        for (word, on) in [("auto_da_alloc=0", false), ("noauto_da_alloc", false)] {
            let mut options = MountOptions::default();
            assert_eq!(apply(OPTIONS, word, &mut options), Ok(WordEffect::Set), "{word}");
            assert_eq!(options.auto_da_alloc, on);
            assert_eq!(apply(OPTIONS, "auto_da_alloc=1", &mut options), Ok(WordEffect::Set));
            assert!(options.auto_da_alloc);
        }
    }

    /// As with the kernel: what is taken back was the one that held, or nothing changes.
    #[test]
    fn negations_take_back_what_they_name() {
        for (given, held) in [
            (&["norelatime"][..], AccessTimes::Relative),
            (&["noatime", "norelatime"], AccessTimes::Never),
            (&["noatime", "nostrictatime"], AccessTimes::Never),
            (&["noatime", "atime"], AccessTimes::Relative),
            (&["strictatime", "nostrictatime"], AccessTimes::Relative),
            (&["strictatime", "atime"], AccessTimes::Always),
        ] {
            let mut options = MountOptions::default();
            for word in given {
                assert_eq!(apply(OPTIONS, word, &mut options), Ok(WordEffect::Set), "{word}");
            }
            assert_eq!(options.access_times, held, "{given:?}");
        }
    }

    #[test]
    fn values_that_do_nothing_are_taken_of_options_that_are_not_offered() {
        let given = |word: &str| apply(OPTIONS, word, &mut MountOptions::default());
        for word in ["resuid=0", "resgid=0", "usrjquota=", "grpjquota=", "bh", "nobh"] {
            assert_eq!(given(word), Ok(WordEffect::WithoutEffect), "{word}");
        }
        for word in ["resuid=7", "resgid=7", "usrjquota=aquota.user", "sb=32768", "grpid"] {
            assert!(given(word).is_err(), "{word}");
        }
    }

    #[test]
    fn transact_alone_is_refused() {
        let given = ["transact=fsync".to_owned()];
        let wrong = check_together(&MountOptions::default(), &given).unwrap_err();
        assert!(wrong.what.contains("needs data=transact"));
    }
}
