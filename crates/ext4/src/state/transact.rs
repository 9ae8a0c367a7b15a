//! What transaction points keep of a mounted file system.

use std::sync::atomic::AtomicU64;
use std::sync::{self, PoisonError};

use steadfast_pagecache::ErrorCursor;
use steadfast_runtime::RwLock;
use steadfast_vfs::{FsError, TransactMask, TransactPolicy};

use super::timer::Timer;
use super::{LastPoint, SincePoint};

/// What data=transact keeps of a mounted file system.
pub(crate) struct Transact {
    /// Shared by operations, exclusive to points and rollbacks. Taken before all other locks, and
    /// once: an operation does not take it again.
    pub gate: RwLock<()>,
    state: sync::Mutex<State>,
    pub timer: Timer,
    pub rollbacks: AtomicU64,
}

/// Locked for moments only.
#[derive(Default)]
pub(crate) struct State {
    pub policy: TransactPolicy,
    /// Why there can be no further point.
    pub failed: Option<FsError>,
    /// Write-back errors that have been reported.
    pub errors: ErrorCursor,
    pub group_open: bool,
    /// Counts groups, and once more when it is decided that one commits: what found no space
    /// before that says so of its own group only.
    pub groups: u64,
    /// The open group has failed: it is rolled back as soon as no file is open.
    pub group_failed: Option<FsError>,
    /// The point to which a rollback goes.
    pub last: Option<LastPoint>,
    /// What the unmount has thrown away.
    pub discarded: Option<SincePoint>,
}

impl Transact {
    pub fn new(policy: TransactPolicy) -> Self {
        Transact {
            gate: RwLock::new(()),
            state: sync::Mutex::new(State { policy, ..State::default() }),
            timer: Timer::new(policy.timed),
            rollbacks: AtomicU64::new(0),
        }
    }

    pub fn state(&self) -> sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn policy(&self) -> TransactPolicy {
        self.state().policy
    }

    /// The number of the group that an operation is part of; the caller has the gate.
    pub fn group(&self) -> Option<u64> {
        let state = self.state();
        state.group_open.then_some(state.groups)
    }

    /// Whether these operations make a point now.
    pub fn wants(&self, bits: TransactMask) -> bool {
        let state = self.state();
        state.policy.mask.intersects(bits) && !state.group_open
    }
}

impl Drop for Transact {
    fn drop(&mut self) {
        self.timer.stop();
    }
}
