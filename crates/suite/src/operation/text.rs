//! Operations as text: a verb and what it is given.
//!
//! Words are parted by spaces; by points in a text that a shell is to leave as it is, where `+`
//! parts operations. "/" is the folder itself.

use std::fmt;
use std::str::FromStr;

use steadfast_vfs::Fallocate;

use super::{Operation, WriteKind};
use crate::SuiteError;

/// Ranges of files, as text.
const RANGES: [(&str, Fallocate); 7] = [
    ("allocate", Fallocate::Allocate { keep_size: false }),
    ("keep_size", Fallocate::Allocate { keep_size: true }),
    ("punch_hole", Fallocate::PunchHole),
    ("zero_range", Fallocate::ZeroRange { keep_size: false }),
    ("zero_range,keep_size", Fallocate::ZeroRange { keep_size: true }),
    ("collapse", Fallocate::CollapseRange),
    ("insert", Fallocate::InsertRange),
];

const WRITES: [(&str, WriteKind); 6] = [
    ("buffered", WriteKind::Buffered),
    ("sync", WriteKind::Sync),
    ("datasync", WriteKind::DataSync),
    ("direct", WriteKind::Direct),
    ("append", WriteKind::Append),
    ("mapped", WriteKind::Mapped),
];

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or_root = |name: &str| if name.is_empty() { "/".to_owned() } else { name.to_owned() };
        match self {
            Operation::Create { name } => write!(f, "create {name}"),
            Operation::Mkdir { name } => write!(f, "mkdir {name}"),
            Operation::Mkfifo { name } => write!(f, "mkfifo {name}"),
            Operation::Symlink { name, target } => write!(f, "symlink {name} {target}"),
            Operation::Link { from, to } => write!(f, "link {from} {to}"),
            Operation::Unlink { name } => write!(f, "unlink {name}"),
            Operation::UnlinkOpen { name } => write!(f, "unlinkopen {name}"),
            Operation::Rmdir { name } => write!(f, "rmdir {name}"),
            Operation::Rename { from, to } => write!(f, "rename {from} {to}"),
            Operation::RenameNew { from, to } => write!(f, "renamenew {from} {to}"),
            Operation::Exchange { one, other } => write!(f, "exchange {one} {other}"),
            Operation::Write { name, offset, len, how: WriteKind::Buffered } => {
                write!(f, "write {name} {offset} {len}")
            }
            Operation::Write { name, offset, len, how } => {
                let how = WRITES.iter().find(|(_, kind)| kind == how).map_or("", |(word, _)| word);
                write!(f, "write {name} {offset} {len} {how}")
            }
            Operation::Truncate { name, size } => write!(f, "truncate {name} {size}"),
            Operation::Fallocate { name, what, offset, len } => {
                let what =
                    RANGES.iter().find(|(_, kind)| kind == what).map_or("", |(word, _)| word);
                write!(f, "falloc {name} {what} {offset} {len}")
            }
            Operation::SetAttribute { name, len } => write!(f, "setxattr {name} {len}"),
            Operation::RemoveAttribute { name } => write!(f, "removexattr {name}"),
            Operation::Chmod { name, mode } => write!(f, "chmod {} {mode:o}", or_root(name)),
            Operation::Chown { name, uid, gid } => {
                write!(f, "chown {} {uid} {gid}", or_root(name))
            }
            Operation::SetTimes { name, secs } => write!(f, "settimes {} {secs}", or_root(name)),
            Operation::Fsync { name, data_only: false } => write!(f, "fsync {name}"),
            Operation::Fsync { name, data_only: true } => write!(f, "fdatasync {name}"),
            Operation::FsyncDir { name } => write!(f, "fsyncdir {}", or_root(name)),
            Operation::Sync => f.write_str("sync"),
            Operation::Transact => f.write_str("transact"),
        }
    }
}

impl FromStr for Operation {
    type Err = SuiteError;

    /// Reads what [`Display`](fmt::Display) writes, and what older texts have: `creat a`,
    /// `write a 0+512`, `fsync.a.false`.
    fn from_str(text: &str) -> Result<Operation, SuiteError> {
        let words: Vec<&str> = text.trim().split([' ', '.', '+']).collect();
        read(&words).ok_or_else(|| {
            let what = "not an operation, or not with these words".to_owned();
            SuiteError::Script { case: text.to_owned(), what }
        })
    }
}

fn of<T: Copy>(all: &[(&str, T)], word: &str) -> Option<T> {
    all.iter().find(|(name, _)| *name == word).map(|(_, of)| *of)
}

