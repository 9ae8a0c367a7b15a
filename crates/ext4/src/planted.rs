//! Bugs to be found: the test of the tests.
//!
//! With the feature `planted-bugs` one of them can be switched on for one mount
//! ([`MountOptions::planted`]), to see that the crash explorer finds it; those of the journal are
//! in its own crate. Without the feature every question is answered `false` when the program is
//! compiled.

use crate::meta::Volume;

/// Something that a file system must not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Blocks that a transaction frees are taken again before it has committed.
    FreedBlockReused,
    /// Inodes that a crash would leave half-done are not recorded as orphans.
    OrphanNotRecorded,
    /// A new name joins the journal in an update of its own, before the inode that it names.
    EntryBeforeInode,
    /// A file is moved in two transactions: one gives it the new name, another takes the old one
    /// away.
    MoveInTwoTransactions,
    /// A second name is given in two transactions: one adds the name, another counts it.
    LinkInTwoTransactions,
    /// Data that was stored in place is not fenced before the transaction that maps it.
    DaxFenceOmitted,
    /// The lines of such data are not written back.
    DaxWriteBackOmitted,
    /// The transaction is finished before the data is stored.
    DaxDataAfterItsTransaction,
    /// An fsync makes no fence.
    DaxFsyncWithoutFence,
}

impl Volume {
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
