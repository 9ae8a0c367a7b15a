//! What recovery found in a log.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::{FsBlock, LogBlock, Tid};

/// The newest contents of blocks that the log holds: home block to contents.
pub type Overlay = BTreeMap<FsBlock, Bytes>;

/// What recovery did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// The log was clean: nothing to do.
    pub was_clean: bool,
    /// Whole transactions found.
    pub transactions: u32,
    /// The first and the last of them.
    pub range: Option<(Tid, Tid)>,
    /// Block images in them.
    pub images: u64,
    /// Blocks written home: of several images of a block only the newest is.
    pub blocks_replayed: u64,
    /// Images not replayed because the block was revoked later.
    pub revoked: u64,
    /// Fast commits found after the last whole transaction.
    pub fast_commits: u32,
    /// Number of the next transaction.
    pub next_tid: Tid,
    /// Time of the newest commit, in seconds since 1970, as its commit block has it.
    pub newest_commit: Option<u64>,
    /// `s_errno` of the superblock: not 0 if an earlier journal was aborted. Its owner marks the
    /// file system as having errors, then calls [`clear_errno`](crate::clear_errno).
    pub errno: i32,
    /// Findings that may interest a person, in order.
    pub findings: Vec<RecoveryFinding>,
}

/// A problem that recovery found and handled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryFinding {
    /// A transaction whose checksums do not match and that is not the log's last: bytes of an
    /// earlier journal, older than the last transaction. The log ends before it.
    Stale {
        /// Its number.
        tid: Tid,
    },
    /// The last transaction, written with asynchronous commit, had not reached the medium whole
    /// when the power failed. The log ends before it.
    Interrupted {
        /// Its number.
        tid: Tid,
        /// What was missing.
        what: String,
    },
    /// The write of a commit block was torn, beyond the part that means something.
    TornCommit {
        /// Its transaction.
        tid: Tid,
    },
    /// The block where the next transaction is due cannot be read, and nothing behind it says that
    /// the transaction had been committed. The log ends before it.
    Unreadable {
        /// The transaction's number.
        tid: Tid,
        /// Where it is due.
        at: LogBlock,
    },
    /// The superblock's checksum is that of another update of it; see the media assumptions.
    TornSuperblock,
}

impl RecoveryReport {
    /// The newest transaction that is whole in the log or, if it holds none, that it ever held.
    pub fn newest_tid(&self) -> Tid {
        self.next_tid.plus(u32::MAX - 1)
    }
}

impl fmt::Display for RecoveryFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecoveryFinding::Stale { tid } => {
                write!(f, "transaction {tid} is left over from an earlier journal: ignored")
            }
            RecoveryFinding::Interrupted { tid, what } => {
                write!(f, "transaction {tid} was interrupted: {what}")
            }
            RecoveryFinding::TornCommit { tid } => {
                write!(f, "the commit block of transaction {tid} was torn behind its contents")
            }
            RecoveryFinding::Unreadable { tid, at } => {
                write!(f, "block {at} cannot be read: the log ends before transaction {tid}")
            }
            RecoveryFinding::TornSuperblock => {
                write!(f, "the journal superblock and its checksum are of different updates")
            }
        }
    }
}
