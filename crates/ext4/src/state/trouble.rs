//! What a mount has to report that nobody asked for: who writes to the cache does not wait for the
//! device, and who would have asked may be gone.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_vfs::FsError;

/// Something that went wrong in the background.
#[derive(Debug)]
pub enum WriteError<'a> {
    /// Data could not be written.
    Unwritten {
        /// Which.
        part: UnwrittenPart,
        /// Why.
        error: &'a FsError,
    },
    /// Data of a file that is used in place could not be stored; the writer got the error.
    NotStored {
        /// Which; nothing of it is kept.
        part: UnwrittenPart,
        /// Why.
        error: &'a FsError,
    },
    /// There is no transaction point any more, with data=transact.
    NoPoints {
        /// Why.
        error: &'a FsError,
    },
    /// The file system has become read-only: the journal was aborted, or there is damage.
    ReadOnly {
        /// Why.
        why: &'a str,
    },
}

/// A part of a file that is not on the device as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwrittenPart {
    /// The file.
    pub inode: InodeNo,
    /// Which bytes of it, in whole pages up to its end.
    pub bytes: Range<u64>,
    /// They are in memory and will be written again by fsync, sync and unmounting; else they are
    /// lost.
    pub kept: bool,
}

/// Who wants to know.
pub(crate) type Listener = Arc<dyn Fn(&WriteError<'_>) + Send + Sync>;

impl fmt::Display for UnwrittenPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "inode {}, bytes {} to {}", self.inode, self.bytes.start, self.bytes.end)
    }
}
