//! How a mirror reads and writes, and when it is resynced.

use super::error::CommandError;

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
    pub(super) fn named(text: &str) -> Option<ReadOption> {
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
    pub(super) fn named(text: &str) -> Option<WriteOption> {
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

/// A pass number.
pub(super) fn pass(text: &str) -> Result<u8, CommandError> {
    match text.as_bytes() {
        [digit @ b'0'..=b'9'] => Ok(digit - b'0'),
        _ => refuse!(text, "invalid pass number: a digit, 0 to 9"),
    }
}
