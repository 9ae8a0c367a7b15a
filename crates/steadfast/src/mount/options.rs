//! Mount options, as `-o` gives them: the tables of the file system and of FUSE, and what is the
//! command's own.

use std::path::PathBuf;

use steadfast_ext4::options as ext4;
use steadfast_ext4::{AccessTimes, DataMode, MountOptions};
use steadfast_fuse::KernelTimes;
use steadfast_setup::Blocks;
use steadfast_vfs::options::{
    Form, MountOption, OptionText, ValueError, WordEffect, WrongOption, apply, in_force, names,
    split, texts, unknown,
};
use steadfast_vfs::switch;

use crate::{Usage, terminal};

/// What `-o` asked for.
#[derive(Debug, Clone, Default)]
pub struct MountSettings {
    /// For the file system; its journal device is still to be opened.
    pub ext4: MountOptions,
    /// For the mount.
    pub fuse: steadfast_fuse::Options,
    /// Where an external journal may be.
    pub journals: Vec<PathBuf>,
    /// Byte of the image or device at which the file system begins.
    pub offset: u64,
    /// The options as given.
    pub text: String,
    /// Those of them that change nothing.
    pub without_effect: Vec<String>,
    /// The log has everything.
    pub debug: bool,
    /// Change how it is mounted, do not mount.
    pub remount: bool,
}

/// The options that are the command's own.
static OWN: &[MountOption<MountSettings>] = &[
    MountOption {
        of: "journal",
        form: Form::Text {
            keys: &["journal", "journal_path"],
            shown: "PATH",
            set: |w, path| {
                // As it is in this folder: who asks for it later may be in another.
                let failed = |source| ValueError::Path { path: path.to_owned(), source };
                let path = std::path::absolute(path).map_err(failed)?;
                w.journals.push(path);
                Ok(())
            },
            get: |w| w.journals.iter().map(|path| path.display().to_string()).collect(),
        },
        remount: false,
        help: "external journal, or a folder to look for it in; of several, the one with the right \
               UUID is used; without it, any block device with that UUID",
    },
    MountOption {
        of: "mount",
        form: Form::Size {
            key: "offset",
            least: 0,
            set: |w, bytes| w.offset = bytes,
            get: |w| (w.offset > 0).then_some(w.offset),
        },
        remount: false,
        help: "where in a larger file or device the file system begins",
    },
    switch! { "mount", debug, ["debug", "fuse2fs_debug"], [], false,
    "the log has every level, also debug messages" },
    MountOption {
        of: "mount",
        form: Form::Switch {
            on: &["remount"],
            off: &[],
            set: |w, on| w.remount = on,
            get: |_| false,
        },
        remount: true,
        help: "change options of an existing mount: those that can be changed",
    },
];

/// `cache=` where it is not given.
pub(super) const CACHE_BYTES: u64 = 512 << 20;

/// Reads the options; a later one stands over an earlier.
pub fn parse(lists: &[String]) -> Result<MountSettings, Usage> {
    parse_over(MountSettings::default(), lists)
}

/// The same, where reading changes no times unless an option says otherwise: what was written is
/// measured or read back.
pub fn parse_without_times(lists: &[String]) -> Result<MountSettings, Usage> {
    let mut none = MountSettings::default();
    none.ext4.access_times = AccessTimes::Never;
    parse_over(none, lists)
}

fn parse_over(base: MountSettings, lists: &[String]) -> Result<MountSettings, Usage> {
    let (wanted, words) = each(base, lists)?;
    // Of a remount, together with those of the mount that is there.
    if !wanted.remount {
        ext4::check_together(&wanted.ext4, &words).map_err(usage)?;
    }
    Ok(wanted)
}

