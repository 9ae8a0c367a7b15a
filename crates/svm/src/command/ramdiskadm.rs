//! ramdiskadm(1M): RAM disks.

use super::error::{CommandError, Misuse, usage};
use super::scaled;
use crate::getopt::options;
use crate::name;

const USAGE: &str = "\
usage:  ramdiskadm -a name size[g|m|k|b]
        ramdiskadm -d name
        ramdiskadm

A name has up to 32 letters, digits, and - _ . of them. A size is in bytes, or
with g, m, k or b in gigabytes, megabytes, kilobytes or blocks. Without an
option the RAM disks are listed.
";
/// Longest name.
const NAME_MAX: usize = 32;

/// What to do with RAM disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ramdisk {
    /// Make one.
    Add {
        /// Its name.
        name: String,
        /// Bytes.
        bytes: u64,
    },
    /// Delete one.
    Delete {
        /// Its name.
        name: String,
    },
    /// List them.
    List,
}

pub(super) fn parse(words: &[String]) -> Result<Ramdisk, Misuse> {
    let (given, rest) = options("adh", USAGE, words)?;
    let asked: Vec<char> = given.iter().map(|option| option.letter).collect();
    let command = match (&asked[..], rest) {
        ([], []) => Ramdisk::List,
        (['a'], [name, size]) => Ramdisk::Add { bytes: bytes(name, size)?, name: named(name)? },
        (['d'], [name]) => Ramdisk::Delete { name: named(name)? },
        _ => return Err(usage(USAGE)),
    };
    Ok(command)
}

fn named(word: &str) -> Result<String, CommandError> {
    let plain = name::plain(word)?;
    if plain.len() > NAME_MAX {
        refuse!(plain, "a name of more than {NAME_MAX} characters");
    }
    Ok(plain)
}

fn bytes(name: &str, text: &str) -> Result<u64, CommandError> {
    let bytes = scaled(text, 1).filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| {
        CommandError::about(name, format!("{text}: invalid size: a number, and g, m, k or b"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    #[test]
    fn made_deleted_and_listed() {
        let add = |bytes| Ok(Command::Ramdisk(Ramdisk::Add { name: "testdisk".into(), bytes }));
        assert_eq!(line("ramdiskadm -a testdisk 230m"), add(230 << 20));
        assert_eq!(line("ramdiskadm -a testdisk 2G"), add(2 << 30));
        assert_eq!(line("ramdiskadm -a testdisk 16b"), add(8192));
        assert_eq!(line("ramdiskadm -a testdisk 8192"), add(8192));
        let delete = Ramdisk::Delete { name: "testdisk".into() };
        assert_eq!(line("ramdiskadm -d /dev/ramdisk/testdisk"), Ok(Command::Ramdisk(delete)));
        assert_eq!(line("ramdiskadm"), Ok(Command::Ramdisk(Ramdisk::List)));
        for text in ["ramdiskadm -a x", "ramdiskadm -ad x", "ramdiskadm x", "ramdiskadm -d"] {
            assert!(is_usage(text), "{text}");
        }
    }

    #[test]
    fn sizes_that_are_none_are_refused() {
        for size in ["0", "m", "1t", "1.5m", "18446744073709551615g", "\u{e9}"] {
            let said = refusal(&format!("ramdiskadm -a x {size}"));
            assert!(said.starts_with(&format!("x: {size}: invalid size")), "{said}");
        }
        let long = "n".repeat(33);
        assert!(refusal(&format!("ramdiskadm -a {long} 1m")).contains("more than 32"));
    }
}
