//! Mount options, as `-o` gives them.

use std::path::PathBuf;
use std::time::Duration;

use steadfast_ext4::mount::{AccessTimes, DataMode, MountOptions};
use steadfast_lab::size;
use steadfast_vfs::TransactPolicy;

use super::accepted::is_accepted;
use crate::Usage;

/// What `-o` asked for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// For the file system; its journal device is still to be opened.
    pub ext4: MountOptions,
    /// For the mount.
    pub fuse: steadfast_fuse::Options,
    /// Where an external journal may be.
    pub journals: Vec<PathBuf>,
    /// The options as given.
    pub text: String,
    /// Those of them that change nothing.
    pub without_effect: Vec<String>,
    /// The log tells of everything.
    pub debug: bool,
    /// Change how it is mounted, do not mount.
    pub remount: bool,
}

const KNOWN: &str = "data=writeback|ordered|journal|transact, transact=WORDS, journal=PATH, \
     commit=SECONDS, ro, rw, noload, journal_async_commit, fast_commit, delalloc, nodelalloc, \
     auto_da_alloc, noauto_da_alloc, accept_volatile, use_reserved, cache=SIZE, allow_other, \
     dev, nodev, suid, nosuid, noatime, relatime, strictatime, nodiratime, diratime, \
     exec, noexec, sync, threads=N, writeback_cache, debug, remount, and options of mount(8) and \
     ext4 that are the default or have no meaning here";

fn refused<T>(what: String) -> Result<T, Usage> {
    Err(Usage(what))
}

/// Reads the options; `data=` and the rest as mount(8) writes them.
pub fn parse(lists: &[String]) -> Result<Wanted, Usage> {
    let mut wanted = Wanted { text: lists.join(","), ..Wanted::default() };
    let mut commit = 5;
    let mut transact: Option<String> = None;
    for word in wanted.text.clone().split(',').map(str::trim).filter(|w| !w.is_empty()) {
        if let Some(words) = &mut transact
            && TransactPolicy::is_word(word)
        {
            words.push(',');
            words.push_str(word);
            continue;
        }
        if is_accepted(word) {
            wanted.without_effect.push(word.to_owned());
            continue;
        }
        match word.split_once('=') {
            Some(("transact", words)) => transact = Some(words.into()),
            Some(("commit", text)) => commit = whole(word, text, 1..=3600)?,
            Some((key, value)) => with_value(&mut wanted, word, key, value)?,
            None => flag(&mut wanted, word)?,
        }
    }
    if let Some(words) = transact {
        // Otherwise somebody counts on transaction points that are never made.
        if wanted.ext4.data != DataMode::Transact {
            return refused("mount option transact= needs data=transact".into());
        }
        let policy = words.parse().map_err(|e| Usage(format!("mount option transact=: {e}")))?;
        wanted.ext4.transact = policy;
    }
    wanted.ext4.journal.commit_interval = Duration::from_secs(commit);
    // sync(2) does not reach us: what it would write is written by age instead.
    let pages = &mut wanted.ext4.page_cache;
    pages.dirty_expire_ms = commit * 1000;
    pages.writeback_interval_ms = (commit * 1000 / 2).max(500);
    wanted.fuse.read_only = wanted.ext4.read_only;
    Ok(wanted)
}

fn whole(word: &str, text: &str, range: std::ops::RangeInclusive<u64>) -> Result<u64, Usage> {
    match text.parse() {
        Ok(n) if range.contains(&n) => Ok(n),
        _ => refused(format!(
            "mount option {word}: a whole number from {} to {} is needed",
            range.start(),
            range.end()
        )),
    }
}

