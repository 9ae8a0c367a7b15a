//! Whatever becomes a member of a volume, or ceases to be one, is opened by nobody for writing
//! meanwhile: what is written through its file then would be beneath the volume, or over what the
//! host takes away.
//!
//! A member that is in the records is refused by the tree in any case. But before it is there its
//! device is looked at, and the records are written to a disk; and when it is there no more its
//! label is taken away. For that time it is held. Who holds has seen under the lock of
//! [`Inner`](super::Inner) that nobody has the file open, and who opens looks under the same lock.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Host, Inner};
use crate::endpoint::Endpoint;

/// Names that are held. Locked for moments; after `Inner`, where both are.
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

/// Names that nobody opens for writing as long as this is there.
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

/// What is to become a component, held until it is one.
pub(super) struct Component<'h> {
    endpoint: Arc<Endpoint>,
    _claim: Claim<'h>,
}

impl<'h> Component<'h> {
    pub fn new(endpoint: Arc<Endpoint>, claim: Claim<'h>) -> Component<'h> {
        Component { endpoint, _claim: claim }
    }
}

impl Deref for Component<'_> {
    type Target = Arc<Endpoint>;

    fn deref(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }
}

impl Host {
    /// Holds names; nobody has them open for writing, as the caller has seen in what it has locked.
    /// One change is made at a time, so nobody else holds them.
    pub(super) fn claim<'n>(
        &self,
        _seen: &Inner,
        names: impl IntoIterator<Item = &'n String>,
    ) -> Claim<'_> {
        let names: Vec<String> = names.into_iter().cloned().collect();
        self.claim.change(|all| all.extend(names.iter().cloned()));
        Claim { all: &self.claim, names }
    }
}
