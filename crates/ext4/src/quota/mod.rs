//! Space and inodes that each user, group and project uses, and may use (`quota`, `project`).
//!
//! The hidden quota files are changed by the transaction that changes what they count: when it is
//! finished, every inode it touched is compared with what it was before. So they are right after
//! any crash, whatever an operation does, and no operation has to know of them.
//!
//! Limits hold for everybody who calls: who that is, and whether he may exceed them, is not known
//! here. Space for data that has no place yet is charged when it is reserved; what has been
//! promised that way is never refused later.

mod file;
mod usage;

use std::collections::BTreeMap;
use std::sync::{self, PoisonError};

use steadfast_ext4_format::ondisk::{
    InodeNo, Layout, QUOTA_MAGIC, QUOTA_VERSION, QuotaInfo, RawInode, RoCompat,
};
use steadfast_ext4_format::quota::{KINDS, QuotaKind, file_of, owner};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::FileType;

use crate::inode::InodeEdit;
use crate::meta::Volume;

/// What an id uses and may use; limits of 0 are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quota {
    /// Bytes in use, without data that has no place yet.
    pub space: u64,
    /// Inodes in use.
    pub inodes: u64,
    /// The limits.
    pub limits: QuotaLimits,
}

/// What an id may use; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QuotaLimits {
    /// Most space, in units of 1 KiB.
    pub space_hard_kib: u64,
    /// Space that may be exceeded for a week or as long as the file says, in units of 1 KiB.
    pub space_soft_kib: u64,
    /// Most inodes.
    pub inodes_hard: u64,
    /// Inodes that may be exceeded for a while.
    pub inodes_soft: u64,
}

/// An id of some kind.
pub(crate) type Id = (QuotaKind, u32);

/// The quota files, and what is reserved.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    files: BTreeMap<QuotaKind, InodeNo>,
    /// Bytes reserved for data that has no place yet.
    delayed: sync::Mutex<BTreeMap<Id, u64>>,
}

impl Quotas {
    /// Finds the quota files; empty without the feature.
    ///
    /// # Errors
    /// Corrupt: no quota file. Unsupported: one of another version.
    pub fn load(volume: &Volume) -> Result<Quotas> {
        let txn = volume.look();
        let sb = *txn.superblock();
        let mut quotas = Quotas::default();
        if !sb.features().ro_compat.contains(RoCompat::QUOTA) {
            return Ok(quotas);
        }
        for kind in KINDS {
            let no = file_of(&sb, kind);
            if no == InodeNo::NONE {
                continue;
            }
            let corrupt =
                |what: &str| Ext4Error::corrupt(what, format!("{kind:?} quota, inode {no}"));
            let raw = txn.raw_inode(no)?;
            if raw.file_type() != Some(FileType::Regular) || raw.is_inline() {
                return Err(corrupt("no ordinary file"));
            }
            let info: QuotaInfo = txn.quota_info(no)?;
            if info.magic.get() != QUOTA_MAGIC[kind as usize] {
                return Err(corrupt("wrong magic number"));
            }
            if info.version.get() != QUOTA_VERSION {
                let what = format!("{kind:?} quota file of version {}", info.version);
                return Err(Ext4Error::Unsupported { what });
            }
            quotas.files.insert(kind, no);
        }
        Ok(quotas)
    }

    /// Whether anything is counted.
    pub fn is_on(&self) -> bool {
        !self.files.is_empty()
    }

    fn delayed(&self) -> sync::MutexGuard<'_, BTreeMap<Id, u64>> {
        self.delayed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ids<'q>(&'q self, raw: &'q RawInode) -> impl Iterator<Item = Id> + 'q {
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
