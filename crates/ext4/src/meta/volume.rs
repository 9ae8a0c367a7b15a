//! The mounted file system below files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{self, Arc};

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{GroupDesc, GroupNo, Layout, Superblock};
use steadfast_ext4_format::{RangeSet, Result};
use steadfast_runtime::{Mutex, MutexGuard};
use steadfast_vfs::FsError;

use super::cache::BlockCache;
use super::log::{LOG_FULL, MetaLog};
use super::txn::Txn;
use crate::state::{
    AllocState, Clock, Fetches, FreeSpace, HomeMark, InodeCache, NameCache, NodeCache, OrphanFile,
    Orphans, Protection, Quotas, Space, Status, Track, XattrBlockCache,
};

/// Most operations change fewer blocks than this.
const TYPICAL_UPDATE_BLOCKS: usize = 16;

/// Device, layout, log and everything that is in memory of the metadata.
pub struct Volume {
    pub(crate) device: Arc<dyn BlockDevice>,
    /// Where things are.
    pub layout: Layout,
    pub(crate) log: MetaLog,
    pub(crate) meta: Mutex<MetaState>,
    pub(crate) inodes: InodeCache,
    pub(crate) names: NameCache,
    pub(crate) free: FreeSpace,
    /// Of an external journal: how far its log must go for what is on the device.
    pub(crate) home: Option<Arc<HomeMark>>,
    /// The flush of the device that the data of any file outside the log needs.
    pub(crate) outside: Arc<AtomicU64>,
    pub(crate) status: Arc<Status>,
    pub(crate) clock: Clock,
    /// Operations that have retried too often and fall back to reading under the metadata lock.
    pub(crate) lock_fallbacks: AtomicU32,
    /// The orphan file, if there is one.
    pub(crate) orphan_file: Option<OrphanFile>,
    /// Who uses how much, and may.
    pub(crate) quotas: Quotas,
    /// What a transaction that is about to be finished changes in the quota files.
    pub(crate) store_quotas: fn(&mut Txn<'_>) -> Result<()>,
    /// What the running transaction has done, for fast commits.
    pub(crate) fast: Option<Track>,
    /// Multiple-mount protection.
    pub(crate) protection: Option<Arc<Protection>>,
    /// A bug that the crash explorer is to find.
    #[cfg(feature = "planted-bugs")]
    pub(crate) planted: Option<crate::planted::Bug>,
}

/// What the metadata lock guards.
pub(crate) struct MetaState {
    pub cache: RefCell<BlockCache>,
    pub superblock: Superblock,
    pub groups: Vec<GroupDesc>,
    pub alloc: AllocState,
    pub orphans: Orphans,
    pub fetches: Fetches,
    pub xattr_blocks: XattrBlockCache,
    pub extent_nodes: RefCell<NodeCache>,
}

impl Volume {
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
    pub(crate) fn begin_promised(&self) -> Result<Txn<'_>> {
        self.check_writable()?;
        // Between two transactions of one operation others may run, and commit the first.
        steadfast_runtime::preemption_point();
        self.log.wait_for_room(TYPICAL_UPDATE_BLOCKS)?;
        Ok(Txn::new(self))
    }

    /// With data=transact: blocks of delayed data that the log has room for. What is delayed
    /// already counts as if each block of it changed a block of metadata; writing it back shows
    /// how many it really takes.
    pub(crate) fn log_room(&self) -> Result<u64> {
        let Some(fresh) = &self.free.fresh else { return Ok(u64::MAX) };
        let delayed = self.space().promised();
        let room = self.log.room_on_demand().saturating_sub(delayed);
        if fresh.is_spent() {
            return Err(FsError::NoSpace { what: "the atomic group has run out of space" }.into());
        }
        if room < TYPICAL_UPDATE_BLOCKS as u64 {
            return Err(FsError::NoSpace { what: LOG_FULL }.into());
        }
        Ok(room)
    }

    /// Whether data=transact is in force.
    pub(crate) fn transacts(&self) -> bool {
        self.free.fresh.is_some()
    }

    /// As [`begin`](Self::begin), for operations that [`with_blocks`](Self::with_blocks) runs: one
    /// transaction, in which nothing is lost when it fails.
    pub(crate) fn begin_yielding(&self) -> Result<Txn<'_>> {
        Ok(self.begin()?.yielding())
    }

    /// As [`look`](Self::look), for operations that [`with_blocks`](Self::with_blocks) runs.
    pub(crate) fn look_yielding(&self) -> Txn<'_> {
        self.look().yielding()
    }

    /// Refuses when the volume is read-only: asked for, or forced by an error.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if let Some(cause) = self.log.aborted() {
            self.status.set_read_only(cause);
        }
        self.status.check_writable()
    }

    /// Starts an operation that only looks.
    pub fn look(&self) -> Txn<'_> {
        Txn::new(self)
    }

    /// Bytes a block.
    pub fn block_size(&self) -> u64 {
        self.layout.block_size.into()
    }

    pub(crate) fn lock_meta(&self) -> MutexGuard<'_, MetaState> {
        self.meta.lock()
    }

    pub(crate) fn space(&self) -> sync::MutexGuard<'_, Space> {
        self.free.counts()
    }

    /// Whether a run of blocks may belong to a file.
    pub(crate) fn valid_file_blocks(&self, start: u64, len: u64) -> bool {
        self.layout.contains(start, len) && self.free.is_for_files(start, len)
    }

    /// Superblocks, descriptors, bitmaps and inode tables of all groups.
    pub(crate) fn find_group_metadata(layout: &Layout, groups: &[GroupDesc]) -> RangeSet {
        let mut set = RangeSet::new();
        for group in layout.all_groups() {
            let start = layout.group_start(group);
            set.insert(start, start + u64::from(layout.group_overhead(group)));
            let desc = &groups[group.0 as usize];
            for (block, len) in [
                (desc.block_bitmap(), 1),
                (desc.inode_bitmap(), 1),
                (desc.inode_table(), u64::from(layout.inode_table_blocks)),
            ] {
                set.insert(block, block + len);
            }
        }
        set
    }
}

impl Volume {
    /// Whether this bug is switched on.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn has(&self, bug: crate::planted::Bug) -> bool {
        self.planted == Some(bug)
    }

    /// No bugs are built in.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) const fn has(&self, _: crate::planted::Bug) -> bool {
        false
    }
}

/// Group descriptors of a transaction: the changed ones over those of the volume.
#[derive(Default)]
pub(crate) struct GroupEdits {
    pub edited: BTreeMap<GroupNo, GroupEdit>,
}

/// A group that a transaction changes.
pub(crate) struct GroupEdit {
    pub desc: GroupDesc,
    pub blocks_changed: bool,
    pub inodes_changed: bool,
}
