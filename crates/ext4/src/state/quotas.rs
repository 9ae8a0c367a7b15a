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
    /// Bytes reserved for data that has no place yet. Below zero for moments only: where a
    /// reservation ends, as its place is being counted as used.
    delayed: sync::Mutex<BTreeMap<Id, i64>>,
}

impl Quotas {
    /// Whether anything is counted.
    pub fn is_on(&self) -> bool {
        !self.files.is_empty()
    }

    /// Bytes that are reserved for data of this id.
    pub fn delayed(&self, id: Id) -> u64 {
        let bytes = self.lock().get(&id).copied().unwrap_or(0);
        u64::try_from(bytes).unwrap_or(0)
    }

    fn lock(&self) -> sync::MutexGuard<'_, BTreeMap<Id, i64>> {
        self.delayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is reserved any more: what was in memory is gone.
    pub fn forget_delayed(&self) {
        self.lock().clear();
    }

    pub fn ids<'q>(&'q self, raw: &'q RawInode) -> impl Iterator<Item = Id> + 'q {
        self.files.keys().map(|kind| (*kind, owner(raw, *kind)))
    }

    /// Charges the inode's owners for bytes that have no place yet.
    pub fn add_delayed(&self, raw: &RawInode, bytes: u64) {
        self.change_delayed(raw, i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// Takes a charge back.
    pub fn remove_delayed(&self, raw: &RawInode, bytes: u64) {
        self.change_delayed(raw, -i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    fn change_delayed(&self, raw: &RawInode, bytes: i64) {
        if bytes == 0 || !self.is_on() {
            return;
        }
        let mut delayed = self.lock();
        for id in self.ids(raw) {
            let entry = delayed.entry(id).or_default();
            *entry = entry.saturating_add(bytes);
            if *entry == 0 {
                delayed.remove(&id);
            }
        }
    }

    /// What is reserved for an inode whose owners an edit changes, in bytes.
    pub fn moved_by(&self, edit: &InodeEdit, layout: &Layout) -> u64 {
        let state = edit.inode.state();
        if KINDS.iter().all(|kind| owner(&state.raw, *kind) == owner(&edit.raw, *kind)) {
            return 0;
        }
        state.reserved_blocks(layout.blocks_per_cluster) * u64::from(layout.block_size)
    }

    /// An inode is about to be published with other owners: what is reserved for it goes with it.
    pub fn owner_changes(&self, edit: &InodeEdit, layout: &Layout) {
        if !self.is_on() {
            return;
        }
        let bytes = self.moved_by(edit, layout);
        if bytes > 0 {
            self.remove_delayed(&edit.inode.state().raw, bytes);
            self.add_delayed(&edit.raw, bytes);
        }
    }
}
