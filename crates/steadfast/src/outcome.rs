//! How a command ends.

/// An error of the caller's, not of what was looked at: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

/// Returns with a [`Usage`] of this text.
macro_rules! usage {
    ($($text:tt)+) => {
        return Err($crate::Usage(format!($($text)+)).into())
    };
}

/// Something that others have and Steadfast has not: exit status 3.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// How a command that went through ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// All is well.
    Good,
    /// It did its work and found a problem, which it has printed.
    Problem,
    /// A process that worked for us has ended with this status and said why.
    Status(u8),
    /// It was asked to stop by a signal, and has printed what it knew: no problem until then.
    Stopped,
}

impl CommandEnd {
    /// The exit status of what was stopped, as a shell has it of SIGINT.
    pub const STOPPED: u8 = 130;
}