/// Reads them one by one; also the words.
fn each(base: MountSettings, lists: &[String]) -> Result<(MountSettings, Vec<String>), Usage> {
    let mut wanted = MountSettings { text: lists.join(","), ..base };
    // `sync` is a transaction point's word, and an option: it is the first where it follows one.
    let is_other = |word: &str| {
        apply(steadfast_fuse::OPTIONS, word, &mut steadfast_fuse::Options::default())
            .is_ok_and(|applied| applied != WordEffect::Unknown)
    };
    let words = split(ext4::OPTIONS, &wanted.text, is_other);
    for word in &words {
        if one(&mut wanted, word)? == WordEffect::WithoutEffect {
            wanted.without_effect.push(word.clone());
        }
    }
    if wanted.fuse.sync && wanted.fuse.writeback_cache {
        usage!(
            "mount options sync and writeback_cache exclude each other: with writeback_cache the \
             kernel keeps writes to itself, and none would be durable when it returns"
        );
    }
    if wanted.fuse.fake_root && wanted.fuse.allow_other {
        usage!(
            "mount options fakeroot and allow_other exclude each other: everybody would be root in \
             it"
        );
    }
    if wanted.ext4.data == DataMode::Transact && wanted.fuse.writeback_cache {
        usage!(
            "mount options data=transact and writeback_cache exclude each other: with \
             writeback_cache the kernel keeps writes and sizes to itself, so that a point would \
             not have them and a rollback not take them back"
        );
    }
    wanted.ext4.data_given = words.iter().find(|word| ext4::speaks_of_journal(word)).cloned();
    wanted.ext4.cache_bytes.get_or_insert(CACHE_BYTES);
    wanted.ext4.write_by_commit_age();
    wanted.as_fuse_has_it();
    Ok((wanted, words))
}

fn usage(e: WrongOption) -> Usage {
    Usage(e.to_string())
}

/// Takes one word.
fn one(wanted: &mut MountSettings, word: &str) -> Result<WordEffect, Usage> {
    offer(wanted, word).map_err(usage)
}

/// Offers a word to each table.
fn offer(wanted: &mut MountSettings, word: &str) -> Result<WordEffect, WrongOption> {
    let by_fs = apply(ext4::OPTIONS, word, &mut wanted.ext4)?;
    if by_fs != WordEffect::Unknown {
        return Ok(by_fs);
    }
    let by_mount = apply(steadfast_fuse::OPTIONS, word, &mut wanted.fuse)?;
    if by_mount != WordEffect::Unknown {
        return Ok(by_mount);
    }
    match apply(OWN, word, wanted)? {
        WordEffect::Unknown => {
            let tables = [names(ext4::OPTIONS), names(steadfast_fuse::OPTIONS), names(OWN)];
            Err(unknown(word, &tables.concat()))
        }
        applied => Ok(applied),
    }
}

impl MountSettings {
    /// What both the file system and the mount must know.
    fn as_fuse_has_it(&mut self) {
        self.fuse.read_only = self.ext4.read_only;
        self.fuse.access_times = match self.ext4.access_times {
            AccessTimes::Never => KernelTimes::Never,
            AccessTimes::Relative => KernelTimes::Relative,
            AccessTimes::Always => KernelTimes::Always,
        };
    }

    /// The file system's options as it is to be mounted with: `sync` is about names too, as the
    /// kernel has it (`IS_DIRSYNC`). With data=transact the mask decides what it does.
    pub fn for_fs(&self) -> MountOptions {
        let mut options = self.ext4.clone();
        options.sync_names |= self.fuse.sync && options.data != DataMode::Transact;
        options
    }

    /// With the options changed that a remount can change; others stay.
    ///
    /// # Errors
    /// A word that cannot be taken.
    pub fn remounted(&self, words: &[String]) -> Result<MountSettings, Usage> {
        let mut now = self.clone();
        for word in words.iter().filter(|word| can_be_remounted(word)) {
            one(&mut now, word)?;
        }
        now.as_fuse_has_it();
        Ok(now)
    }

    /// The same options over what the file system's superblock asks for; what it does not get. The
    /// mount may have become read-only meanwhile.
    ///
    /// # Errors
    /// They do not go together any more.
    pub fn over_superblock(&mut self, blocks: &Blocks) -> Result<Vec<String>, Usage> {
        let (options, notes) = blocks.default_options(MountOptions::default());
        let base = MountSettings { ext4: options, ..MountSettings::default() };
        let read_only = self.ext4.read_only;
        *self = parse_over(base, std::slice::from_ref(&self.text))?;
        (self.ext4.read_only, self.fuse.read_only) = (read_only, read_only);
        Ok(notes)
    }

    /// Every option as it is, as an option list writes it.
    pub fn in_force(&self) -> Vec<String> {
        let all = [
            in_force(ext4::OPTIONS, &self.ext4),
            in_force(steadfast_fuse::OPTIONS, &self.fuse),
            in_force(OWN, self),
        ];
        all.concat()
    }

