//! metaparam(1M): how a mirror reads and writes.

use super::error::{CommandError, Misuse, usage};
use super::mirror_options::{ReadOption, WriteOption, pass};
use crate::getopt::options;
use crate::name;

const USAGE: &str = "\
usage:  metaparam [-s setname] [options] concat/stripe | RAID
        metaparam [-s setname] [options] mirror

Concat/Stripe or RAID options:
-h      hotspare_pool | \"none\"

Mirror options:
-r      roundrobin | geometric | first
-w      parallel | serial
-p      0-9
";

/// A volume, and what is to change of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// What changes; what it is now is shown where nothing does.
    pub changes: Changes,
}

/// What is to change; what is `None` stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// How it reads.
    pub read: Option<ReadOption>,
    /// How it writes.
    pub write: Option<WriteOption>,
    /// When it is resynced.
    pub pass: Option<u8>,
}

impl Changes {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

pub(super) fn parse(words: &[String]) -> Result<Param, Misuse> {
    if words.len() == 1 && ["-h", "-?"].contains(&words[0].as_str()) {
        return Err(Misuse::Help(USAGE.into()));
    }
    let (given, rest) = options("h:r:w:p:s:", USAGE, words)?;
    let mut changes = Changes::default();
    for option in given {
        let argument = option.argument;
        let refused = |what: &str| CommandError::about(argument, what);
        match option.letter {
            'h' => {
                let what = "hot spare pools are not supported: a hot spare is given to a mirror \
                            (metahs -a MIRROR COMPONENT)";
                return Err(refused(what).into());
            }
            'r' => {
                let read = ReadOption::named(argument);
                changes.read = Some(read.ok_or_else(|| refused("invalid read option"))?);
            }
            'w' => {
                let write = WriteOption::named(argument);
                changes.write = Some(write.ok_or_else(|| refused("invalid write option"))?);
            }
            _ => changes.pass = Some(pass(argument)?),
        }
    }
    let [volume] = rest else { return Err(usage(USAGE)) };
    Ok(Param { name: name::plain(volume)?, changes })
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    fn param(text: &str) -> Param {
        match line(text) {
            Ok(Command::Param(param)) => param,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_not_said_stays() {
        assert!(param("metaparam d10").changes.is_empty());
        let first = param("metaparam -r first d10");
        assert_eq!(first.name, "d10");
        assert_eq!(first.changes.read, Some(ReadOption::First));
        assert_eq!((first.changes.write, first.changes.pass), (None, None));
        let all = param("metaparam -r GEOMETRIC -w serial -p 9 d10").changes;
        assert_eq!((all.read, all.pass), (Some(ReadOption::Geometric), Some(9)));
        assert_eq!(all.write, Some(WriteOption::Serial));
    }

    #[test]
    fn what_there_is_not_is_refused() {
        assert_eq!(refusal("metaparam -r fastest d10"), "fastest: invalid read option");
        assert_eq!(refusal("metaparam -w both d10"), "both: invalid write option");
        let said = "10: invalid pass number: a digit, 0 to 9";
        assert_eq!(refusal("metaparam -p 10 d10"), said);
        assert!(refusal("metaparam -h hsp001 d11").starts_with("hsp001: hot spare pools"));
        for text in ["metaparam", "metaparam d10 d11", "metaparam -r"] {
            assert!(is_usage(text), "{text}");
        }
    }
}
