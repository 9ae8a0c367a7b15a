//! Why a journal operation failed.

use steadfast_block::BlockError;

/// Result of a journal operation.
pub type Result<T> = std::result::Result<T, JournalError>;

/// Why a journal operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// A device failed.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The journal has been aborted by an earlier failure; nothing more is written.
    #[error("the journal was aborted: {cause}")]
    Aborted {
        /// The first failure, in words.
        cause: String,
    },
    /// The bytes in the log make no sense.
    #[error("corrupt journal: {what} ({place})")]
    Corrupt {
        /// What is wrong.
        what: String,
        /// Where: structure and log block.
        place: String,
    },
    /// The journal uses a feature that this version does not implement.
    #[error("journal feature not supported: {what}")]
    Unsupported {
        /// The feature's name.
        what: String,
    },
    /// The running transaction would not fit the log, and is committed on demand only.
    #[error(
        "the transaction is larger than the journal: it would take {wanted} log blocks of \
         {capacity}; commit it earlier, or make a larger journal"
    )]
    Full {
        /// Log blocks with the refused update.
        wanted: usize,
        /// Log blocks that one transaction can take.
        capacity: usize,
    },
    /// A request that cannot be met: wrong device, wrong UUID, too small, in use ...
    #[error("{what}")]
    Refused {
        /// What is wrong and the way out.
        what: String,
    },
}

impl JournalError {
    /// Says that the log's bytes make no sense.
    pub(crate) fn corrupt(what: impl Into<String>, place: impl Into<String>) -> Self {
        JournalError::Corrupt { what: what.into(), place: place.into() }
    }

    /// Says why a request cannot be met, and the way out.
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        JournalError::Refused { what: what.into() }
    }
}
