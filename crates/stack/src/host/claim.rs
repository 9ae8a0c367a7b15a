//! Claims on names (as the kernel's `bd_prepare_to_claim`): while a device becomes a member of a
//! volume, or stops being one, no program can open it for writing. A program could otherwise write
//! below the volume, or over what the host removes.
//!
//! The tree refuses writes to recorded members in any case. But before a member is recorded its
//! device is read, and the records are written to a disk; and after it is no longer recorded its
//! label is removed. For this time its name is claimed. A claim is made under the lock of
//! [`HostState`] after checking that the file is not open, and opens check under the same
//! lock.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::registry::{HostState, Registry};
use crate::endpoint::Endpoint;

/// Claimed names. Locked for moments; after `HostState`, where both are.
#[derive(Default)]
pub(crate) struct Names(Mutex<BTreeSet<String>>);

impl Names {
    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }
}

/// Names that cannot be opened for writing while this exists.
#[must_use]
pub(super) struct Claim<'h> {
    all: &'h Names,
    names: Vec<String>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.all.change(|all| all.retain(|name| !self.names.contains(name)));
    }
}

/// A future component, claimed until it is one.
pub(super) struct ClaimedComponent<'h> {
    endpoint: Arc<Endpoint>,
    _claim: Claim<'h>,
}

impl<'h> ClaimedComponent<'h> {
    pub fn new(endpoint: Arc<Endpoint>, claim: Claim<'h>) -> ClaimedComponent<'h> {
        ClaimedComponent { endpoint, _claim: claim }
    }
}

impl Deref for ClaimedComponent<'_> {
    type Target = Arc<Endpoint>;

    fn deref(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }
}

impl Registry {
    /// Claims names; the caller has checked under `seen`'s lock that they are not open for writing.
    /// Only one change runs at a time, so no other claim on them exists.
    pub(super) fn claim<'n>(
        &self,
        _seen: &HostState,
        names: impl IntoIterator<Item = &'n String>,
    ) -> Claim<'_> {
        let names: Vec<String> = names.into_iter().cloned().collect();
        self.claim.change(|all| all.extend(names.iter().cloned()));
        Claim { all: &self.claim, names }
    }
}
