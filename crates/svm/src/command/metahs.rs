//! metahs(1M): hot spares. A mirror has its own here; its name is that of the pool.

use super::error::{CommandError, Misuse, usage};
use crate::getopt::options;
use crate::name;

const USAGE: &str = "\
usage:  metahs -a mirror component...
        metahs -a all component
        metahs -d mirror | all component...
        metahs -i [mirror...]

Options:
-a      give a mirror hot spares: components of no other use; with all, the one
        mirror that there is
-d      take hot spares back, of a mirror, or of whichever has them
-i      show them

A hot spare takes the place of a submirror that fails, and keeps it.
";

/// What to do with hot spares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spares {
    /// Give them.
    Add(Pool, Vec<String>),
    /// Take them back.
    Delete(Pool, Vec<String>),
    /// Show those of these mirrors, or of all.
    Show(Vec<String>),
}

/// Whose hot spares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pool {
    /// All mirrors'.
    All,
    /// This one's.
    Of(String),
}

pub(super) fn parse(words: &[String]) -> Result<Spares, Misuse> {
    let (given, rest) = options("hs:aderi", USAGE, words)?;
    let mut asked = None;
    for option in given {
        match option.letter {
            _ if asked.is_some() => return Err(usage(USAGE)),
            letter => asked = Some(letter),
        }
    }
    let command = match (asked, rest) {
        (Some('a'), [pool, spares @ ..]) if !spares.is_empty() => {
            Spares::Add(pool_named(pool)?, name::all_plain(spares)?)
        }
        (Some('d'), [pool, spares @ ..]) if !spares.is_empty() => {
            Spares::Delete(pool_named(pool)?, name::all_plain(spares)?)
        }
        (Some('d'), [pool]) => refuse!(
            pool.as_str(),
            "a hot spare pool is not deleted: it goes with its mirror; name the spares"
        ),
        (Some('a'), [pool]) => refuse!(
            pool.as_str(),
            "an empty hot spare pool is not made: a mirror has its own hot spares"
        ),
        (Some('i'), names) => Spares::Show(name::all_plain(names)?),
        (Some('e' | 'r'), [pool, ..]) => refuse!(
            pool.as_str(),
            "a hot spare is not enabled or replaced: it waits (metahs -d takes it \
                        back), or has become a submirror (metadetach takes that away)"
        ),
        _ => return Err(usage(USAGE)),
    };
    Ok(command)
}

fn pool_named(pool: &str) -> Result<Pool, CommandError> {
    Ok(match pool {
        "all" => Pool::All,
        pool => Pool::Of(name::plain(pool)?),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    #[test]
    fn spares_are_added_and_shown() {
        let of = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let add = Spares::Add(Pool::Of("d10".into()), of(&["c2", "c3"]));
        assert_eq!(line("metahs -a d10 c2 c3"), Ok(Command::Hs(add)));
        let all = Spares::Add(Pool::All, of(&["c2"]));
        assert_eq!(line("metahs -a all c2"), Ok(Command::Hs(all)));
        let delete = Spares::Delete(Pool::All, of(&["c2"]));
        assert_eq!(line("metahs -d all c2"), Ok(Command::Hs(delete)));
        assert_eq!(line("metahs -i"), Ok(Command::Hs(Spares::Show(of(&[])))));
        assert_eq!(line("metahs -i d10"), Ok(Command::Hs(Spares::Show(of(&["d10"])))));
    }

    #[test]
    fn what_spares_do_not_do_is_refused() {
        assert!(refusal("metahs -e d10 c2").starts_with("d10: a hot spare is not enabled"));
        assert!(refusal("metahs -d d10").starts_with("d10: a hot spare pool is not deleted"));
        assert!(refusal("metahs -r all a b").starts_with("all: "));
        assert!(refusal("metahs -a hsp001").starts_with("hsp001: an empty hot spare pool"));
        for text in ["metahs", "metahs -a", "metahs -ai d10", "metahs d10"] {
            assert!(is_usage(text), "{text}");
        }
    }
}