    /// Those that a remount cannot change.
    pub fn lasting(&self) -> Vec<String> {
        fn of<T>(table: &'static [MountOption<T>], from: &T) -> Vec<String> {
            let lasting = table.iter().filter(|option| !option.remount);
            lasting.flat_map(|option| option.in_force(from)).collect()
        }
        [of(ext4::OPTIONS, &self.ext4), of(steadfast_fuse::OPTIONS, &self.fuse), of(OWN, self)]
            .concat()
    }
}

fn can_be_remounted(word: &str) -> bool {
    fn of<T: Default>(table: &[MountOption<T>], word: &str) -> bool {
        let mut can = table.iter().filter(|option| option.remount);
        can.any(|o| o.apply(word, &mut T::default()) == Ok(WordEffect::Set))
    }
    of(ext4::OPTIONS, word) || of(steadfast_fuse::OPTIONS, word)
}

/// What each option is.
fn all() -> Vec<OptionText> {
    [texts(ext4::OPTIONS), texts(OWN), texts(steadfast_fuse::OPTIONS)].concat()
}

/// What `mount --help` says after the arguments.
pub fn help() -> String {
    let mut text = String::from(EXAMPLES);
    for option in all() {
        let default = match option.default.as_str() {
            "" => String::new(),
            default => format!(" ({default})"),
        };
        let what = format!("{}{default}", option.help);
        text += &match option.words.len() {
            0..=20 => terminal::hanging(&format!("  {:21} ", option.words), &what),
            _ => format!("  {}\n{}", option.words, terminal::hanging(&" ".repeat(24), &what)),
        };
    }
    text + AFTER
}

const EXAMPLES: &str = "\
Examples:
  steadfast mount disk.img /mnt/disk
  steadfast mount disk.img /mnt/disk -o data=journal,journal=journal.img
  steadfast mount /dev/sdb1 /mnt/disk -o ro,noload --foreground
  steadfast mount --stack nvram-journal --variant external /mnt/disk

Mount options (-o, separated by commas; in brackets what holds without):
";

const AFTER: &str = "
Options of mount(8), fstab(5) and the kernel's ext4 that are the only way here,
or that are meant for others, are taken too; any other is refused.
As root, -o remount changes ro, dev, suid, noexec, nosymfollow and times of
access.

The mount is in the background once it works; errors until then are shown here.
SIGTERM and SIGINT unmount it.";

