//! Bugs that the explorer is to find.

use steadfast_ext4::MountOptions;

/// A bug of the stack, switched on for all mounts of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// In the journal.
    Journal(steadfast_journal::Bug),
    /// In the file system.
    Ext4(steadfast_ext4::Bug),
}

use steadfast_ext4::Bug as Ext4;
use steadfast_journal::Bug as Journal;

/// All of them, with their names on a command line.
const NAMES: [(&str, Planted); 43] = [
    ("commit-without-preflush", Planted::Journal(Journal::CommitWithoutPreflush)),
    ("tail-before-flush", Planted::Journal(Journal::TailBeforeFlush)),
    ("missing-revoke", Planted::Journal(Journal::MissingRevoke)),
    ("ordered-data-not-waited-for", Planted::Journal(Journal::OrderedDataNotWaitedFor)),
    ("async-commit-without-checksum", Planted::Journal(Journal::AsyncCommitWithoutChecksum)),
    ("fs-flush-omitted", Planted::Journal(Journal::FsFlushOmitted)),
    ("recovery-not-idempotent", Planted::Journal(Journal::RecoveryNotIdempotent)),
    ("log-lines-not-written-back", Planted::Journal(Journal::LogLinesNotWrittenBack)),
    ("commit-block-first", Planted::Journal(Journal::CommitBlockFirst)),
    ("tail-one-too-far", Planted::Journal(Journal::TailOneTooFar)),
    ("second-fast-commit-not-waiting", Planted::Journal(Journal::SecondFastCommitNotWaiting)),
    ("magic-not-restored", Planted::Journal(Journal::MagicNotRestored)),
    ("revoke-of-any-age", Planted::Journal(Journal::RevokeOfAnyAge)),
    ("revoke-not-cancelled", Planted::Journal(Journal::RevokeNotCancelled)),
    ("commit-not-durable", Planted::Journal(Journal::CommitNotDurable)),
    ("recovery-without-flush", Planted::Journal(Journal::RecoveryWithoutFlush)),
    ("uncommitted-image-goes-home", Planted::Journal(Journal::UncommittedImageGoesHome)),
    ("log-wraps-late", Planted::Journal(Journal::LogWrapsLate)),
    ("fast-commit-without-fs-flush", Planted::Journal(Journal::FastCommitWithoutFsFlush)),
    ("fast-commits-of-earlier", Planted::Journal(Journal::FastCommitsOfEarlier)),
    ("freed-block-reused", Planted::Ext4(Ext4::FreedBlockReused)),
    ("orphan-not-recorded", Planted::Ext4(Ext4::OrphanNotRecorded)),
    ("entry-before-inode", Planted::Ext4(Ext4::EntryBeforeInode)),
    ("move-in-two-transactions", Planted::Ext4(Ext4::MoveInTwoTransactions)),
    ("link-in-two-transactions", Planted::Ext4(Ext4::LinkInTwoTransactions)),
    ("dax-fence-omitted", Planted::Ext4(Ext4::DaxFenceOmitted)),
    ("dax-write-back-omitted", Planted::Ext4(Ext4::DaxWriteBackOmitted)),
    ("dax-data-after-its-transaction", Planted::Ext4(Ext4::DaxDataAfterItsTransaction)),
    ("dax-fsync-without-fence", Planted::Ext4(Ext4::DaxFsyncWithoutFence)),
    ("truncated-tail-not-written", Planted::Ext4(Ext4::TruncatedTailNotWritten)),
    ("fast-commit-without-old-name", Planted::Ext4(Ext4::FastCommitWithoutOldName)),
    ("sync-without-flush", Planted::Ext4(Ext4::SyncWithoutFlush)),
    ("fdatasync-without-size", Planted::Ext4(Ext4::FdatasyncWithoutSize)),
    ("fdatasync-without-extents", Planted::Ext4(Ext4::FdatasyncWithoutExtents)),
    ("rename-forgets-inode", Planted::Ext4(Ext4::RenameForgetsInode)),
    ("written-before-data", Planted::Ext4(Ext4::WrittenBeforeData)),
    ("inode-bitmap-not-logged", Planted::Ext4(Ext4::InodeBitmapNotLogged)),
    ("extent-block-not-logged", Planted::Ext4(Ext4::ExtentBlockNotLogged)),
    ("index-leaf-not-logged", Planted::Ext4(Ext4::IndexLeafNotLogged)),
    ("xattr-count-not-logged", Planted::Ext4(Ext4::XattrCountNotLogged)),
    ("collapse-without-flush", Planted::Ext4(Ext4::CollapseWithoutFlush)),
    ("punch-forgets-size", Planted::Ext4(Ext4::PunchForgetsSize)),
    ("fast-ineligible-forgotten", Planted::Ext4(Ext4::FastIneligibleForgotten)),
];

impl Planted {
    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, bug)| *bug == self).map_or("unnamed", |(name, _)| name)
    }

    /// The bug of that name.
    pub fn named(name: &str) -> Option<Planted> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, bug)| *bug)
    }

    pub(super) fn into_options(self, options: &mut MountOptions) {
        match self {
            Planted::Journal(bug) => options.journal.planted = Some(bug),
            Planted::Ext4(bug) => options.planted = Some(bug),
        }
    }
}
