//! An inode in memory.

use std::sync::atomic::AtomicU64;
use std::sync::{self, Arc, PoisonError};

use steadfast_ext4_format::ondisk::{InodeNo, Layout, RawInode};
use steadfast_ext4_format::{Ext4Error, RangeSet};
use steadfast_journal::Tid;
use steadfast_runtime::RwLock;
use steadfast_vfs::{Attr, FileType, Ino};

use super::ExtentCache;

/// An inode in memory.
pub struct Inode {
    /// Its number.
    pub no: InodeNo,
    /// Orders data operations (the kernel's `i_rwsem`): shared for direct reads and overwrites,
    /// exclusive for what changes the size or the mapping. Taken before the metadata lock.
    pub(crate) data_lock: RwLock<()>,
    /// The flush of the device that its data outside the log needs (see `file/sync.rs`).
    pub(crate) outside: Arc<AtomicU64>,
    state: sync::Mutex<InodeState>,
}

/// The changing part. Locked for moments only, never across a wait.
pub(crate) struct InodeState {
    /// Fields as of the last finished transaction; its size is `i_disksize`.
    pub raw: RawInode,
    /// Size as reads see it.
    pub size: u64,
    /// The cached part of the mapping.
    pub map: ExtentCache,
    /// File blocks that have dirty data and a reservation, but no place yet.
    pub delayed: RangeSet,
    /// With clusters (`bigalloc`): the clusters of the file for which `delayed` blocks have a
    /// reservation. The others of them lie in clusters that the file has, and keeps until they
    /// have been written back. Empty without `bigalloc`: each delayed block is reserved itself.
    pub promised: RangeSet,
    /// File blocks that a transaction point holds and dirty data will replace: space for their
    /// new places is reserved. Only with data=transact.
    pub moving: RangeSet,
    /// The last transaction that changed the inode or its mapping (`i_sync_tid`).
    pub sync_tid: Tid,
    /// The last one without which the data cannot be read back (`i_datasync_tid`).
    pub datasync_tid: Tid,
    /// The transaction whose loss would take data of the file with it: the last that made it or
    /// changed its mapping or size, unless a fast commit holds that. For reports only: an inode
    /// that has left the memory and come back has forgotten it.
    pub data_in: Option<Tid>,
    /// Open handles.
    pub opens: u32,
    /// Calls that work on it without a handle. They keep it from being deleted, as handles do, but
    /// are not in the way of a rollback: each finds the inode anew after it.
    pub pins: u32,
    /// It was made without a name, and may still be given one.
    pub linkable: bool,
    /// Nobody may open it any more: it is being deleted.
    pub doomed: bool,
    /// It was cut to nothing and is being written anew: written out when it is closed, so that
    /// a crash soon after does not leave it empty (the kernel's `auto_da_alloc`).
    pub flush_on_close: bool,
    /// Where the write ends that is being done now: its pages may be written back before the
    /// size says that they are there.
    pub write_end: u64,
    /// Somebody has asked for its times since they were set (getattr, or a hold on it).
    pub times_seen: bool,
    /// Of a directory: what is wrong with an entry that is left out of the list of its names.
    pub left_out: Option<Box<Ext4Error>>,
    /// It is known to have no "security.capability", since it was last changed.
    pub no_capability: bool,
}

impl InodeState {
    /// Blocks that are reserved for `delayed` ones, given how many a cluster has.
    pub fn reserved_blocks(&self, per_cluster: u32) -> u64 {
        match per_cluster {
            1 => self.delayed.len(),
            n => self.promised.len() * u64::from(n),
        }
    }

    /// Whether a handle or a call keeps it from being deleted.
    pub fn is_in_use(&self) -> bool {
        self.opens > 0 || self.pins > 0
    }

    /// The size that write-back goes by.
    pub fn size_written(&self) -> u64 {
        self.size.max(self.write_end)
    }
}

impl Inode {
    /// An inode whose last change was in transaction `tid` at the latest, and whose data needs
    /// flush `outside` at most.
    pub(crate) fn new(no: InodeNo, raw: RawInode, tid: Tid, outside: u64) -> Self {
        let state = InodeState {
            size: raw.size(),
            raw,
            map: ExtentCache::default(),
            delayed: RangeSet::new(),
            promised: RangeSet::new(),
            moving: RangeSet::new(),
            sync_tid: tid,
            datasync_tid: tid,
            data_in: None,
            opens: 0,
            pins: 0,
            linkable: false,
            doomed: false,
            flush_on_close: false,
            write_end: 0,
            times_seen: false,
            left_out: None,
            no_capability: false,
        };
        let outside = Arc::new(AtomicU64::new(outside));
        Inode { no, data_lock: RwLock::new(()), outside, state: sync::Mutex::new(state) }
    }

    pub(crate) fn state(&self) -> sync::MutexGuard<'_, InodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins to work on it without a handle; false: it is gone, or a rollback has taken it
    /// out of use.
    pub(crate) fn pin(&self) -> bool {
        let mut state = self.state();
        if !state.doomed {
            state.pins += 1;
        }
        !state.doomed
    }

    /// The call has ended. Whether nobody uses the inode any more.
    pub(crate) fn unpin(&self) -> bool {
        let mut state = self.state();
        state.pins -= 1;
        !state.is_in_use()
    }

    /// Nobody uses its handles any more. Whether it is to be deleted: it has no name, and no call
    /// works on it.
    pub(crate) fn lose_handles(&self) -> bool {
        let mut state = self.state();
        let ends = state.raw.links() == 0 && state.pins == 0 && !state.doomed;
        state.doomed |= ends;
        ends
    }

    /// Its type. One that makes no sense was refused when it was read.
    pub(crate) fn kind(&self) -> FileType {
        self.state().raw.file_type().unwrap_or(FileType::Regular)
    }

    /// What `stat` says.
    pub(crate) fn attr(&self, layout: &Layout) -> Attr {
        self.attr_of(&self.state(), layout)
    }

    /// The same, from its state.
    pub(crate) fn attr_of(&self, state: &InodeState, layout: &Layout) -> Attr {
        let block_size = layout.block_size;
        let raw = &state.raw;
        // The kernel says so, lest programs take the file for a hole.
        let inline = raw.is_inline() && raw.file_type() == Some(FileType::Regular);
        let inline_512 = if inline { state.size.div_ceil(512) } else { 0 };
        let reserved = state.reserved_blocks(layout.blocks_per_cluster);
        let delayed_512 = reserved * u64::from(block_size / 512);
        Attr {
            ino: Ino(self.no.0.into()),
            kind: raw.file_type().unwrap_or(FileType::Regular),
            mode: raw.permissions(),
            nlink: raw.links().into(),
            uid: raw.uid(),
            gid: raw.gid(),
            size: state.size,
            blocks_512: raw.sectors(block_size) + delayed_512 + inline_512,
            block_size,
            rdev: raw.rdev(),
            atime: raw.atime(),
            mtime: raw.mtime(),
            ctime: raw.ctime(),
            crtime: raw.crtime().unwrap_or_default(),
            generation: raw.generation(),
        }
    }
}
