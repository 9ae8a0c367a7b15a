//! mkfs and mount options as a description writes them.

use std::time::{SystemTime, UNIX_EPOCH};

use steadfast_ext4::options as ext4;
use steadfast_ext4::{AccessTimes, MountOptions};
use steadfast_ext4_mkfs::option_table::apply_line;
use steadfast_ext4_mkfs::{JournalChoice, Options};
use steadfast_vfs::options::{self, WordEffect, WrongOption};

use crate::error::OptionsError;

/// Seconds since 1970 at which every simulated machine begins: 2024-01-01.
pub(crate) const EPOCH_SECONDS: u64 = 1_704_067_200;

/// mkfs options: those that say what is to be made, and `-J size=MIB` of
/// a journal on the disk.
///
/// # Errors
/// All that cannot be taken: the word, and what is wrong with it.
pub(crate) fn read_mkfs(text: &str) -> Result<Options, Vec<(String, String)>> {
    let mut options = Options::random(seconds());
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some(at) = words.iter().position(|word| *word == "-J") else {
        return apply_line(&mut options, text).map(|()| options);
    };
    let value = words.get(at + 1).copied().unwrap_or_default();
    let mib = value.strip_prefix("size=").and_then(|v| v.parse::<u32>().ok());
    let rest = [&words[..at], words.get(at + 2..).unwrap_or_default()].concat().join(" ");
    let mut wrong = apply_line(&mut options, &rest).err().unwrap_or_default();
    let block_size = u64::from(options.block_size.unwrap_or(4096));
    match mib.and_then(|mib| u32::try_from((u64::from(mib) << 20) / block_size).ok()) {
        Some(blocks) => options.journal = JournalChoice::InternalOf(blocks),
        None => wrong.push((value.into(), format!("mkfs option -J {value}: it is size=MIB"))),
    }
    if wrong.is_empty() { Ok(options) } else { Err(wrong) }
}

/// Seconds since 1970: of a simulated machine when it begins, else of this one now.
fn seconds() -> u64 {
    if steadfast_runtime::is_simulated() {
        return EPOCH_SECONDS;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(EPOCH_SECONDS, |since| since.as_secs())
}

/// Mount options: those of the file system (docs/mount.md).
///
/// # Errors
/// All that cannot be taken.
pub(crate) fn read_mount(text: &str) -> Result<MountOptions, Vec<WrongOption>> {
    let mut read = MountOptions {
        simulated_epoch: EPOCH_SECONDS,
        // What is measured is what the workload asks for.
        access_times: AccessTimes::Never,
        ..MountOptions::default()
    };
    // As a mount has it: `sync` that follows another option is no transaction point's word.
    let is_other = |word: &str| of_mount_points(word).is_ok_and(|is_one| is_one);
    let words = options::split(ext4::OPTIONS, text, is_other);
    read.data_given = words.iter().find(|word| ext4::speaks_of_journal(word)).cloned();
    let mut wrong: Vec<WrongOption> =
        words.iter().filter_map(|word| mount_option(word, &mut read).err()).collect();
    wrong.extend(ext4::check_together(&read, &words).err());
    if wrong.is_empty() { Ok(read) } else { Err(wrong) }
}

fn mount_option(word: &str, to: &mut MountOptions) -> Result<(), WrongOption> {
    let wrong = |what| Err(WrongOption::new(word, what));
    if matches!(word, "ro" | "noload" | "norecovery") {
        return wrong("a variant is written to");
    }
    if options::apply(ext4::OPTIONS, word, to)? != WordEffect::Unknown {
        return Ok(());
    }
    match of_mount_points(word)? {
        false => Err(options::unknown(word, &options::names(ext4::OPTIONS))),
        true => wrong("is for mount points: a variant is used in process"),
    }
}

/// Whether a word is an option of mount points, and good.
#[cfg(feature = "fuse")]
fn of_mount_points(word: &str) -> Result<bool, WrongOption> {
    let mut of_mounts = steadfast_fuse::Options::default();
    Ok(options::apply(steadfast_fuse::OPTIONS, word, &mut of_mounts)? != WordEffect::Unknown)
}

/// Nobody here knows them.
#[cfg(not(feature = "fuse"))]
fn of_mount_points(_: &str) -> Result<bool, WrongOption> {
    Ok(false)
}

/// The mount options of a text, with what is wrong in one line.
///
/// # Errors
/// All that cannot be taken.
pub fn mount(text: &str) -> Result<MountOptions, OptionsError> {
    read_mount(text).map_err(|wrong| OptionsError(wrong.iter().map(ToString::to_string).collect()))
}

/// The mkfs options of a text, with what is wrong in one line.
///
/// # Errors
/// All that cannot be taken.
pub fn mkfs(text: &str) -> Result<Options, OptionsError> {
    read_mkfs(text).map_err(|wrong| OptionsError(wrong.into_iter().map(|(_, what)| what).collect()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_ext4::DataMode;

    use super::*;

    #[test]
    fn options_are_read_or_named() {
        let o = mount("data=writeback,journal_async_commit,commit=9").unwrap();
        assert_eq!(o.data, DataMode::Writeback);
        assert!(o.journal.async_commit);
        assert_eq!(o.journal.commit_interval, Duration::from_secs(9));
        let o = mount("data=transact,transact=fsync,timed=5s,commit=9").unwrap();
        assert_eq!(o.transact, "timed=5s,fsync".parse().unwrap());
        assert!(mount("transact=fsyn").unwrap_err().to_string().contains("'fsyn'"));
        assert!(mount("data=mirrored").unwrap_err().to_string().contains("data=mirrored"));
        if cfg!(feature = "fuse") {
            // As a mount takes it, and a mount's own is refused.
            let apart = mount("data=transact,transact=fsync,noatime,sync").unwrap_err();
            assert!(apart.to_string().contains("sync: is for mount points"), "{apart}");
        }
        assert!(mount("data=transact,transact=fsync,sync").is_ok());
        // Which a mount refuses where there is no journal.
        let given = mount("commit=9,data=journal").unwrap().data_given;
        assert_eq!(given.as_deref(), Some("data=journal"));
        let o = mount("fast_commit,cache=8m,relatime").unwrap();
        assert!(o.journal.fast_commits && o.cache_bytes == Some(8 << 20));
        assert_eq!(o.access_times, AccessTimes::Relative);
        let wrong = read_mount("noatme,ro,allow_other,commit=0,data=journal").unwrap_err();
        let words: Vec<&str> = wrong.iter().map(|w| w.word.as_str()).collect();
        assert_eq!(words, ["noatme", "ro", "allow_other", "commit=0"]);
        assert_eq!(read_mkfs("-b 1024 -m 0").unwrap().block_size, Some(1024));
        assert!(read_mkfs("-z 3").unwrap_err()[0].1.contains("-z"));
        let journal = read_mkfs("-J size=128 -b 4096").unwrap().journal;
        assert!(matches!(journal, JournalChoice::InternalOf(32768)));
        assert!(read_mkfs("-J device=x").unwrap_err()[0].1.contains("size=MIB"));
    }
}
