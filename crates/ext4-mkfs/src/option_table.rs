//! The options of mke2fs that say what is to be made, each named once: `steadfast mkfs` with its
//! help and the lab's scenarios go by this table. A new option is an entry here.

use std::fmt::Display;
use std::str::FromStr;

use steadfast_ext4_format::ondisk::Features;
use steadfast_vfs::options::choose;

use super::choices::possible;
use super::{JournalChoice, Options};

/// An option and its value.
pub struct MkfsOption {
    /// The letter after the dash.
    pub name: &'static str,
    /// What help shows for the value.
    pub shown: &'static str,
    /// The words that it can be; none: something else.
    pub words: &'static [&'static str],
    /// What it does.
    pub help: &'static str,
    /// Puts it into the options.
    pub set: fn(&mut Options, &str) -> Result<(), MkfsOptionError>,
}

/// Why a value is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MkfsOptionError {
    /// There is no such thing.
    #[error("{0}")]
    Wrong(String),
    /// mke2fs has it, and we have not.
    #[error("{0}")]
    Unsupported(String),
}

/// The table, in the order in which options are put in.
pub static OPTIONS: &[MkfsOption] = &[
    MkfsOption {
        name: "t",
        shown: "TYPE",
        words: &["ext2", "ext3", "ext4"],
        help: "Kind of file system: its features are those that mke2fs gives it [default: ext4]",
        set: |options, text| {
            if text != "ext4" {
                options.features = Options::ext2_features();
            }
            if text == "ext2" {
                options.journal = JournalChoice::None;
            }
            Ok(())
        },
    },
    MkfsOption {
        name: "I",
        shown: "BYTES",
        words: &[],
        help: "Bytes an inode: 128 to the block size, a power of two",
        set: |options, text| number(text, u16::MAX).map(|n| options.inode_size = n),
    },
    MkfsOption {
        name: "b",
        shown: "BYTES",
        words: &[],
        help: "Block size in bytes: a power of two from 1024 to 65536 (the kernel mounts up to \
               4096); without it that of the journal device, or 1024 below 512 MiB, and 4096 above \
               and on a range of memory",
        set: |options, text| number(text, u32::MAX).map(|n| options.block_size = Some(n)),
    },
    MkfsOption {
        name: "C",
        shown: "BYTES",
        words: &[],
        help: "Cluster size in bytes, with -O bigalloc: a power of two, more than a block (16 \
               blocks)",
        set: |options, text| number(text, u32::MAX).map(|n| options.cluster_size = Some(n)),
    },
    MkfsOption {
        name: "O",
        shown: "FEATURE,...",
        words: &[],
        help: "Features to add or (with ^) to leave out; journal_dev makes a journal device",
        set: |options, text| {
            let mut words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            words.try_for_each(|word| feature(options, word))
        },
    },
    MkfsOption {
        name: "m",
        shown: "PERCENT",
        words: &[],
        help: "Share of blocks reserved for root, per cent",
        set: |options, text| number(text, 50).map(|n| options.reserved_percent = n),
    },
    MkfsOption {
        name: "i",
        shown: "BYTES",
        words: &[],
        help: "Bytes for each inode",
        set: |options, text| number(text, u32::MAX).map(|n| options.inode_ratio = Some(n)),
    },
    MkfsOption {
        name: "N",
        shown: "COUNT",
        words: &[],
        help: "Number of inodes",
        set: |options, text| number(text, u32::MAX).map(|n| options.inodes = Some(n)),
    },
];

impl MkfsOption {
    /// Puts a value in.
    ///
    /// # Errors
    /// It cannot be taken; the message names the option.
    pub fn apply(&self, options: &mut Options, text: &str) -> Result<(), MkfsOptionError> {
        let named = |what: &str| format!("-{} {text}: {what}", self.name);
        if !self.words.is_empty() && !self.words.contains(&text) {
            let what = format!("-{} {text} is unknown: {}", self.name, choose(self.words));
            return Err(MkfsOptionError::Wrong(what));
        }
        (self.set)(options, text).map_err(|e| match e {
            MkfsOptionError::Wrong(what) => MkfsOptionError::Wrong(named(&what)),
            MkfsOptionError::Unsupported(what) => MkfsOptionError::Unsupported(named(&what)),
        })
    }
}