fn with_value(wanted: &mut Wanted, word: &str, key: &str, value: &str) -> Result<(), Usage> {
    let ext4 = &mut wanted.ext4;
    match (key, value) {
        ("data", "writeback") => ext4.data = DataMode::Writeback,
        ("data", "ordered") => ext4.data = DataMode::Ordered,
        ("data", "journal") => ext4.data = DataMode::Journal,
        ("data", "transact") => ext4.data = DataMode::Transact,
        ("journal" | "journal_path", "") => {
            return refused(format!("mount option {word}: no path"));
        }
        ("journal" | "journal_path", path) => wanted.journals.push(path.into()),
        ("cache", text) => {
            let bytes =
                size::parse(text).map_err(|e| Usage(format!("mount option {word}: {e}")))?;
            if bytes < 1 << 20 {
                return refused(format!("mount option {word}: at least 1m is needed"));
            }
            ext4.cache_bytes = Some(bytes);
        }
        ("threads", text) => wanted.fuse.threads = whole(word, text, 1..=256)? as usize,
        ("auto_da_alloc", "0" | "1") => ext4.auto_da_alloc = value == "1",
        ("errors", "continue" | "panic") => {
            return refused(format!(
                "mount option {word} is not offered: a damaged file system always becomes read-only"
            ));
        }
        ("barrier", "0") => return no_barrier(word),
        ("sb", _) => {
            return refused(format!(
                "mount option {word} is not offered: a backup superblock is used by itself where \
                 the first is damaged, or repair with e2fsck -b"
            ));
        }
        _ => return unknown(word),
    }
    Ok(())
}

fn flag(wanted: &mut Wanted, word: &str) -> Result<(), Usage> {
    let (ext4, fuse) = (&mut wanted.ext4, &mut wanted.fuse);
    match word {
        "ro" => ext4.read_only = true,
        "rw" => ext4.read_only = false,
        "noload" | "norecovery" => ext4.no_load = true,
        "fast_commit" => ext4.journal.fast_commits = true,
        "journal_async_commit" => ext4.journal.async_commit = true,
        "auto_da_alloc" => ext4.auto_da_alloc = true,
        "noauto_da_alloc" => ext4.auto_da_alloc = false,
        "delalloc" => ext4.delayed_allocation = true,
        "nodelalloc" => ext4.delayed_allocation = false,
        "accept_volatile" | "accept-volatile" => ext4.journal.accept_volatile = true,
        "use_reserved" => ext4.use_reserved = true,
        "allow_other" => fuse.allow_other = true,
        "dev" => fuse.dev = true,
        "nodev" => fuse.dev = false,
        "suid" => fuse.suid = true,
        "nosuid" => fuse.suid = false,
        "noexec" => fuse.no_exec = true,
        "sync" => fuse.sync = true,
        "debug" => wanted.debug = true,
        "remount" => wanted.remount = true,
        "noatime" => (ext4.access_times, fuse.no_atime) = (AccessTimes::Never, true),
        "relatime" => (ext4.access_times, fuse.no_atime) = (AccessTimes::Relative, false),
        "strictatime" => (ext4.access_times, fuse.no_atime) = (AccessTimes::Always, false),
        "nodiratime" => ext4.no_directory_access_times = true,
        "diratime" => ext4.no_directory_access_times = false,
        "writeback_cache" => fuse.writeback_cache = true,
        "nobarrier" => return no_barrier(word),
        _ => return unknown(word),
    }
    Ok(())
}

fn no_barrier<T>(word: &str) -> Result<T, Usage> {
    refused(format!(
        "mount option {word} is not offered: without flushes a power cut damages the file system"
    ))
}

fn unknown<T>(word: &str) -> Result<T, Usage> {
    refused(format!("mount option '{word}' is not known; known: {KNOWN}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Wanted, Usage> {
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
    }

    #[test]
    fn transaction_points_have_their_own_words() {
        let w = one("data=transact,transact=fsync,timed=5s,ro").unwrap();
        assert_eq!(w.ext4.data, DataMode::Transact);
        assert_eq!(w.ext4.transact, "timed=5s,fsync".parse().unwrap());
        assert!(w.ext4.read_only);
        assert!(one("data=transact,transact=fsyn").unwrap_err().0.contains("'fsyn'"));
        assert!(one("transact=fsync,data=transact").is_ok());
        for alone in ["transact=fsync", "data=transact,transact=fsync,data=ordered"] {
            assert!(one(alone).unwrap_err().0.contains("transact= needs data=transact"));
        }
    }

    #[test]
    fn what_is_not_offered_is_named() {
        for bad in ["nobarrier", "errors=panic", "data=mirrored", "commit=0", "sb=32768", "foo"] {
            let said = one(bad).unwrap_err().0;
            assert!(said.contains(bad), "{said}");
        }
    }
}
