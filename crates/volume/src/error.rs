//! What can go wrong with a volume.

use steadfast_block::BlockError;

/// Result of an operation on a volume.
pub type Result<T> = std::result::Result<T, VolumeError>;

/// Why an operation on a volume was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VolumeError {
    /// A device failed.
    #[error(transparent)]
    Io(#[from] BlockError),
    /// The bytes of a member are invalid.
    #[error("{device}: {what}")]
    Corrupt {
        /// The member's name.
        device: String,
        /// In words.
        what: String,
    },
    /// A label of a version that this program does not know.
    #[error(
        "{device}: its volume label has version {version}; this program knows versions up to \
         {known}: use the program that wrote it, or a newer one"
    )]
    Newer {
        /// The member's name.
        device: String,
        /// The label's version.
        version: u32,
        /// The newest version known here.
        known: u32,
    },
    /// A label with feature bits that this program does not know, and without which the volume must
    /// not be used.
    #[error(
        "{device}: its volume needs what this program does not know (features {bits:#x}): use the \
         program that wrote it, or a newer one"
    )]
    Features {
        /// The member's name.
        device: String,
        /// The bits of the label that are not known here.
        bits: u32,
    },
    /// The members do not form the volume, or the newest data cannot be determined; nothing was
    /// changed.
    #[error("{0}")]
    Incomplete(String),
    /// The request is impossible in this state; nothing was changed.
    #[error("{0}")]
    Refused(String),
}

/// Returns with a [`VolumeError::Refused`] of this text.
macro_rules! refuse {
    ($($text:tt)+) => {
        return Err($crate::VolumeError::refused(format!($($text)+)))
    };
}

impl VolumeError {
    pub(crate) fn incomplete(what: impl Into<String>) -> Self {
        VolumeError::Incomplete(what.into())
    }

    pub(crate) fn refused(what: impl Into<String>) -> Self {
        VolumeError::Refused(what.into())
    }
}
