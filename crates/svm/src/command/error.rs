//! What is wrong with a command line.

use std::fmt;

/// What is wrong, and with what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CommandError {
    /// The name that it is about.
    pub about: Option<String>,
    /// What is wrong.
    pub text: String,
}

impl CommandError {
    /// About nothing in particular.
    pub fn of(text: impl Into<String>) -> Self {
        CommandError { about: None, text: text.into() }
    }

    /// About what has this name.
    pub fn about(name: impl Into<String>, text: impl Into<String>) -> Self {
        CommandError { about: Some(name.into()), text: text.into() }
    }
}

/// Returns with a [`CommandError`] about what has this name, of this text.
macro_rules! refuse {
    ($name:expr, $($text:tt)+) => {
        return Err($crate::command::CommandError::about($name, format!($($text)+)).into())
    };
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.about {
            Some(about) => write!(f, "{about}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A command line after which nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// It is not a command line of this command: how it is used.
    #[error("{usage}")]
    Usage {
        /// What was noticed first, if that helps.
        hint: Option<CommandError>,
        /// The usage.
        usage: String,
    },
    /// It is, and cannot be met.
    #[error("{0}")]
    Refused(#[from] CommandError),
    /// The usage was asked for.
    #[error("{0}")]
    Help(String),
}

/// That it is used otherwise.
pub(super) fn usage(usage: &str) -> Misuse {
    Misuse::Usage { hint: None, usage: usage.to_owned() }
}

/// The same, with what was noticed first.
pub(crate) fn wrong(hint: CommandError, usage: &str) -> Misuse {
    Misuse::Usage { hint: Some(hint), usage: usage.to_owned() }
}
