//! Command lines: which command, which options, which operands.
//!
//! What can be refused without a host is refused here, in the volume manager's words: `NAME: what`.
//! The commands print it behind their own name and the machine's.

#[macro_use]
mod error;
mod metaclear;
mod metadb;
mod metahs;
mod metainit;
mod metaparam;
mod metareplace;
mod metastat;
mod metasync;
mod metattach;
mod mirror_options;
mod ramdiskadm;

pub(crate) use error::wrong;
pub use error::{CommandError, Misuse};
pub use metaclear::{Clear, ClearTarget};
pub use metadb::Db;
pub use metahs::{Pool, Spares};
pub use metainit::{Init, InitVolume, NewRow};
pub use metaparam::{Changes, Param};
pub use metareplace::Metareplace;
pub use metastat::Metastat;
pub use metasync::Sync;
pub use metattach::{Attach, SubmirrorArgs};
pub use mirror_options::{ReadOption, WriteOption};
pub use ramdiskadm::Ramdisk;

use crate::name::is_number;
use crate::state::BLOCK;

/// The commands, by the names that they are called by.
pub const NAMES: [&str; 13] = [
    "metainit",
    "metattach",
    "metadetach",
    "metaparam",
    "metastat",
    "metareplace",
    "metasync",
    "metaclear",
    "metaoffline",
    "metaonline",
    "metahs",
    "metadb",
    "ramdiskadm",
];

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Make a volume.
    Init(Init),
    /// Give a mirror a submirror.
    Attach(Attach),
    /// Take one away.
    Detach(SubmirrorArgs),
    /// Take one out of use.
    Offline(SubmirrorArgs),
    /// Bring it online.
    Online(SubmirrorArgs),
    /// Enable or replace what a submirror is made of.
    Replace(Metareplace),
    /// Start or stop a resync.
    Sync(Sync),
    /// Show or change how a mirror works.
    Param(Param),
    /// Clear volumes.
    Clear(Clear),
    /// Show volumes.
    Stat(Metastat),
    /// Hot spares.
    Hs(Spares),
    /// Places where the state is kept.
    Db(Db),
    /// RAM disks.
    Ramdisk(Ramdisk),
}

/// Takes a command line apart.
///
/// # Errors
/// Says how the command is used, or what is wrong. Also for a command that is not one of [`NAMES`].
pub fn parse(program: &str, words: &[String]) -> Result<Command, Misuse> {
    // As all our commands; Solaris has only the letter.
    let help = ["-h".to_owned()];
    let words = if words == ["--help"] { &help } else { words };
    match program {
        "metainit" => metainit::parse(words).map(Command::Init),
        "metattach" => metattach::attach(words).map(Command::Attach),
        "metadetach" => metattach::detach(words).map(Command::Detach),
        "metaoffline" => metattach::offline(words).map(Command::Offline),
        "metaonline" => metattach::online(words).map(Command::Online),
        "metaparam" => metaparam::parse(words).map(Command::Param),
        "metastat" => metastat::parse(words).map(Command::Stat),
        "metareplace" => metareplace::parse(words).map(Command::Replace),
        "metasync" => metasync::parse(words).map(Command::Sync),
        "metaclear" => metaclear::parse(words).map(Command::Clear),
        "metahs" => metahs::parse(words).map(Command::Hs),
        "metadb" => metadb::parse(words).map(Command::Db),
        "ramdiskadm" => ramdiskadm::parse(words).map(Command::Ramdisk),
        other => refuse!(other, "there is no such command; there are {}", NAMES.join(", ")),
    }
}

/// Bytes: digits, and their unit (g, m, k, b for blocks), or this one.
fn scaled(text: &str, unit: u64) -> Option<u64> {
    let (number, unit) = match text.to_ascii_lowercase().char_indices().last() {
        Some((at, 'g')) => (&text[..at], 1 << 30),
        Some((at, 'm')) => (&text[..at], 1 << 20),
        Some((at, 'k')) => (&text[..at], 1 << 10),
        Some((at, 'b')) => (&text[..at], BLOCK),
        _ => (text, unit),
    };
    let number = number.parse::<u64>().ok().filter(|_| is_number(number));
    number.and_then(|n| n.checked_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command line, as a shell without quotes takes it apart.
    pub fn line(text: &str) -> Result<Command, Misuse> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        parse(&words[0], &words[1..])
    }

    /// What is wrong with a command line that is used rightly.
    pub fn refusal(text: &str) -> String {
        match line(text) {
            Err(Misuse::Refused(error)) => error.to_string(),
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Whether the usage is the answer.
    pub fn is_usage(text: &str) -> bool {
        matches!(line(text), Err(Misuse::Usage { .. }))
    }

    #[test]
    fn each_command_has_a_usage_that_fits_and_names_it() {
        for name in NAMES {
            let Err(Misuse::Help(text)) = line(&format!("{name} -h")) else { panic!("{name}") };
            assert_eq!(line(&format!("{name} --help")), Err(Misuse::Help(text.clone())));
            assert!(text.starts_with("usage:  "), "{text}");
            assert!(text.contains(name) && text.ends_with('\n'), "{text}");
            assert!(text.lines().all(|l| l.len() <= 80 && !l.contains('\t')), "{text}");
            assert!(is_usage(&format!("{name} -X")), "{name}");
        }
        assert!(refusal("metaset -s blue").starts_with("metaset: there is no such command"));
    }

    #[test]
    fn there_are_no_disk_sets() {
        for name in NAMES.iter().filter(|name| **name != "ramdiskadm") {
            let said = refusal(&format!("{name} -s blue d10"));
            assert!(said.starts_with("blue: no such set"), "{name}: {said}");
        }
        assert!(refusal("metaparam blue/d10").starts_with("blue: no such set"));
    }

    #[test]
    fn what_was_noticed_is_said_before_the_usage() {
        let Err(Misuse::Usage { hint, .. }) = line("metaparam -x d10") else { panic!() };
        assert_eq!(hint.unwrap().to_string(), "illegal option -- x");
    }
}
