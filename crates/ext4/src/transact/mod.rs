//! data=transact: data and metadata become durable together, at transaction points.
//!
//! # What holds
//!
//! 1. The journal's running transaction is open from one point to the next; nothing but a point
//!    ends it: no timer of the journal, no full log, no fsync of its own.
//! 2. Every operation joins it whole. Operations hold the *gate* shared while they change things;
//!    a point holds it exclusively while it writes out the page cache (which finds places for the
//!    data and puts the mapping into the transaction) and ends the transaction. It waits for the
//!    commit after it has let go of the gate.
//! 3. No block that the last point holds is overwritten ([`crate::file`], `elsewhere`), and none
//!    that the transaction frees is used again before it has committed.
//! 4. Data that the transaction's mapping shows is on the device before its commit block is.
//!
//! So a power cut leaves exactly the last point, and it leaves it to anybody who can replay a
//! journal: on disk it is ext4 like any other.
//!
//! # Failures are final
//!
//! A write-back that fails has lost data that its program believes written: a later point would
//! be a state that never was. Every later point fails with the first error; a
//! [rollback](Ext4::roll_back) ends that, if the journal itself is well.

mod group;
mod point;
mod rollback;
mod run;
mod since;
mod timer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{self, Arc, PoisonError};

use steadfast_ext4_format::Result;
use steadfast_pagecache::ErrorCursor;
use steadfast_runtime::RwLock;
use steadfast_vfs::{FsError, TransactMask, TransactPolicy};

use crate::fs::Ext4;
pub use since::{LastPoint, RolledBack, SincePoint};
use timer::Timer;

/// What data=transact keeps of a mounted file system.
pub(crate) struct Transact {
    /// Shared by operations, exclusive to points and rollbacks. Taken before all other locks, and
    /// once: an operation does not take it again.
    gate: RwLock<()>,
    state: sync::Mutex<State>,
    timer: Timer,
    rollbacks: AtomicU64,
}

/// Locked for moments only.
struct State {
    policy: TransactPolicy,
    /// Why there can be no further point.
    failed: Option<FsError>,
    /// Write-back errors that are known.
    errors: ErrorCursor,
    group_open: bool,
    /// The point to which a rollback goes.
    last: Option<LastPoint>,
    /// What the unmount has thrown away.
    discarded: Option<SincePoint>,
}

impl Transact {
    pub(crate) fn new(policy: TransactPolicy) -> Self {
        Transact {
            gate: RwLock::new(()),
            state: sync::Mutex::new(State {
                policy,
                failed: None,
                errors: ErrorCursor::default(),
                group_open: false,
                last: None,
                discarded: None,
            }),
            timer: Timer::new(policy.timed),
            rollbacks: AtomicU64::new(0),
        }
    }

    fn state(&self) -> sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn policy(&self) -> TransactPolicy {
        self.state().policy
    }

    /// Whether these operations make a point now.
    fn wants(&self, bits: TransactMask) -> bool {
        let state = self.state();
        state.policy.mask.intersects(bits) && !state.group_open
    }
}

impl Ext4 {
    pub(crate) fn transacting(&self) -> steadfast_vfs::Result<&Transact> {
        self.transact.as_ref().ok_or_else(|| FsError::Unsupported {
            what: "transaction points: mount with data=transact".into(),
        })
    }

    /// The end of a mount: what it has changed itself is a point, the first to go back to.
    pub(crate) fn start_transacting(self: &Arc<Self>) -> Result<()> {
        let Some(transact) = &self.transact else { return Ok(()) };
        self.make_point()?;
        self.note_point_of_mount(transact);
        transact.timer.start(Arc::downgrade(self));
        Ok(())
    }

    /// When points are made.
    pub(crate) fn policy(&self) -> steadfast_vfs::Result<TransactPolicy> {
        Ok(self.transacting()?.policy())
    }

    /// Changes when points are made, from now on.
    pub(crate) fn set_policy(&self, policy: TransactPolicy) -> steadfast_vfs::Result<()> {
        let transact = self.transacting()?;
        transact.state().policy = policy;
        transact.timer.set_period(policy.timed);
        self.note_change();
        Ok(())
    }

    /// How often the file system has gone back to a transaction point: what was read before the
    /// last time may no longer be so.
    pub fn rollbacks(&self) -> u64 {
        self.transact.as_ref().map_or(0, |t| t.rollbacks.load(Ordering::Acquire))
    }
}

impl Drop for Transact {
    fn drop(&mut self) {
        self.timer.stop();
    }
}
