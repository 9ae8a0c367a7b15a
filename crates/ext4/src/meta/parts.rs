//! The parts of a running file system below files, and who owns them.
//!
//! Each part has its own state and its own lock. Its functions take what else they need: most the
//! transaction that they are part of. [`Parts`] owns them; it belongs to a mounted file system, or
//! to a staged one.
//!
//! # Lock order
//!
//! While a lock is held only locks below it may be taken; those in one row never together.
//!
//! ```text
//! Track::one               one fast commit at a time
//! HomeMark::written        one write of the superblock at a time
//! MetaLock                 what `MetaState` has: superblock, groups, blocks, orphans ...
//! InodeCache               which inodes are in memory
//! Inode::state             one inode
//! Allocator::counts        free space
//! Quotas::delayed   Allocator::freed_committed   Fresh   HomeMark::freed   NameCache   Track::done
//! ```
//!
//! An update is submitted under the metadata lock, so the journal's locks are below that. Of the
//! locks here a commit takes only `Allocator::freed_committed` and `HomeMark::freed`, a checkpoint
//! also `HomeMark::written`: who holds that one waits for the log only at mount and unmount, when
//! no operation runs.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use steadfast_ext4_format::Result;
use steadfast_runtime::MutexGuard;
use steadfast_vfs::FsError;

use super::lock::{MetaLock, MetaState};
use super::log::{LOG_FULL, MetaLog};
use super::txn::Txn;
use super::volume::Volume;
use crate::state::{Allocator, Holds, InodeCache, NameCache, Orphans, Quotas, Track};

/// Most operations change fewer blocks than this.
const TYPICAL_UPDATE_BLOCKS: usize = 16;

/// The parts of a running file system.
pub(crate) struct Parts {
    pub volume: Arc<Volume>,
    /// Where finished transactions go.
    pub log: MetaLog,
    pub meta: MetaLock,
    pub inodes: InodeCache,
    /// Whose numbers are in use outside.
    pub holds: Holds,
    pub names: NameCache,
    pub allocator: Allocator,
    pub orphans: Orphans,
    /// Who uses how much, and may.
    pub quotas: Quotas,
    /// Writes what a transaction that is about to be finished changes in the quota files.
    pub store_quotas: fn(&Quotas, &mut Txn<'_>) -> Result<()>,
    /// What the running transaction has done, for fast commits.
    pub fast: Option<Track>,
    /// The flush of the device that the data of any file outside the log needs.
    pub outside: Arc<AtomicU64>,
}

impl Parts {
    /// Starts an operation that may change things. Waits for the one metadata lock.
    ///
    /// # Errors
    /// If the volume is read-only; with data=transact ENOSPC when the log is nearly full.
    pub fn begin(&self) -> Result<Txn<'_>> {
        self.log_room()?;
        self.begin_promised()
    }

    /// As [`begin`](Self::begin), for what was promised earlier (places for delayed data) or
    /// gives something back: it may use what is kept of the log for that.
    pub fn begin_promised(&self) -> Result<Txn<'_>> {
        self.check_writable()?;
        // Between two transactions of one operation others may run, and commit the first.
        steadfast_runtime::preemption_point();
        self.log.wait_for_room(TYPICAL_UPDATE_BLOCKS)?;
        Ok(Txn::new(self))
    }

    /// With data=transact: blocks of delayed data that the log has room for. What is delayed
    /// already counts as if each block of it changed a block of metadata; writing it back shows
    /// how many it really takes.
    pub fn log_room(&self) -> Result<u64> {
        let Some(fresh) = &self.allocator.fresh else { return Ok(u64::MAX) };
        let delayed = self.allocator.counts().promised();
        let room = self.log.room_on_demand().saturating_sub(delayed);
        if fresh.is_spent() {
            return Err(FsError::NoSpace {
                what: "the atomic group has failed, and is taken back whole",
            }
            .into());
        }
        if room < TYPICAL_UPDATE_BLOCKS as u64 {
            return Err(FsError::NoSpace { what: LOG_FULL }.into());
        }
        Ok(room)
    }

    /// Whether data=transact is in force.
    pub fn transacts(&self) -> bool {
        self.allocator.fresh.is_some()
    }

    /// As [`begin`](Self::begin), for operations that [`with_blocks`](Self::with_blocks) runs: one
    /// transaction, in which nothing is lost when it fails.
    pub fn begin_yielding(&self) -> Result<Txn<'_>> {
        Ok(self.begin()?.yielding())
    }

    /// As [`look`](Self::look), for operations that [`with_blocks`](Self::with_blocks) runs.
    pub fn look_yielding(&self) -> Txn<'_> {
        self.look().yielding()
    }

    /// Refuses when the volume is read-only: asked for, or forced by an error.
    pub fn check_writable(&self) -> Result<()> {
        if let Some(cause) = self.log.aborted() {
            self.volume.status.set_read_only(cause);
        }
        self.volume.status.check_writable()
    }

    /// Starts an operation that only looks.
    pub fn look(&self) -> Txn<'_> {
        Txn::new(self)
    }

    pub fn lock_meta(&self) -> MutexGuard<'_, MetaState> {
        self.meta.lock()
    }
}
