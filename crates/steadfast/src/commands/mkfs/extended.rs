//! `-E`: mke2fs's extended options.

use rustix::process::{getegid, geteuid};
use steadfast_ext4_format::ondisk::Incompat;
use steadfast_ext4_mkfs::{Contents, Options};

use super::identity;
use crate::{Unsupported, Usage};

const KNOWN: &str = "root_owner[=UID:GID], root_perms=OCTAL, stride=BLOCKS, stripe_width=BLOCKS, \
     resize=BLOCKS|SIZE, lazy_itable_init[=0|1], lazy_journal_init[=0|1], \
     assume_storage_prezeroed[=0|1], nodiscard, hash_seed=UUID, encoding=utf8, \
     encoding_flags=strict|nostrict";

/// What mke2fs has and we have not.
const NOT_SUPPORTED: [&str; 11] = [
    "desc_size",
    "discard",
    "mmp_update_interval",
    "no_copy_xattrs",
    "num_backup_sb",
    "offset",
    "orphan_file_size",
    "packed_meta_blocks",
    "quotatype",
    "revision",
    "test_fs",
];

/// Who makes it, as mke2fs's `root_owner` without a value.
pub fn caller() -> (u32, u32) {
    (geteuid().as_raw(), getegid().as_raw())
}

/// Reads the options of all `-E`; `block` is the size of a block in bytes.
pub fn apply(options: &mut Options, lists: &[String], block: u32) -> anyhow::Result<()> {
    for word in lists.iter().flat_map(|l| l.split(',')).map(str::trim).filter(|w| !w.is_empty()) {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        };
        if NOT_SUPPORTED.contains(&key) {
            return Err(Unsupported(format!("-E {word}: mkfs cannot do that")).into());
        }
        one(options, word, (key, value), block)?;
    }
    Ok(())
}

fn one(
    options: &mut Options,
    word: &str,
    (key, value): (&str, Option<&str>),
    block: u32,
) -> Result<(), Usage> {
    match (key, value) {
        ("root_owner", None) => options.root_owner = caller(),
        ("root_owner", Some(text)) => {
            let (uid, gid) = text.split_once(':').unwrap_or((text, ""));
            let id = |text: &str| {
                text.parse().map_err(|_| bad(word, "numbers are needed: root_owner=1000:1000"))
            };
            options.root_owner = (id(uid)?, id(gid)?);
        }
        ("root_perms", Some(text)) => {
            let mode = u16::from_str_radix(text, 8).ok().filter(|m| *m <= 0o7777);
            options.root_mode =
                mode.ok_or_else(|| bad(word, "octal digits, as chmod takes them"))?;
        }
        ("stride", Some(text)) => options.raid_stride = number(word, text)?,
        ("stripe_width" | "stripe-width", Some(text)) => {
            options.raid_stripe_width = number(word, text)?;
        }
        ("resize", Some(text)) => options.grows_to = Some(blocks(word, text, block)?),
        ("lazy_itable_init", _) => {
            let lazy = switch(word, value)?;
            if options.contents != Contents::Zeros {
                options.contents =
                    if lazy { Contents::Unknown } else { Contents::UnknownZeroTables };
            }
        }
        ("assume_storage_prezeroed", _) => {
            if switch(word, value)? {
                options.contents = Contents::Zeros;
            }
        }
        // The journal is always zeroed; nothing is ever discarded.
        ("lazy_journal_init", _) => drop(switch(word, value)?),
        ("nodiscard", None) => {}
        ("hash_seed", Some(text)) => options.hash_seed = identity::uuid("-E hash_seed", text)?,
        ("encoding", Some("utf8" | "utf8-12.1")) => {
            options.features.incompat.insert(Incompat::CASEFOLD);
        }
        ("encoding_flags", Some("strict")) => options.strict_encoding = true,
        ("encoding_flags", Some("nostrict")) => options.strict_encoding = false,
        _ => return Err(bad(word, &format!("not offered: choose {KNOWN}"))),
    }
    Ok(())
}

fn bad(word: &str, what: &str) -> Usage {
    Usage(format!("-E {word}: {what}"))
}

fn number<N: std::str::FromStr>(word: &str, text: &str) -> Result<N, Usage> {
    text.parse().map_err(|_| bad(word, "a whole number is needed"))
}

/// Blocks, or with a unit (k, m, g, t) a size.
fn blocks(word: &str, text: &str, block: u32) -> Result<u64, Usage> {
    if let Ok(blocks) = text.parse() {
        return Ok(blocks);
    }
    let bytes = steadfast_lab::size::parse(text).map_err(|e| bad(word, &e.to_string()))?;
    Ok(bytes / u64::from(block.max(1)))
}

fn switch(word: &str, value: Option<&str>) -> Result<bool, Usage> {
    match value {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(_) => Err(bad(word, "0 or 1 is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &str) -> anyhow::Result<Options> {
        let mut options = Options::random(0);
        apply(&mut options, &[list.to_owned()], 4096).map(|()| options)
    }

    #[test]
    fn options_reach_what_they_are_for() {
        let o =
            of("root_owner=7:8,root_perms=1777,stride=16,stripe_width=64,resize=100000").unwrap();
        assert_eq!((o.root_owner, o.root_mode), ((7, 8), 0o1777));
        assert_eq!((o.raid_stride, o.raid_stripe_width, o.grows_to), (16, 64, Some(100_000)));
        assert_eq!(of("resize=4g").unwrap().grows_to, Some(1 << 20));
        assert_eq!(of("root_owner").unwrap().root_owner, caller());
        let o = of("lazy_itable_init=0,lazy_journal_init=0,nodiscard").unwrap();
        assert_eq!(o.contents, Contents::UnknownZeroTables);
    }

    #[test]
    fn what_is_not_offered_is_named() {
        for list in ["offset=1024", "test_fs", "root_owner=a:b", "lazy_itable_init=2", "sparse"] {
            let said = of(list).unwrap_err().to_string();
            assert!(said.contains(list), "{said}");
        }
    }
}
