//! What can go wrong with a sector namespace.

use steadfast_block::BlockError;

/// Result of an operation on a sector namespace.
pub type Result<T> = std::result::Result<T, BttError>;

/// Why an operation on a sector namespace was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BttError {
    /// The device failed.
    #[error(transparent)]
    Io(#[from] BlockError),
    /// The processor cannot load and store what the device holds.
    #[error(
        "{device}: is not memory; a sector namespace needs a device that is: other disks keep \
         their sectors whole by themselves"
    )]
    NotMemory {
        /// The device's name.
        device: String,
    },
    /// No info block is where one must be.
    #[error("{device}: holds no sector namespace; one has to be made first")]
    None {
        /// The device's name.
        device: String,
    },
    /// What is there contradicts itself.
    #[error("{device}: byte {at}: {what}; {advice}")]
    Corrupt {
        /// The device's name.
        device: String,
        /// What is wrong, in words.
        what: String,
        /// Where, in bytes from the start of the device.
        at: u64,
        /// What to do.
        advice: &'static str,
    },
    /// It is whole, but of a kind that is not supported here.
    #[error("{device}: {what}")]
    Unsupported {
        /// The device's name.
        device: String,
        /// What is not supported, in words.
        what: String,
    },
    /// The request cannot be met; nothing was changed.
    #[error("{device}: {what}")]
    Refused {
        /// The device's name.
        device: String,
        /// Why, in words.
        what: String,
    },
}

/// What to do where a table cannot be trusted.
pub(super) const CHECK: &str =
    "check the namespace (ndctl check-namespace too), and restore from a backup what it names";

impl BttError {
    pub(super) fn corrupt(device: &str, at: u64, what: impl Into<String>) -> Self {
        BttError::Corrupt { device: device.into(), what: what.into(), at, advice: CHECK }
    }

    pub(super) fn unsupported(device: &str, what: impl Into<String>) -> Self {
        BttError::Unsupported { device: device.into(), what: what.into() }
    }

    pub(super) fn refused(device: &str, what: impl Into<String>) -> Self {
        BttError::Refused { device: device.into(), what: what.into() }
    }
}
