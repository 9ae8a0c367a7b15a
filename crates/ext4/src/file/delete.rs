//! The end of an inode without links.

use crate::error::Result;
use crate::fs::{Ext4, key};
use crate::inode::Inode;
use crate::xattr::Unused;

impl Ext4 {
    /// Deletes the inode if it has no links and nobody has it open; else whoever closes it last
    /// does.
    pub(crate) fn delete_if_unused(&self, inode: &Inode) -> Result<()> {
        {
            let mut state = inode.state();
            if state.raw.links() > 0 || state.opens > 0 || state.doomed {
                return Ok(());
            }
            state.doomed = true;
        }
        // What could not be done for lack of room in the log is done at another try.
        self.delete(inode).inspect_err(|_| inode.state().doomed = false)
    }

    /// Frees everything that an orphan without links has, and the inode.
    pub(crate) fn delete(&self, inode: &Inode) -> Result<()> {
        self.pages.forget(key(inode.no));
        self.unreserve(inode, 0, u64::MAX);
        loop {
            if let Some(unused) = self.volume.with_blocks(|| self.delete_step(inode))? {
                return self.delete_values(unused);
            }
        }
    }

    /// Frees as much as one transaction may. Once the inode is gone: what it leaves to be deleted.
    fn delete_step(&self, inode: &Inode) -> Result<Option<Unused>> {
        let mut txn = self.volume.begin_promised()?.yielding();
        txn.meta.alloc.windows.remove(inode.no);
        let mut unused = None;
        if self.free_blocks_from(&mut txn, inode, 0)? {
            unused = Some(txn.release_xattrs(inode.no)?);
            txn.orphan_remove(inode.no)?;
            txn.delete_inode(inode.no)?;
        }
        txn.finish()?;
        Ok(unused)
    }

    /// Deletes the inodes of attributes' values that nobody uses any more.
    pub(crate) fn delete_values(&self, unused: Unused) -> Result<()> {
        unused.0.iter().try_for_each(|inode| self.delete_if_unused(inode))
    }
}
