//! The mounted file system.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_pagecache::{FileKey, PAGE, PageCache};
use steadfast_vfs::FsError;

use crate::meta::{Parts, Txn, Volume};
use crate::options::{DataMode, MountOptions};
use crate::state::{AccessRule, Handles, HomeMark, Inode, MountRecovery, Protection, Transact};

/// A mounted ext4 file system.
///
/// A failed write of newly allocated data with data=ordered stops the journal (`data_err=abort`):
/// what is committed never shows what its blocks held before.
///
/// `unmount` leaves it clean. Dropping it without that is what a power cut is:
/// the journal is recovered at the next mount.
pub struct Ext4 {
    /// What describes the volume: the same as that of `parts`.
    pub(crate) volume: Arc<Volume>,
    pub(crate) parts: Parts,
    /// Of an external journal: the mark in the superblock.
    pub(crate) home: Option<Arc<HomeMark>>,
    /// Multiple-mount protection.
    pub(crate) protection: Option<Arc<Protection>>,
    pub(crate) pages: Arc<PageCache>,
    pub(crate) options: MountOptions,
    pub(crate) handles: Handles,
    /// Files may be used in place.
    pub(crate) dax: bool,
    pub(crate) access_rule: AccessRule,
    /// With data=transact.
    pub(crate) transact: Option<Transact>,
    pub(crate) recovery: Option<MountRecovery>,
    /// For tasks of its own.
    pub(crate) me: Weak<Ext4>,
}

/// Times that an operation without space is retried after a commit has freed some.
const SPACE_RETRIES: u32 = 3;

impl Ext4 {
    /// What the mount has recovered; `None` if it had been unmounted.
    pub fn recovery(&self) -> Option<&MountRecovery> {
        self.recovery.as_ref()
    }

    /// Begins to look at the metadata: for tools that look at the file system's structure.
    pub fn look(&self) -> Txn<'_> {
        self.parts.look()
    }

    /// What describes the volume: its geometry and features.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// The page cache: its counters and settings.
    pub fn page_cache(&self) -> &PageCache {
        &self.pages
    }

    /// Bytes in memory of the disk's contents: pages, what the journal holds of blocks that are
    /// not home yet, metadata blocks, inodes and names, as [`MountOptions::cache_bytes`] counts
    /// them.
    pub fn memory_bytes(&self) -> u64 {
        let blocks = self.parts.lock_meta().cache.borrow().len() as u64;
        let inodes = self.parts.inodes.len().max(self.parts.names.len() / 2) as u64;
        let pages = self.pages.stats().memory_bytes;
        pages
            + pages / PAGE as u64 * crate::options::BLOCK_COST
            + self.options.journal.image_bytes.load(Ordering::Relaxed)
            + blocks * (self.volume.block_size() + crate::options::BLOCK_COST)
            + inodes * crate::options::INODE_COST
    }

    /// The journal, if there is one: its counters and how full it is.
    pub fn journal(&self) -> Option<&steadfast_journal::Journal> {
        self.parts.log.journal().map(|journal| &**journal)
    }

    /// Why nothing can be written: asked for, or forced by an error; `None` if all is well.
    pub fn read_only_because(&self) -> Option<String> {
        self.parts.log.aborted().or_else(|| self.volume.status.read_only_because())
    }

    /// Whether it was shut down ([`FileSystem::shutdown`](steadfast_vfs::FileSystem::shutdown))
    /// while all was well.
    pub fn was_shut_down(&self) -> bool {
        self.parts.log.aborted().is_none() && self.volume.status.was_shut_down()
    }

    /// Whether the inode's data goes through the journal.
    pub(crate) fn journals_data(&self, inode: &Inode) -> bool {
        self.journal().is_some()
            && (self.options.data == DataMode::Journal
                || inode.state().raw.flags().contains(InodeFlags::JOURNAL_DATA))
    }

    /// Runs an operation; when it finds no space while inodes wait for their deletion, or freed
    /// blocks for a commit, waits for that and retries. Corruption makes the file system read-only,
    /// and stays. With data=transact no transaction point comes while it runs; so one operation
    /// does not run inside another.
    pub(crate) fn run<T>(
        &self,
        mut operation: impl FnMut() -> Result<T>,
    ) -> steadfast_vfs::Result<T> {
        self.volume.status.check_up()?;
        let mut operation = || self.parts.with_blocks(&mut operation);
        self.outcome(match &self.transact {
            Some(transact) => self.run_between_points(transact, &mut operation),
            None => self.with_space(operation),
        })
    }

    /// As [`run`](Self::run), for an operation that must not be retried as a whole: its parts
    /// are, [`with_space`](Self::with_space).
    pub(crate) fn run_once<T>(
        &self,
        operation: impl FnOnce() -> Result<T>,
    ) -> steadfast_vfs::Result<T> {
        self.volume.status.check_up()?;
        self.outcome(match &self.transact {
            Some(transact) => self.run_once_between_points(transact, operation),
            None => operation(),
        })
    }

    /// As [`run`](Self::run), for what the page cache asks for: part of an operation, or of a
    /// transaction point.
    pub(crate) fn run_inside<T>(
        &self,
        operation: impl FnMut() -> Result<T>,
    ) -> steadfast_vfs::Result<T> {
        self.volume.status.check_up()?;
        self.outcome(self.with_space(operation))
    }

    /// Runs an operation, or the part of one that is a single transaction, again when it has found
    /// no space while inodes wait for their deletion, or freed blocks for a commit. With
    /// data=transact a commit must wait until the whole operation is over.
    pub(crate) fn with_space<T>(&self, mut operation: impl FnMut() -> Result<T>) -> Result<T> {
        let mut operation = || self.parts.with_blocks(&mut operation);
        if self.transact.is_some() {
            return operation();
        }
        let mut deleted = self.parts.holds.deleted();
        let mut outcome = operation();
        for _ in 0..SPACE_RETRIES {
            if !found_no_space(&outcome) {
                break;
            }
            let settled = self.parts.holds.settle(deleted);
            deleted = self.parts.holds.deleted();
            // A quota counts no blocks that are free.
            let full = !matches!(&outcome, Err(Ext4Error::Fs(FsError::QuotaExceeded)));
            let busy = full && self.parts.allocator.counts().busy_blocks > 0;
            if !settled && !busy {
                break;
            }
            if busy {
                self.parts.log.commit(self.parts.log.running_tid())?;
                self.parts.allocator.use_freed_committed(&self.parts.log, &self.parts.meta)?;
            }
            outcome = operation();
        }
        outcome
    }

    /// The caller's answer. Corruption makes the file system read-only.
    pub(crate) fn outcome<T>(&self, outcome: Result<T>) -> steadfast_vfs::Result<T> {
        outcome.map_err(|e| {
            if let Err(down) = self.volume.status.check_up() {
                return down.into();
            }
            if let Ext4Error::Corrupt { .. } = &e {
                self.volume.status.set_read_only(e.to_string());
            }
            e.into()
        })
    }
}

steadfast_runtime::debug_fields!(Ext4: options);

/// Whether an operation found no space, or more than its quota, which a deletion may end.
pub(crate) fn found_no_space<T>(outcome: &Result<T>) -> bool {
    matches!(outcome, Err(Ext4Error::Fs(FsError::NoSpace { .. } | FsError::QuotaExceeded)))
}

/// A file's number in the page cache.
pub(crate) fn key(no: InodeNo) -> FileKey {
    FileKey(no.0.into())
}
