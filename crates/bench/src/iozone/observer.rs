//! Who wants to know of every change and every promise while it happens.
//!
//! A crash judge keeps an account of what the workload was promised. It needs, for every write:
//! the file, the range, the tag of the data, when the call began, when it returned, and whether
//! returning was a promise of durability (O_SYNC, O_DSYNC) or a later fsync makes it one. It also
//! needs what takes earlier promises back: files emptied or removed.
//!
//! For one file, calls come from one task at a time, so `started` and `finished` alternate.
//! The callbacks run inside the timed section: they must not wait.

use steadfast_runtime::Nanos;

use super::plan::Test;
use super::results::TestResult;

/// A change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Stamped data is written ([`steadfast_block::pattern`]).
    Write {
        /// Byte offset, a multiple of 512.
        offset: u64,
        /// Bytes, a multiple of 512.
        len: u64,
        /// The data's tag: the child's number plus one above 48 bits of sequence number.
        tag: u64,
    },
    /// The file is made, or emptied if it was there.
    Truncate,
    /// The file is removed.
    Remove,
}

/// A call that changes a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// Which child; for the removal at the end, the child that the file belonged to.
    pub child: usize,
    /// The file's path from the file system's root.
    pub file: &'a str,
    /// What it changes.
    pub action: Action,
    /// When it was made.
    pub started: Nanos,
}

/// An observer. Everything may be left out.
pub trait Observer: Send + Sync {
    /// A call is about to be made.
    fn started(&self, _call: &Call<'_>) {}

    /// The call has returned at `at`, successfully. `durable` says whether that was a promise
    /// that the change survives a power cut.
    fn finished(&self, _call: &Call<'_>, _at: Nanos, _durable: bool) {}

    /// An fsync of `file`, begun at `started`, has returned at `at`: what had finished before it
    /// began is durable. Without a file it was a sync of the whole file system.
    fn synced(&self, _file: Option<&str>, _started: Nanos, _at: Nanos) {}

    /// A test begins, with so many children.
    fn test_started(&self, _test: Test, _children: usize) {}

    /// A test has ended: for printing results as they come.
    fn test_finished(&self, _result: &TestResult) {}
}

/// Nobody.
pub(super) struct SilentObserver;

impl Observer for SilentObserver {}
