//! metadb(1M): where the state of the volumes is kept.

use super::error::{CommandError, Misuse, usage, wrong};
use crate::getopt::options;
use crate::name;

const USAGE: &str = "\
usage:  metadb [-i]
        metadb -a [-f] [-c count] [-l length] device...
        metadb -d [-f] device...

Options:
-i      with what the flags mean
-a, -d  nothing is added or deleted: each device of a volume keeps the volume's
        state itself, in labels that are made and wiped with the volume
";

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Db {
    /// Show where it is.
    Show {
        /// With what the flags mean.
        explain: bool,
    },
    /// Keep it on these devices, too.
    Add(Vec<String>),
    /// Not on these.
    Delete(Vec<String>),
}

pub(super) fn parse(words: &[String]) -> Result<Db, Misuse> {
    let (given, rest) = options("ac:dfhik:l:ps:", USAGE, words)?;
    let mut asked = None;
    let mut explain = false;
    for option in given {
        match option.letter {
            'a' | 'd' if asked.is_some_and(|other| other != option.letter) => {
                return Err(usage(USAGE));
            }
            'a' | 'd' => asked = Some(option.letter),
            'i' => explain = true,
            'c' | 'l' => {
                let number = option.argument.parse::<u32>().ok().filter(|n| *n > 0);
                if number.is_none() {
                    return Err(wrong(CommandError::about(option.argument, "bad format"), USAGE));
                }
            }
            'k' | 'p' => refuse!(
                format!("-{}", option.letter),
                "there is no system file here that a boot would read"
            ),
            // -f: nothing is forced, because nothing is changed.
            _ => {}
        }
    }
    let devices = name::all_plain(rest)?;
    match (asked, devices.is_empty()) {
        (None, true) => Ok(Db::Show { explain }),
        (None, false) => Err(wrong(CommandError::of("too many arguments"), USAGE)),
        (Some('a'), false) => Ok(Db::Add(devices)),
        (Some(_), false) => Ok(Db::Delete(devices)),
        (Some(_), true) => {
            Err(wrong(CommandError::of("no devices specified to attach or detach"), USAGE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    #[test]
    fn the_forms() {
        assert_eq!(line("metadb"), Ok(Command::Db(Db::Show { explain: false })));
        assert_eq!(line("metadb -i"), Ok(Command::Db(Db::Show { explain: true })));
        let devices = vec!["c0d1s7".to_owned()];
        let add = Command::Db(Db::Add(devices.clone()));
        assert_eq!(line("metadb -a -f -c 3 -l 8192 c0d1s7"), Ok(add));
        assert_eq!(line("metadb -d -f c0d1s7"), Ok(Command::Db(Db::Delete(devices))));
        for text in ["metadb c0", "metadb -a", "metadb -ad c0", "metadb -a -c no c0"] {
            assert!(is_usage(text), "{text}");
        }
        assert!(refusal("metadb -p").contains("system file"));
    }
}
