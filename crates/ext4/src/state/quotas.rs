//! The quota files, and what is reserved for data that has no place yet.

use std::collections::BTreeMap;
use std::sync::{self, PoisonError};

use steadfast_ext4_format::ondisk::{InodeNo, Layout, RawInode};
use steadfast_ext4_format::quota::{KINDS, QuotaKind, owner};

use super::InodeEdit;

/// An id of some kind.
pub(crate) type Id = (QuotaKind, u32);

/// The quota files, and what is reserved.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    pub files: BTreeMap<QuotaKind, InodeNo>,
    /// Bytes reserved for data that has no place yet.
    delayed: sync::Mutex<BTreeMap<Id, u64>>,
}

impl Quotas {
    /// Whether anything is counted.
    pub fn is_on(&self) -> bool {
        !self.files.is_empty()
    }

    pub fn delayed(&self) -> sync::MutexGuard<'_, BTreeMap<Id, u64>> {
        self.delayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn ids<'q>(&'q self, raw: &'q RawInode) -> impl Iterator<Item = Id> + 'q {
        self.files.keys().map(|kind| (*kind, owner(raw, *kind)))
    }

    /// Charges the inode's owners for bytes that have no place yet.
    pub fn add_delayed(&self, raw: &RawInode, bytes: u64) {
        if bytes > 0 && self.is_on() {
            let mut delayed = self.delayed();
            self.ids(raw).for_each(|id| *delayed.entry(id).or_default() += bytes);
        }
    }

    /// An inode is about to be published with other owners: what is reserved for it goes with it.
    pub fn owner_changes(&self, edit: &InodeEdit, layout: &Layout) {
        if !self.is_on() {
            return;
        }
        let state = edit.inode.state();
        let blocks = state.reserved_blocks(layout.blocks_per_cluster);
        let bytes = blocks * u64::from(layout.block_size);
        let same = KINDS.iter().all(|kind| owner(&state.raw, *kind) == owner(&edit.raw, *kind));
        if bytes > 0 && !same {
            self.remove_delayed(&state.raw, bytes);
            self.add_delayed(&edit.raw, bytes);
        }
    }

    /// Takes a charge back.
    pub fn remove_delayed(&self, raw: &RawInode, bytes: u64) {
        if bytes == 0 || !self.is_on() {
            return;
        }
        let mut delayed = self.delayed();
        for id in self.ids(raw) {
            let left = delayed.get(&id).map_or(0, |n| n.saturating_sub(bytes));
            if left == 0 {
                delayed.remove(&id)
            } else {
                delayed.insert(id, left)
            };
        }
    }
}
