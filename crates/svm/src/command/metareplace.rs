//! metareplace(1M): enables a component again, or puts another one into its place.

use super::error::{Misuse, usage};
use crate::getopt::options;
use crate::name;

const USAGE: &str = "\
usage:  metareplace mirror component-old component-new
        metareplace -e mirror component

Options:
-e      the same component, once it works again: everything is copied to it
";

/// A component that is to be used again, or another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metareplace {
    /// The mirror.
    pub mirror: String,
    /// The component.
    pub old: String,
    /// What comes into its place; `None` for itself.
    pub new: Option<String>,
}

pub(super) fn parse(words: &[String]) -> Result<Metareplace, Misuse> {
    let (given, rest) = options("hs:ef", USAGE, words)?;
    let mut enable = false;
    for option in given {
        match option.letter {
            'f' => refuse!("-f", "is for RAID-5 volumes, which are not supported"),
            _ => enable = true,
        }
    }
    let (mirror, old, new) = match rest {
        [mirror, old] if enable => (mirror, old, None),
        [mirror, old, new] if !enable => (mirror, old, Some(name::plain(new)?)),
        _ => return Err(usage(USAGE)),
    };
    Ok(Metareplace { mirror: name::plain(mirror)?, old: name::plain(old)?, new })
}

#[cfg(test)]
mod tests {
    use super::super::Command;
    use super::super::tests::{is_usage, line, refusal};
    use super::*;

    #[test]
    fn the_same_or_another_one() {
        let same = Metareplace { mirror: "d10".into(), old: "c5t0d0s0".into(), new: None };
        assert_eq!(line("metareplace -e d10 c5t0d0s0"), Ok(Command::Replace(same.clone())));
        let other = Metareplace { new: Some("c6d0s0".into()), ..same };
        assert_eq!(line("metareplace d10 c5t0d0s0 c6d0s0"), Ok(Command::Replace(other)));
        for text in ["metareplace -e d10", "metareplace d10 a", "metareplace -e d10 a b"] {
            assert!(is_usage(text), "{text}");
        }
        assert!(refusal("metareplace -f d10 a b").contains("RAID-5"));
    }
}
