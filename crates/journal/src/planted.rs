//! Bugs to be found: the test of the tests.
//!
//! With the feature `planted-bugs` one of them can be switched on for one journal
//! ([`Config::planted`](crate::Config)), to see that the crash explorer finds it. Without the
//! feature every question is answered `false` when the program is compiled, and nothing of the
//! bugs is in it.

use crate::{Config, Recovery};

/// Something that a journal must not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The commit block is written without the flush that makes the rest of the transaction
    /// durable before it.
    CommitWithoutPreflush,
    /// A checkpoint moves the log's tail before the home writes are flushed.
    TailBeforeFlush,
    /// Revoke records are not written to the log.
    MissingRevoke,
    /// A commit does not wait for the data that it claims is in place (data=ordered).
    OrderedDataNotWaitedFor,
    /// Asynchronous commit on a log whose blocks have no checksums.
    AsyncCommitWithoutChecksum,
    /// A commit to an external log does not flush the device of the data that it claims.
    FsFlushOmitted,
    /// Recovery marks the log clean before the images are home: a second one does nothing.
    RecoveryNotIdempotent,
    /// On memory, the lines of a commit's blocks are not written back.
    LogLinesNotWrittenBack,
    /// The commit block is written before the blocks that it commits.
    CommitBlockFirst,
    /// On memory, the first block of the fast commits is written in one piece.
    FastCommitHeadAtOnce,
}

impl Config {
    /// Whether this bug is switched on.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.planted == Some(bug)
    }

    /// No bugs are built in.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) const fn has(&self, _: Bug) -> bool {
        false
    }
}

impl Recovery {
    /// Whether this bug is switched on.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.planted == Some(bug)
    }

    /// No bugs are built in.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) const fn has(&self, _: Bug) -> bool {
        false
    }
}
