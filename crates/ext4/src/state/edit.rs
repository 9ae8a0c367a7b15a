//! What a transaction changes of an inode.

use std::sync::Arc;

use steadfast_ext4_format::ondisk::{InodeFlags, RawInode};
use steadfast_journal::Tid;
use steadfast_vfs::FileType;

use super::{Inode, InodeCache, MapChange};

/// An inode that a transaction changes.
pub(crate) struct InodeEdit {
    pub inode: Arc<Inode>,
    pub raw: RawInode,
    /// fdatasync must wait for this transaction.
    pub data_changed: bool,
    pub map_changes: Vec<MapChange>,
    /// The inode is made or deleted by this transaction.
    pub life: Life,
}

/// Whether a transaction begins or ends an inode's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Begins,
    GoesOn,
    Ends,
}

impl InodeEdit {
    pub fn new(inode: Arc<Inode>, life: Life) -> Self {
        let raw = inode.state().raw.clone();
        InodeEdit { inode, raw, data_changed: false, map_changes: Vec::new(), life }
    }

    /// Makes the transaction's copy the one that all see.
    /// `size_is_data`: fdatasync waits for a new size.
    pub fn publish(self, cache: &InodeCache, tid: Tid, size_is_data: bool) {
        match self.life {
            Life::Begins => cache.insert(Arc::clone(&self.inode)),
            Life::GoesOn => {}
            Life::Ends => cache.remove(self.inode.no),
        }
        let mut state = self.inode.state();
        state.sync_tid = tid;
        let data_changed = self.data_changed || self.raw.size() != state.raw.size();
        if self.data_changed || size_is_data && data_changed {
            state.datasync_tid = tid;
        }
        if data_changed || self.life == Life::Begins {
            state.data_in = Some(tid);
        }
        if self.raw.file_type() != Some(FileType::Regular)
            || self.raw.flags().contains(InodeFlags::EA_INODE)
        {
            state.size = self.raw.size();
        }
        if self.raw.ctime() != state.raw.ctime() {
            state.times_seen = false;
        }
        state.raw = self.raw;
        state.no_capability = false;
        self.map_changes.into_iter().for_each(|change| state.map.apply(change));
    }
}
