//! The store below the cache: the file system's side of it.

use std::ops::Range;

use bytes::Bytes;
use steadfast_block::Completion;
use steadfast_vfs::{FsError, Result};

use crate::{DirtyParts, FailedPages};

/// A file's number; ext4 uses the inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey(pub u64);

/// Consecutive dirty pages of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirtyRange {
    /// Page number of the first: its byte offset divided by [`PAGE`](crate::PAGE).
    pub first: u64,
    /// Their contents, [`PAGE`](crate::PAGE) bytes each; never changed afterwards.
    pub pages: Vec<Bytes>,
    /// The dirty parts of each. The other parts are what the store has, or would read.
    pub parts: Vec<DirtyParts>,
}

/// A write of pages that was started.
pub struct PageWrite {
    /// The pages that it writes, at least parts of.
    pub pages: Range<u64>,
    /// When it is done.
    pub done: Completion,
}

/// Maps the pages of files to a device, reads and writes them.
///
/// The cache calls it without holding any lock. Calls for different files and different pages
/// may overlap; the cache never has two writes of the same page in flight.
pub trait PageStore: Send + Sync {
    /// Starts reading `count` pages from page `first` on. The completion carries
    /// `count` × [`PAGE`](crate::PAGE) bytes; holes and what lies beyond the end of the file are
    /// zeros. May wait for a place in a device queue or for metadata, not for the answer.
    ///
    /// # Errors
    /// When the pages cannot be mapped.
    fn read_pages(&self, file: FileKey, first: u64, count: u32) -> Result<Completion>;

    /// Allocates where needed and starts writing. `runs` ascend and do not touch. When all
    /// returned writes are done the data is on the device, though not flushed. Pages of a write
    /// that fails may be given again.
    ///
    /// # Errors
    /// When not all could be started, as for lack of space; all the pages then count as lost.
    fn write_pages(&self, file: FileKey, runs: Vec<DirtyRange>) -> Result<Vec<PageWrite>>;

    /// A write-back of data that is still needed has failed.
    fn write_failed(&self, _what: &FailedPages, _error: &FsError) {}
}
