//! metaclear(1M): takes volumes apart.

use super::error::{Misuse, usage};
use crate::getopt::options;
use crate::name;

const USAGE: &str = "\
usage:  metaclear -a [-f]
        metaclear [-f] [-r] volume...

Options:
-a      all volumes
-f      also a mirror with a submirror that needs maintenance
-r      also what the volume is made of

What a mirror holds stays on its submirrors, and is there again when a mirror
is made of one of them. A concat or stripe is wiped.
";

/// Volumes that are to be taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clear {
    /// Which.
    pub which: ClearTarget,
    /// Also where a submirror is not Okay.
    pub force: bool,
}

/// Which volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClearTarget {
    /// All.
    All,
    /// These.
    These(Vec<String>),
    /// These, and what they are made of.
    WithAllUnder(Vec<String>),
}

pub(super) fn parse(words: &[String]) -> Result<Clear, Misuse> {
    let (given, rest) = options("hs:afrp", USAGE, words)?;
    let (mut all, mut force, mut under) = (false, false, false);
    for option in given {
        match option.letter {
            'p' => refuse!("-p", "soft partitions are not supported"),
            'a' => all = true,
            'f' => force = true,
            _ => under = true,
        }
    }
    let which = match (all, rest.is_empty(), under) {
        (true, true, _) => ClearTarget::All,
        (false, false, false) => ClearTarget::These(name::all_plain(rest)?),
        (false, false, true) => ClearTarget::WithAllUnder(name::all_plain(rest)?),
        _ => return Err(usage(USAGE)),
    };
    Ok(Clear { which, force })
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    #[test]
    fn all_or_some() {
        let names = vec!["d10".to_owned()];
        let some = Clear { which: ClearTarget::These(names.clone()), force: false };
        assert_eq!(line("metaclear d10"), Ok(Command::Clear(some)));
        let under = Clear { which: ClearTarget::WithAllUnder(names), force: true };
        assert_eq!(line("metaclear -rf d10"), Ok(Command::Clear(under)));
        let all = Clear { which: ClearTarget::All, force: false };
        assert_eq!(line("metaclear -a"), Ok(Command::Clear(all)));
        for text in ["metaclear", "metaclear -a d10", "metaclear -r"] {
            assert!(is_usage(text), "{text}");
        }
        assert!(refusal("metaclear -p d10").contains("soft partitions"));
    }
}