/// The table of docs/mount.md.
pub fn markdown() -> String {
    use std::fmt::Write;
    let mut text =
        String::from("| option | of | without it | remount | meaning |\n|---|---|---|---|---|\n");
    for o in all() {
        let words = o.words.replace('|', "\\|");
        let default = if o.default.is_empty() { "-".into() } else { format!("`{}`", o.default) };
        let remount = if o.remount { "root" } else { "no" };
        // OK to ignore: writing to a string does not fail.
        let _ = writeln!(text, "| `{words}` | {} | {default} | {remount} | {} |", o.of, o.help);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_ext4::DataMode;

    use super::*;

    fn one(text: &str) -> Result<MountSettings, Usage> {
        parse(&[text.to_owned()])
    }

    #[test]
    fn options_reach_what_they_are_for() {
        let w = one(
            "data=journal,commit=9,journal=/a,journal=/b,cache=8m,ro,allow_other,noauto_da_alloc",
        )
        .unwrap();
        assert_eq!(w.ext4.data, DataMode::Journal);
        assert!(!w.ext4.auto_da_alloc && one("").unwrap().ext4.auto_da_alloc);
        assert_eq!(w.ext4.journal.commit_interval, Duration::from_secs(9));
        assert_eq!(w.ext4.cache_bytes, Some(8 << 20));
        assert_eq!(w.ext4.page_cache.dirty_expire_ms, 9000);
        assert_eq!(w.journals, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert!(w.ext4.read_only && w.fuse.read_only && w.fuse.allow_other);
        assert_eq!(one("").unwrap().ext4.cache_bytes, Some(512 << 20));
    }

    #[test]
    fn transaction_points_have_their_own_words() {
        let w = one("data=transact,transact=fsync,timed=5s,ro").unwrap();
        assert_eq!(w.ext4.data, DataMode::Transact);
        assert_eq!(w.ext4.transact, "timed=5s,fsync".parse().unwrap());
        assert!(w.ext4.read_only);
        assert!(one("data=transact,transact=fsyn").unwrap_err().0.contains("'fsyn'"));
        assert!(one("transact=fsync,data=transact").is_ok());
        let apart = one("data=transact,transact=fsync,ro,timed=5s,create").unwrap();
        assert_eq!(apart.ext4.transact, "timed=5s,fsync,create".parse().unwrap());
        assert!(!one("data=transact,transact=fsync,sync").unwrap().fuse.sync);
        // mount(8) puts the words that it knows in front: colons keep the list together.
        assert!(one("sync,data=transact,transact=fsync").unwrap().fuse.sync);
        let colons = one("data=transact,transact=fsync:sync").unwrap();
        assert_eq!(colons.ext4.transact, "fsync,sync".parse().unwrap());
        assert!(one("data=transact,transact=fsync,ro,sync").unwrap().fuse.sync);
        for alone in ["transact=fsync", "data=transact,transact=fsync,data=ordered"] {
            assert!(one(alone).unwrap_err().0.contains("transact= needs data=transact"));
        }
    }

    #[test]
    fn what_changes_nothing_is_distinguished_from_the_rest() {
        for word in ["acl", "x-systemd.automount", "stripe=16", "errors=remount-ro", "_netdev"] {
            assert_eq!(one(word).unwrap().without_effect, [word]);
        }
        for word in ["noacl", "errors=panic", "dax=2", "grpid", "resuid=7", "stripe"] {
            assert!(one(word).is_err(), "{word}");
        }
        assert!(one("sync").unwrap().without_effect.is_empty());
        assert!(!one("noexec,exec").unwrap().fuse.no_exec);
    }

    #[test]
    fn a_misspelt_option_is_recognised() {
        for (bad, meant) in [
            ("comit=9", "did you mean commit=?"),
            ("noatme", "did you mean noatime?"),
            ("data=orderd", "did you mean ordered?"),
            ("alow_other", "did you mean allow_other?"),
            ("commit", "a value is needed: commit="),
            ("data=", "data=: a value is needed: choose "),
            ("ro=1", "takes no value"),
            ("commit=0", "from 1 to 3600"),
            ("cache=1k", "at least 1m"),
            ("journal=", "no path"),
            ("resgid=5", "use_reserved gives"),
            ("noacl", "always hold"),
            ("dax=2", "never, inode or always"),
            ("auto_da_alloc=2", "0 or 1"),
            ("usrjquota=aquota.user", "mkfs -O quota"),
        ] {
            let said = one(bad).unwrap_err().0;
            assert!(said.contains(meant), "{bad}: {said}");
        }
    }

    #[test]
    fn what_is_in_force_can_be_given_again() {
        let given = one("data=journal,commit=9,noatime,allow_other,threads=3,journal=/a").unwrap();
        let now = given.in_force();
        let again = one(&now.join(",")).unwrap();
        assert_eq!(again.in_force(), now);
        for word in ["data=journal", "commit=9", "noatime", "allow_other", "threads=3", "nodev"] {
            assert!(now.contains(&word.to_owned()), "no {word} in {now:?}");
        }
        assert_eq!(again.fuse.access_times, KernelTimes::Never);
        let remounted = again.remounted(&["strictatime".into(), "cache=9m".into(), "suid".into()]);
        let remounted = remounted.unwrap();
        assert_eq!(remounted.fuse.access_times, KernelTimes::Always);
        assert!(remounted.fuse.suid && remounted.ext4.cache_bytes == again.ext4.cache_bytes);
    }

    #[test]
    fn the_help_fits_a_terminal_and_names_every_option() {
        let help = help();
        assert!(help.lines().all(|l| l.chars().count() <= 80), "{help}");
        for option in all() {
            assert!(help.contains(&format!("  {}", option.words)), "{help}");
        }
    }

    #[test]
    fn the_documentation_lists_every_option() {
        let docs = std::fs::read_to_string("../../docs/mount.md").unwrap();
        for line in markdown().lines() {
            assert!(docs.contains(line), "docs/mount.md has not this line: {line}");
        }
    }

    #[test]
    fn what_is_not_offered_is_named() {
        let said = one("sync,writeback_cache").unwrap_err().0;
        assert!(said.contains("sync and writeback_cache exclude each other"), "{said}");
        let said = one("data=transact,writeback_cache").unwrap_err().0;
        assert!(said.contains("data=transact and writeback_cache exclude"), "{said}");
        for bad in ["nobarrier", "errors=panic", "data=mirrored", "commit=0", "sb=32768", "foo"] {
            let said = one(bad).unwrap_err().0;
            assert!(said.contains(bad), "{said}");
        }
    }
}
