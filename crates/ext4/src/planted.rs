//! Bugs of the file system that tests can switch on for one mount
//! ([`MountOptions::planted`](crate::MountOptions)); those of the journal are in its own crate.

use steadfast_block::planted::PlantedBug;

/// Something that a file system must not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    feature = "planted-bugs",
    derive(strum::VariantArray, strum::IntoStaticStr),
    strum(serialize_all = "kebab-case")
)]
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
    /// The zeros behind a new, smaller size are not down before the size is.
    TruncatedTailNotWritten,
    /// A fast commit does not record the old name of a file that was moved.
    FastCommitWithoutOldName,
    /// sync(2) does not flush the device of data that no commit has flushed: of the kind of Linux
    /// cc3e1bea5d87, "ext4, jbd2: Add barriers for file systems with exernal journals".
    SyncWithoutFlush,
    /// fdatasync does not wait for a transaction that has changed only the size. Linux
    /// f3b59291a69d, "ext4: fix fdatasync() for files with only i_size changes".
    FdatasyncWithoutSize,
    /// fdatasync does not wait for a transaction that has changed only where the data is. Linux
    /// 67a7d5f561f4, "ext4: fix fdatasync(2) after extent manipulation operations".
    FdatasyncWithoutExtents,
    /// fsync of a file that was moved does not wait for the move: a kind that CrashMonkey looks for
    /// and has found in F2FS and btrfs (Mohan et al., OSDI 2018).
    RenameForgetsInode,
    /// Unwritten blocks are marked as written in a transaction that does not wait for their data.
    /// Linux feaf2a80e78f, "ext4: don't set EXT4_GET_BLOCKS_CONVERT when splitting before
    /// submitting I/O".
    WrittenBeforeData,
    /// The inode bitmap is changed in memory and not in the transaction: an omitted
    /// `ext4_handle_dirty_metadata`, which is a kind of Lu et al., "A Study of Linux File System
    /// Evolution" (FAST 2013): semantic, consistency.
    InodeBitmapNotLogged,
    /// The block that an extent tree grows into is not in the transaction; of the same kind.
    ExtentBlockNotLogged,
    /// The first leaf of a directory that becomes an index is not in the transaction: what an error
    /// between the two left in Linux before 6050d47adcad, "ext4: bail out from make_indexed_dir()
    /// on first error".
    IndexLeafNotLogged,
    /// The count of a shared block of attributes is not in the transaction when an inode leaves it:
    /// a kind of Lu et al. (FAST 2013): semantic, consistency.
    XattrCountNotLogged,
    /// A range is taken out of a file without writing out what is dirty behind it. Linux
    /// 1ce01c4a1999, "ext4: fix COLLAPSE_RANGE test failure in data journalling mode".
    CollapseWithoutFlush,
    /// A hole takes the end of a file with it that the size on disk does not reach yet, and the
    /// size stays. Linux 9d80eaa1a1d3, "ext4: increase i_disksize to offset + len in
    /// ext4_update_disksize_before_punch()".
    PunchForgetsSize,
    /// An inode that has left the memory and is read anew counts as changed last by the transaction
    /// before the running one: `ext4_iget` (Linux fs/ext4/inode.c) takes the running one.
    InodeReadAnewCountsAsCommitted,
    /// An inode that is cut in several transactions is an orphan in the first of them only:
    /// `ext4_truncate` (Linux fs/ext4/inode.c) keeps it one until the last.
    OrphanWholeTooSoon,
    /// The contents of an inode that do not fit any more go to a block which the transaction that
    /// maps it does not wait for. Of a kind of Lu et al. (FAST 2013): semantic, consistency.
    InlineContentsNotWaitedFor,
    /// What a fast commit cannot record does not make the next one a full one. Linux e85c81ba8859,
    /// "ext4: fast commit may not fallback for ineligible commit".
    FastIneligibleForgotten,
}

impl PlantedBug for Bug {
    const BUILT_IN: bool = cfg!(feature = "planted-bugs");
}