/// Puts a command line of such options in: `-b 1024 -O ^has_journal`.
///
/// # Errors
/// All that cannot be taken: the word, and what is wrong with it.
pub fn apply_line(options: &mut Options, line: &str) -> Result<(), Vec<(String, String)>> {
    let mut wrong = Vec::new();
    let mut given: Vec<(&str, &str)> = Vec::new();
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let letter = word.strip_prefix('-').and_then(|rest| rest.get(..1));
        let Some(option) = OPTIONS.iter().find(|o| Some(o.name) == letter) else {
            let all = choose(OPTIONS.iter().map(|o| format!("-{}", o.name)));
            let what = format!("mkfs option {word} is unknown: {all}");
            wrong.push((word.to_owned(), what));
            // What follows is probably its value.
            if words.clone().next().is_some_and(|next| !next.starts_with('-')) {
                words.next();
            }
            continue;
        };
        // `-b1024`, as getopt has it.
        let value = Some(&word[2..]).filter(|v| !v.is_empty()).or_else(|| words.next());
        match value {
            Some(value) => given.push((option.name, value)),
            None => wrong.push((word.to_owned(), format!("mkfs option {word}: no value"))),
        }
    }
    for option in OPTIONS {
        for (_, value) in given.iter().filter(|(name, _)| *name == option.name) {
            if let Err(e) = option.apply(options, value) {
                wrong.push(((*value).to_owned(), format!("mkfs option {e}")));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

fn number<N: FromStr>(text: &str, most: impl Display) -> Result<N, MkfsOptionError> {
    let wrong = |_| MkfsOptionError::Wrong(format!("a number is needed, at most {most}"));
    text.parse().map_err(wrong)
}

/// What is made for those that ask by [`Options::features`] alone.
const NOT_BY_NAME: [&str; 3] = ["dir_prealloc", "ea_inode", "stable_inodes"];

/// Adds a feature by its name, or (with ^) takes it away.
fn feature(options: &mut Options, word: &str) -> Result<(), MkfsOptionError> {
    let (name, on) = match word.strip_prefix('^') {
        Some(name) => (name, false),
        None => (word, true),
    };
    if name == "has_journal" {
        options.journal = if on { JournalChoice::Internal } else { JournalChoice::None };
        return Ok(());
    }
    if word == "none" {
        // As mke2fs: what was asked for before, and all defaults.
        options.features = Features::default();
        options.journal = JournalChoice::None;
        return Ok(());
    }
    let Some(one) = Features::by_name(name) else {
        return Err(MkfsOptionError::Wrong(no_such(name)));
    };
    // Also of what is never made: leaving it out is what is done anyway.
    let is_made = possible().union(one) == possible() && !NOT_BY_NAME.contains(&name);
    if on && !is_made {
        let what = format!("mkfs cannot make the feature {word}");
        return Err(MkfsOptionError::Unsupported(what));
    }
    let f = options.features;
    options.features = if on { f.union(one) } else { f.without(one) };
    Ok(())
}

fn no_such(name: &str) -> String {
    let all = Features::all_names();
    match steadfast_vfs::options::closest(name, all.iter().copied()) {
        Some(known) => format!("there is no feature {name}; did you mean {known}?"),
        None => format!("there is no feature {name}"),
    }
}

#[cfg(test)]
mod tests {
    use steadfast_ext4_format::ondisk::Incompat;

    use super::*;

    #[test]
    fn a_line_reaches_the_options() {
        let mut options = Options::random(0);
        let line = "-b 1024 -m0 -N 64 -i 4096 -I 128 -O ^has_journal,^64bit -t ext3";
        apply_line(&mut options, line).unwrap();
        assert_eq!((options.block_size, options.inodes), (Some(1024), Some(64)));
        assert_eq!((options.inode_ratio, options.inode_size), (Some(4096), 128));
        assert!(matches!(options.journal, JournalChoice::None));
        assert!(!options.features.incompat.contains(Incompat::EXTENT));
        assert!(options.reserved_percent.abs() < f64::EPSILON);
    }

    #[test]
    fn all_that_is_wrong_is_reported() {
        let wrong = apply_line(&mut Options::random(0), "-z 3 -b x -t ext5 -O exten,mmp -N");
        let said: Vec<String> = wrong.unwrap_err().into_iter().map(|(_, what)| what).collect();
        let parts = [
            "-z is unknown: choose -t, ",
            "-N: no value",
            "-t ext5 is unknown: choose ext2, ext3 or ext4",
            "-b x: a number is needed, at most 4294967295",
            "extent?",
        ];
        for part in parts {
            assert!(said.iter().any(|s| s.contains(part)), "no {part:?} in {said:#?}");
        }
        let mmp = apply_line(&mut Options::random(0), "-O mmp").unwrap_err();
        assert!(mmp[0].1.contains("cannot make"), "{mmp:?}");
    }

    /// As mke2fs: what is not made can be left out by name.
    #[test]
    fn every_feature_can_be_left_out() {
        let mut options = Options::random(0);
        for name in Features::all_names().into_iter().chain(["extents", "uninit_groups"]) {
            apply_line(&mut options, &format!("-O ^{name}")).unwrap_or_else(|e| panic!("{e:?}"));
        }
        assert_eq!(options.features, Features::default());
        assert!(matches!(options.journal, JournalChoice::None));
        assert!(apply_line(&mut options, "-O ^exten").unwrap_err()[0].1.contains("extent?"));
    }
}
