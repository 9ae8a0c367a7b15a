//! metastat(1M): shows volumes.

use super::error::{Misuse, usage};
use crate::getopt::options;
use crate::name;

const USAGE: &str = "\
usage:  metastat [-aBDciqp] [volume | mirror's spares...]

Options:
-p      as command lines of metainit
-c      a line for each volume
-q      without the device relocation information
-i      look at the devices first
-B      volumes of more than a terabyte only
-D      volumes whose names are not d and a number only
-a      of all sets: there is one
";

/// What is to be shown, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metastat {
    /// Names; everything without one.
    pub names: Vec<String>,
    /// As command lines.
    pub short: bool,
    /// A line for each.
    pub concise: bool,
    /// Without what finds devices again.
    pub quiet: bool,
    /// Look at the devices first.
    pub inquire: bool,
    /// Of more than a terabyte only.
    pub large_only: bool,
    /// With chosen names only.
    pub named_only: bool,
}

pub(super) fn parse(words: &[String]) -> Result<Metastat, Misuse> {
    let (given, rest) = options("acs:hpBDrtiq", USAGE, words)?;
    let mut stat = Metastat::default();
    for option in given {
        match option.letter {
            't' => refuse!("-t", "when a state changed is not kept; the host's log has it"),
            'p' => stat.short = true,
            'c' => stat.concise = true,
            'q' => stat.quiet = true,
            'i' => stat.inquire = true,
            'B' => stat.large_only = true,
            'D' => stat.named_only = true,
            // -a: there is one set. -r: means nothing, and is taken.
            _ => {}
        }
    }
    if stat.short && stat.concise {
        return Err(usage(USAGE));
    }
    stat.names = name::all_plain(rest)?;
    Ok(stat)
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    #[test]
    fn everything_or_what_is_named() {
        assert_eq!(line("metastat"), Ok(Command::Stat(Metastat::default())));
        let names = vec!["d10".to_owned(), "d11".to_owned()];
        let short = Metastat { names, short: true, ..Metastat::default() };
        assert_eq!(line("metastat -p d10 /dev/md/rdsk/d11"), Ok(Command::Stat(short)));
        let all = Metastat { quiet: true, inquire: true, ..Metastat::default() };
        assert_eq!(line("metastat -qair"), Ok(Command::Stat(all)));
    }

    #[test]
    fn what_is_not_kept_is_not_shown() {
        assert!(refusal("metastat -t").contains("log"));
        assert!(is_usage("metastat -pc"));
    }
}
