//! metasync(1M): starts a resync, or stops one.

use super::error::{Misuse, usage};
use crate::getopt::options;
use crate::name;

const USAGE: &str = "\
usage:  metasync -r [buffer_size]
        metasync [buffer_size] mirror...
        metasync -c mirror...

Options:
-r      all mirrors, in the order of their passes
-c      stop; what was copied is not copied again

buffer_size: 1 to 2048 blocks. It is taken, and changes nothing: regions are
copied here.
";

/// What is to be resynced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sync {
    /// All mirrors.
    All,
    /// These.
    Start(Vec<String>),
    /// No longer these.
    Stop(Vec<String>),
}

pub(super) fn parse(words: &[String]) -> Result<Sync, Misuse> {
    let (given, rest) = options("phs:rc", USAGE, words)?;
    let (mut all, mut stop) = (false, false);
    for option in given {
        match option.letter {
            'p' => refuse!("-p", "is for RAID-5 volumes, which are not supported"),
            'r' => all = true,
            _ => stop = true,
        }
    }
    let is_size = |word: &String| word.starts_with(|c: char| c.is_ascii_digit());
    let rest = match rest.split_first() {
        Some((size, behind)) if is_size(size) && !stop => {
            checked_size(size)?;
            behind
        }
        _ => rest,
    };
    match (all, stop, rest.is_empty()) {
        (true, false, true) => Ok(Sync::All),
        (false, true, false) => Ok(Sync::Stop(name::all_plain(rest)?)),
        (false, false, false) => Ok(Sync::Start(name::all_plain(rest)?)),
        _ => Err(usage(USAGE)),
    }
}

fn checked_size(text: &str) -> Result<(), Misuse> {
    match text.parse::<u32>() {
        Ok(1..=2048) => Ok(()),
        _ => refuse!(text, "illegal buffer size: 1 to 2048 blocks"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    #[test]
    fn all_some_or_no_longer() {
        let names = vec!["d10".to_owned()];
        assert_eq!(line("metasync -r"), Ok(Command::Sync(Sync::All)));
        assert_eq!(line("metasync -r 2048"), Ok(Command::Sync(Sync::All)));
        assert_eq!(line("metasync d10"), Ok(Command::Sync(Sync::Start(names.clone()))));
        assert_eq!(line("metasync 128 d10"), Ok(Command::Sync(Sync::Start(names.clone()))));
        assert_eq!(line("metasync -c d10"), Ok(Command::Sync(Sync::Stop(names))));
        for text in ["metasync", "metasync -c", "metasync -r d10", "metasync 128", "metasync -rc"] {
            assert!(is_usage(text), "{text}");
        }
        for size in ["0", "2049", "9x", "99999999999"] {
            let said = refusal(&format!("metasync {size} d10"));
            assert!(said.contains("illegal buffer size"), "{said}");
        }
    }
}
