//! What is wrong with a command line.

/// A command line that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    /// What is wrong and what to do.
    pub message: String,
    /// The exit status with which IOzone refuses the same (255 for an option it does not know).
    /// `steadfast` exits 2 for any wrong use.
    pub iozone_exit: u8,
}

impl UsageError {
    pub(super) fn new(iozone_exit: u8, message: impl Into<String>) -> UsageError {
        UsageError { message: message.into(), iozone_exit }
    }

    /// Refuses where something is wrong.
    pub(super) fn when(
        wrong: bool,
        iozone_exit: u8,
        message: impl Into<String>,
    ) -> Result<(), UsageError> {
        if wrong { Err(UsageError::new(iozone_exit, message)) } else { Ok(()) }
    }
}
