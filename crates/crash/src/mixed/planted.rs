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
const NAMES: [(&str, Planted); 18] = [
    ("commit-without-preflush", Planted::Journal(Journal::CommitWithoutPreflush)),
    ("tail-before-flush", Planted::Journal(Journal::TailBeforeFlush)),
    ("missing-revoke", Planted::Journal(Journal::MissingRevoke)),
    ("ordered-data-not-waited-for", Planted::Journal(Journal::OrderedDataNotWaitedFor)),
    ("async-commit-without-checksum", Planted::Journal(Journal::AsyncCommitWithoutChecksum)),
    ("fs-flush-omitted", Planted::Journal(Journal::FsFlushOmitted)),
    ("recovery-not-idempotent", Planted::Journal(Journal::RecoveryNotIdempotent)),
    ("log-lines-not-written-back", Planted::Journal(Journal::LogLinesNotWrittenBack)),
    ("commit-block-first", Planted::Journal(Journal::CommitBlockFirst)),
    ("freed-block-reused", Planted::Ext4(Ext4::FreedBlockReused)),
    ("orphan-not-recorded", Planted::Ext4(Ext4::OrphanNotRecorded)),
    ("entry-before-inode", Planted::Ext4(Ext4::EntryBeforeInode)),
    ("move-in-two-transactions", Planted::Ext4(Ext4::MoveInTwoTransactions)),
    ("link-in-two-transactions", Planted::Ext4(Ext4::LinkInTwoTransactions)),
    ("dax-fence-omitted", Planted::Ext4(Ext4::DaxFenceOmitted)),
    ("dax-write-back-omitted", Planted::Ext4(Ext4::DaxWriteBackOmitted)),
    ("dax-data-after-its-transaction", Planted::Ext4(Ext4::DaxDataAfterItsTransaction)),
    ("dax-fsync-without-fence", Planted::Ext4(Ext4::DaxFsyncWithoutFence)),
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
