//! Bugs that tests can switch on for one journal ([`Config::planted`](crate::Config)).

use steadfast_block::planted::PlantedBug;

/// Something that a journal must not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "planted-bugs",
    derive(strum::VariantArray, strum::IntoStaticStr),
    strum(serialize_all = "kebab-case")
)]
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
    /// A checkpoint that leaves transactions in the log moves the tail beyond the oldest of them.
    TailOneTooFar,
    /// Fast commits after a transaction's first one do not wait for data, nor flush its device.
    SecondFastCommitNotWaiting,
    /// Recovery does not put the magic number back that an image began with. Linux d00256766a0b,
    /// "jbd2: correctly unescape journal data blocks": a slip of the pen that was older than git.
    MagicNotRestored,
    /// Recovery takes a revoke for one of all images of the block, also younger ones. Linux
    /// fs/jbd2/revoke.c argues for the number: `jbd2_journal_test_revoke` compares it. A kind of
    /// Lu et al., "A Study of Linux File System Evolution" (FAST 2013): semantic, state.
    RevokeOfAnyAge,
    /// A block that is logged again in the transaction that has revoked it stays revoked. Linux
    /// fs/jbd2/revoke.c, `jbd2_journal_cancel_revoke`, is there against this.
    RevokeNotCancelled,
    /// The commit block may still be in a cache when the commit counts as durable. Linux
    /// 0e3d2a6313d0, "ext4: Fix async commit mode to be safe by using a barrier": so it was there
    /// until then.
    CommitNotDurable,
    /// Recovery marks the log clean without a flush of what it has written home. Linux
    /// fs/jbd2/recovery.c, `jbd2_journal_recover`: "Make sure all replayed data is on permanent
    /// storage".
    RecoveryWithoutFlush,
    /// A checkpoint writes the newest image home, that of a transaction which has not committed
    /// too. What jbd2 keeps `b_frozen_data` and two transactions a buffer for.
    UncommittedImageGoesHome,
    /// The log goes round one block late: the last block is taken for the first. A kind of Lu et
    /// al. (FAST 2013): semantic, boundaries.
    LogWrapsLate,
    /// A fast commit to an external log does not flush the device of the data. Linux da0c5d269526,
    /// "ext4: issue fsdev cache flush before starting fast commit".
    FastCommitWithoutFsFlush,
    /// Recovery replays fast commits whose transaction has been committed in full. What the number
    /// in the head tag is there against (Linux `ext4_fc_replay_scan`).
    FastCommitsOfEarlier,
}

impl PlantedBug for Bug {
    const BUILT_IN: bool = cfg!(feature = "planted-bugs");
}
