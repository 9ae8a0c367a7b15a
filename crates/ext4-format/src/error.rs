//! Why an ext4 operation failed.

use steadfast_block::BlockError;
use steadfast_vfs::FsError;

/// Result of an ext4 operation.
pub type Result<T> = std::result::Result<T, Ext4Error>;

/// Why an ext4 operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ext4Error {
    /// An error that the caller of a file-system operation expects: no such file, no space ...
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The device failed.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// The journal failed or refused.
    #[error(transparent)]
    Journal(#[from] steadfast_journal::JournalError),
    /// The bytes on disk make no sense.
    #[error("corrupt file system: {what} ({place})")]
    Corrupt {
        /// What is wrong.
        what: String,
        /// Where: structure and number.
        place: String,
    },
    /// There is no superblock: something else is there, or nothing.
    #[error("no ext2/3/4 file system: {found}")]
    NoFileSystem {
        /// What is there, as a sentence without a full stop.
        found: String,
    },
    /// The file system uses what this version does not implement; named, never misread.
    #[error("not supported: {what}")]
    Unsupported {
        /// Feature names as dumpe2fs shows them, and what to do.
        what: String,
    },
    /// Not an error of the file system: a block must be brought into memory, and the operation,
    /// which has changed nothing, be run again.
    #[error("block {block} is not in memory")]
    NotCached {
        /// The block.
        block: u64,
        /// How many blocks behind it will be wanted soon.
        ahead: u32,
    },
    /// A request that cannot be met: bad options for mkfs or mount, a wrong journal device ...
    #[error("{what}")]
    Refused {
        /// What is wrong and the way out.
        what: String,
    },
}

impl Ext4Error {
    /// Says that a structure is corrupt.
    pub fn corrupt(what: impl Into<String>, place: impl Into<String>) -> Self {
        Ext4Error::Corrupt { what: what.into(), place: place.into() }
    }
}

/// The answer to a request that cannot be met.
///
/// # Errors
/// Always.
pub fn refused<T>(what: impl Into<String>) -> Result<T> {
    Err(Ext4Error::Refused { what: what.into() })
}

/// The answer to what is not implemented.
///
/// # Errors
/// Always.
pub fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Ext4Error::Unsupported { what: what.into() })
}

impl From<Ext4Error> for FsError {
    fn from(e: Ext4Error) -> FsError {
        match e {
            Ext4Error::Fs(e) => e,
            Ext4Error::Block(e) => FsError::Io { what: e.to_string() },
            Ext4Error::Journal(e) => FsError::Io { what: e.to_string() },
            e @ Ext4Error::NotCached { .. } => FsError::Io { what: e.to_string() },
            Ext4Error::Corrupt { what, place } => FsError::Corrupt { what, place },
            Ext4Error::NoFileSystem { .. } => {
                FsError::Invalid { what: "there is no ext2/3/4 file system" }
            }
            Ext4Error::Unsupported { what } => FsError::Unsupported { what },
            Ext4Error::Refused { what } => FsError::Unsupported { what },
        }
    }
}