fn read(words: &[&str]) -> Option<Operation> {
    let name = |word: &str| if word == "/" { String::new() } else { word.to_owned() };
    Some(match *words {
        ["create" | "creat", n] => Operation::Create { name: name(n) },
        ["mkdir", n] => Operation::Mkdir { name: name(n) },
        ["mkfifo", n] => Operation::Mkfifo { name: name(n) },
        ["symlink", n, target] => Operation::Symlink { name: name(n), target: name(target) },
        ["link", from, to] => Operation::Link { from: name(from), to: name(to) },
        ["unlink", n] => Operation::Unlink { name: name(n) },
        ["unlinkopen", n] => Operation::UnlinkOpen { name: name(n) },
        ["rmdir", n] => Operation::Rmdir { name: name(n) },
        ["rename", from, to] => Operation::Rename { from: name(from), to: name(to) },
        ["renamenew", from, to] => Operation::RenameNew { from: name(from), to: name(to) },
        ["exchange", one, other] => Operation::Exchange { one: name(one), other: name(other) },
        ["write", n, offset, len] => return read(&["write", n, offset, len, "buffered"]),
        ["write", n, offset, len, how] => Operation::Write {
            name: name(n),
            offset: offset.parse().ok()?,
            len: len.parse().ok()?,
            how: of(&WRITES, how)?,
        },
        ["truncate", n, size] => Operation::Truncate { name: name(n), size: size.parse().ok()? },
        ["falloc", n, what, offset, len] => Operation::Fallocate {
            name: name(n),
            what: of(&RANGES, what)?,
            offset: offset.parse().ok()?,
            len: len.parse().ok()?,
        },
        ["setxattr", n, len] => Operation::SetAttribute { name: name(n), len: len.parse().ok()? },
        ["removexattr", n] => Operation::RemoveAttribute { name: name(n) },
        ["chmod", n, mode] => {
            Operation::Chmod { name: name(n), mode: u16::from_str_radix(mode, 8).ok()? }
        }
        ["chown", n, uid, gid] => {
            Operation::Chown { name: name(n), uid: uid.parse().ok()?, gid: gid.parse().ok()? }
        }
        ["settimes", n, secs] => Operation::SetTimes { name: name(n), secs: secs.parse().ok()? },
        ["fsync", n] | ["fsync", n, "false"] => {
            Operation::Fsync { name: name(n), data_only: false }
        }
        ["fdatasync", n] | ["fsync", n, "true"] => {
            Operation::Fsync { name: name(n), data_only: true }
        }
        ["fsyncdir", n] => Operation::FsyncDir { name: name(n) },
        ["sync"] => Operation::Sync,
        ["transact"] => Operation::Transact,
        _ => return None,
    })
}

/// Reads operations with semicolons between them; of one with `{from..to}` in it there are as many
/// as numbers, `to` not among them.
///
/// # Errors
/// The first that is none.
pub fn list(text: &str) -> Result<Vec<Operation>, SuiteError> {
    let mut all = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let range = part.split_once('{').and_then(|(start, rest)| {
            let (range, end) = rest.split_once('}')?;
            let (from, to) = range.split_once("..")?;
            Some((start, from.parse::<u32>().ok()?..to.parse().ok()?, end))
        });
        match range {
            None => all.push(part.parse()?),
            Some((start, numbers, end)) => {
                for number in numbers {
                    all.push(format!("{start}{number}{end}").parse()?);
                }
            }
        }
    }
    Ok(all)
}

/// Operations in words, as [`list`] reads them.
pub fn listed(operations: &[Operation]) -> String {
    operations.iter().map(Operation::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_as_they_are_written() {
        let text = "create a; mkdir d; mkfifo p; symlink l a; link a d/b; unlink a; unlinkopen a; \
                    rmdir d; rename a b; renamenew a b; exchange a b; write a 0 1500; \
                    write a 4096 512 direct; truncate a 7; falloc a punch_hole 0 10; \
                    falloc a zero_range,keep_size 3 4; setxattr a 300; removexattr a; chmod a 644; \
                    chown / 1 2; settimes a -5; fsync a; fdatasync a; fsyncdir /; sync; transact";
        let read = list(text).unwrap();
        assert_eq!(listed(&read), text);
        for operation in &read {
            let word = operation.to_string().replace(' ', ".");
            assert_eq!(word.parse::<Operation>().unwrap(), *operation);
        }
    }

    #[test]
    fn older_texts_are_read() {
        let old = "creat foo; write foo 0+4096; fsync.a.false; write.a.0.1500.buffered; fsyncdir.";
        let new = "create foo; write foo 0 4096; fsync a; write a 0 1500; fsyncdir /";
        assert_eq!(listed(&list(old).unwrap()), new);
        let links = list("link a b{0..3}").unwrap();
        assert_eq!(listed(&links), "link a b0; link a b1; link a b2");
        assert!("dance a".parse::<Operation>().unwrap_err().to_string().contains("dance a"));
    }
}
