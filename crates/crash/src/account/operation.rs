//! Operations on the contents of files.

use std::fmt;

use steadfast_devices::filter::record::Moment;

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Wrote stamped data. At an odd offset: what the stamped sectors have there.
    Write {
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The data's tag.
        tag: u64,
    },
    /// Took the storage of a range away, which reads as zeros: a hole.
    Clear {
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Set the size, in bytes: what is beyond it has gone, what comes reads as zeros.
    Resize {
        /// The new size.
        size: u64,
    },
    /// Found places for a range; what had none reads as zeros.
    Allocate {
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The file does not become longer by it.
        keep_size: bool,
    },
}

impl Action {
    /// Made the file empty, or made it anew.
    pub const EMPTY: Action = Action::Resize { size: 0 };

    /// The range that reads as zeros from then on, whatever was there, if there is one.
    pub fn cleared(self) -> Option<(u64, u64)> {
        match self {
            Action::Clear { offset, len } => Some((offset, offset.saturating_add(len))),
            Action::Resize { size } => Some((size, u64::MAX)),
            Action::Write { .. } | Action::Allocate { .. } => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Write { offset, len, .. } => write!(f, "the write of {len} bytes at {offset}"),
            Action::Clear { offset, len } => write!(f, "the hole of {len} bytes at {offset}"),
            Action::Resize { size: 0 } => f.write_str("the truncation"),
            Action::Resize { size } => write!(f, "the new size of {size} bytes"),
            Action::Allocate { offset, len, .. } => {
                write!(f, "the allocation of {len} bytes at {offset}")
            }
        }
    }
}

/// One operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What it did.
    pub action: Action,
    /// When the call was made.
    pub started: Moment,
    /// When it returned.
    pub acknowledged: Option<Moment>,
    /// From when on it was promised to survive a power cut.
    pub durable: Option<Moment>,
}
