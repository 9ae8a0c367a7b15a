//! Command lines: which command, which options, which operands.
//!
//! What can be refused without a host is refused here, in the volume manager's words: `NAME: what`.
//! The commands print it behind their own name and the machine's.

mod metaclear;
mod metadb;
mod metahs;
mod metainit;
mod metaparam;
mod metareplace;
mod metastat;
mod metasync;
mod metattach;
mod ramdiskadm;

use std::fmt;

use crate::name;

pub use metaclear::{Clear, Which};
pub use metadb::Db;
pub use metahs::{Pool, Spares};
pub use metainit::{Init, New, NewRow};
pub use metaparam::{Changes, Param};
pub use metareplace::Replace;
pub use metastat::Stat;
pub use metasync::Sync;
pub use metattach::{Attach, Submirror};
pub use ramdiskadm::Ramdisk;

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
    Detach(Submirror),
    /// Take one out of use.
    Offline(Submirror),
    /// Bring it online.
    Online(Submirror),
    /// Enable or replace what a submirror is made of.
    Replace(Replace),
    /// Start or stop a resync.
    Sync(Sync),
    /// Show or change how a mirror works.
    Param(Param),
    /// Clear volumes.
    Clear(Clear),
    /// Show volumes.
    Stat(Stat),
    /// Hot spares.
    Hs(Spares),
    /// Places where the state is kept.
    Db(Db),
    /// RAM disks.
    Ramdisk(Ramdisk),
    /// Print the usage.
    Help(String),
}

/// How a mirror reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ReadOption {
    /// Submirrors in turn.
    #[default]
    RoundRobin,
    /// Each submirror answers for a contiguous part.
    Geometric,
    /// The first that is Okay.
    First,
    /// A policy that Solaris has not, by its own name.
    Other(String),
}

impl ReadOption {
    /// By the name that `metaparam -r` takes.
    fn named(text: &str) -> Option<ReadOption> {
        let options = [ReadOption::RoundRobin, ReadOption::Geometric, ReadOption::First];
        options.into_iter().find(|option| option.name().eq_ignore_ascii_case(text))
    }

    /// Whatever has this name.
    pub fn of(name: &str) -> ReadOption {
        ReadOption::named(name).unwrap_or_else(|| ReadOption::Other(name.to_owned()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            ReadOption::RoundRobin => "roundrobin",
            ReadOption::Geometric => "geometric",
            ReadOption::First => "first",
            ReadOption::Other(name) => name,
        }
    }

    /// The option of `metainit`, where there is one.
    pub fn letter(&self) -> Option<&'static str> {
        match self {
            ReadOption::Geometric => Some("-g"),
            ReadOption::First => Some("-r"),
            _ => None,
        }
    }
}

/// How a mirror writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WriteOption {
    /// To all submirrors at once.
    #[default]
    Parallel,
    /// To one after the other.
    Serial,
    /// A policy that Solaris has not, by its own name.
    Other(String),
}

impl WriteOption {
    fn named(text: &str) -> Option<WriteOption> {
        let options = [WriteOption::Parallel, WriteOption::Serial];
        options.into_iter().find(|option| option.name().eq_ignore_ascii_case(text))
    }

    /// Whatever has this name.
    pub fn of(name: &str) -> WriteOption {
        WriteOption::named(name).unwrap_or_else(|| WriteOption::Other(name.to_owned()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            WriteOption::Parallel => "parallel",
            WriteOption::Serial => "serial",
            WriteOption::Other(name) => name,
        }
    }

    /// The option of `metainit`, where there is one.
    pub fn letter(&self) -> Option<&'static str> {
        (*self == WriteOption::Serial).then_some("-S")
    }
}

/// What is wrong, and with what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Complaint {
    /// The name that it is about.
    pub about: Option<String>,
    /// What is wrong.
    pub text: String,
}

impl Complaint {
    /// About nothing in particular.
    pub fn of(text: impl Into<String>) -> Self {
        Complaint { about: None, text: text.into() }
    }

    /// About what has this name.
    pub fn about(name: impl Into<String>, text: impl Into<String>) -> Self {
        Complaint { about: Some(name.into()), text: text.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.about {
            Some(about) => write!(f, "{about}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A command line that nothing can be done with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// It is not a command line of this command: how it is used.
    #[error("{usage}")]
    Usage {
        /// What was noticed first, if that helps.
        hint: Option<Complaint>,
        /// The usage.
        usage: String,
    },
    /// It is, and cannot be met.
    #[error("{0}")]
    Refused(#[from] Complaint),
}

type Parsed = Result<Command, Misuse>;

/// Takes a command line apart.
///
/// # Errors
/// Says how the command is used, or what is wrong. Also for a command that is not one of [`NAMES`].
pub fn parse(program: &str, words: &[String]) -> Parsed {
    // As all our commands; Solaris has only the letter.
    let help = ["-h".to_owned()];
    let words = if words == ["--help"] { &help } else { words };
    match program {
        "metainit" => metainit::parse(words),
        "metattach" => metattach::attach(words),
        "metadetach" => metattach::detach(words),
        "metaoffline" => metattach::offline(words),
        "metaonline" => metattach::online(words),
        "metaparam" => metaparam::parse(words),
        "metastat" => metastat::parse(words),
        "metareplace" => metareplace::parse(words),
        "metasync" => metasync::parse(words),
        "metaclear" => metaclear::parse(words),
        "metahs" => metahs::parse(words),
        "metadb" => metadb::parse(words),
        "ramdiskadm" => ramdiskadm::parse(words),
        other => {
            let text = format!("there is no such command; there are {}", NAMES.join(", "));
            Err(Complaint::about(other, text).into())
        }
    }
}

/// That it is used otherwise.
fn usage(usage: &str) -> Misuse {
    Misuse::Usage { hint: None, usage: usage.to_owned() }
}

/// The same, with what was noticed first.
fn wrong(hint: Complaint, usage: &str) -> Misuse {
    Misuse::Usage { hint: Some(hint), usage: usage.to_owned() }
}

/// Plain names of all words.
fn plain_names(words: &[String]) -> Result<Vec<String>, Complaint> {
    words.iter().map(|word| name::plain(word)).collect()
}

/// A pass number.
fn pass(text: &str) -> Result<u8, Complaint> {
    match text.as_bytes() {
        [digit @ b'0'..=b'9'] => Ok(digit - b'0'),
        _ => Err(Complaint::about(text, "invalid pass number: a digit, 0 to 9")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command line, as a shell without quotes takes it apart.
    pub fn line(text: &str) -> Parsed {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        parse(&words[0], &words[1..])
    }

    /// What is wrong with a command line that is used rightly.
    pub fn refusal(text: &str) -> String {
        match line(text) {
            Err(Misuse::Refused(complaint)) => complaint.to_string(),
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
            let Ok(Command::Help(text)) = line(&format!("{name} -h")) else { panic!("{name}") };
            assert_eq!(line(&format!("{name} --help")), Ok(Command::Help(text.clone())));
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
