//! What the running transaction has done since its last fast commit.

use std::collections::BTreeMap;
use std::sync::{self, PoisonError};

use steadfast_ext4_format::RangeSet;
use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo, RawInode};
use steadfast_journal::Tid;
use steadfast_runtime::Mutex;
use steadfast_vfs::FileType;

/// What happened to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameChange {
    /// It is the first of a new inode.
    Created,
    /// It is another of an inode.
    Linked,
    /// It went.
    Unlinked,
}

/// A name that came or went.
pub(crate) struct NameRecord {
    pub what: NameChange,
    pub dir: InodeNo,
    pub no: InodeNo,
    pub name: Vec<u8>,
}

/// More names than one fast commit can hold.
const NAMES_MAX: usize = 400;

/// What one operation has done.
pub(crate) struct OperationChanges {
    pub names: Vec<NameRecord>,
    /// Inodes, and the file blocks of each whose places have changed.
    pub inodes: Vec<(InodeNo, RangeSet)>,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Track {
    /// Held while a fast commit is made: one at a time.
    pub one: Mutex<()>,
    done: sync::Mutex<TransactionChanges>,
}

/// What the transaction `tid` has done.
#[derive(Default)]
struct TransactionChanges {
    tid: Option<Tid>,
    /// Something was done that cannot be recorded.
    ineligible: bool,
    /// It has a fast commit already.
    begun: bool,
    names: Vec<NameRecord>,
    inodes: BTreeMap<InodeNo, RangeSet>,
}

impl TransactionChanges {
    fn ineligible(tid: Tid) -> Self {
        TransactionChanges { tid: Some(tid), ineligible: true, ..TransactionChanges::default() }
    }
}

/// What a fast commit has to record.
pub(crate) struct Pending {
    pub names: Vec<NameRecord>,
    pub inodes: BTreeMap<InodeNo, RangeSet>,
    /// The transaction has a fast commit already.
    pub begun: bool,
}

impl Track {
    fn done(&self) -> sync::MutexGuard<'_, TransactionChanges> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation has joined transaction `tid`; without `recorded` it cannot be recorded.
    pub fn note(&self, tid: Tid, recorded: Option<OperationChanges>) {
        let mut done = self.done();
        if done.tid != Some(tid) {
            *done = TransactionChanges { tid: Some(tid), ..TransactionChanges::default() };
        }
        let Some(recorded) = recorded.filter(|_| !done.ineligible) else {
            *done = TransactionChanges::ineligible(tid);
            return;
        };
        done.names.extend(recorded.names);
        if done.names.len() > NAMES_MAX {
            *done = TransactionChanges::ineligible(tid);
            return;
        }
        for (no, ranges) in recorded.inodes {
            done.inodes.entry(no).or_default().extend(ranges.iter());
        }
    }

    /// What has been done since the last fast commit of `tid`, to be recorded now; `None` if it
    /// cannot.
    pub(crate) fn take(&self, tid: Tid) -> Option<Pending> {
        let mut done = self.done();
        if done.tid != Some(tid) || done.ineligible {
            return None;
        }
        let names = std::mem::take(&mut done.names);
        Some(Pending { names, inodes: std::mem::take(&mut done.inodes), begun: done.begun })
    }

    /// What was taken is durable.
    pub(crate) fn committed(&self, tid: Tid) {
        let mut done = self.done();
        if done.tid == Some(tid) {
            done.begun = true;
        }
    }

    /// The transaction must be committed in full.
    pub(crate) fn mark_ineligible(&self, tid: Tid) {
        let mut done = self.done();
        if done.tid == Some(tid) {
            *done = TransactionChanges::ineligible(tid);
        }
    }
}

/// Whether a fast commit can hold this inode so that everybody replays it rightly: a regular file
/// whose few extents are in the inode, without attributes in a block of their own.
pub(crate) fn is_eligible(raw: &RawInode) -> bool {
    let flags = raw.flags();
    let strange = InodeFlags::INLINE_DATA
        | InodeFlags::ENCRYPTED
        | InodeFlags::JOURNAL_DATA
        | InodeFlags::EA_INODE
        | InodeFlags::VERITY;
    // `eh_depth`
    let flat = raw.block()[6..8] == [0, 0];
    raw.file_type() == Some(FileType::Regular)
        && flags.contains(InodeFlags::EXTENTS)
        && !flags.intersects(strange)
        && flat
        && raw.file_acl() == 0
        && raw.links() > 0
}
