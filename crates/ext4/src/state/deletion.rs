//! The deletion of an inode in the transaction of its final unlink.

use std::sync::Arc;

use steadfast_ext4_format::ondisk::RawInode;

use super::Inode;

/// An inode that nobody may open any more because a transaction deletes it. Unless that is
/// `done`, the inode is as before when this is dropped.
#[must_use = "dropped, it takes the end back"]
pub(crate) struct Deletion {
    inode: Option<Arc<Inode>>,
}

impl Deletion {
    /// Lets nobody open the inode any more, if nobody has it open, no data of it waits for a
    /// place, and `may` agrees. The caller has the metadata lock.
    pub fn begin(inode: &Arc<Inode>, may: impl FnOnce(&RawInode) -> bool) -> Option<Deletion> {
        let mut state = inode.state();
        let waits = !state.delayed.is_empty() || !state.moving.is_empty();
        if state.is_in_use() || state.doomed || waits || !may(&state.raw) {
            return None;
        }
        state.doomed = true;
        Some(Deletion { inode: Some(Arc::clone(inode)) })
    }

    /// The transaction is finished.
    pub fn done(mut self) {
        self.inode = None;
    }
}

impl Drop for Deletion {
    fn drop(&mut self) {
        if let Some(inode) = &self.inode {
            inode.state().doomed = false;
        }
    }
}
