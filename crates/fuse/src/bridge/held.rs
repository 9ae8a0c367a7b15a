//! Nodes that the kernel knows. Each entry that it is given counts, until it forgets that many: so
//! long it may ask for the inode by its number, whether that has a name or not. The file system
//! counts with it, as holds.

use steadfast_vfs::{Attr, FsError, Ino, Result};

use super::{Bridge, NodeId};

/// How often a name is looked up that is removed each time before its inode is held: by others than
/// the kernel, which does one after the other.
const TRIES: u32 = 4;

impl Bridge {
    /// The inode of an entry that the kernel is given next.
    ///
    /// # Errors
    /// Not found, stale: the number is free meanwhile, or another file's.
    pub(super) fn held(&self, found: Attr) -> Result<Attr> {
        let now = self.fs.hold(found.ino)?;
        if now.generation == found.generation {
            // A change after these gets other times; one after `found` need not.
            return Ok(now);
        }
        self.let_go(found.ino);
        Err(FsError::Stale)
    }

    /// As [`held`](Self::held), for what is looked up.
    pub(super) fn find_held(&self, find: impl Fn() -> Result<Attr>) -> Result<Attr> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.held(find()?) {
                Err(FsError::NotFound | FsError::Stale) if tries < TRIES => {}
                outcome => return outcome,
            }
        }
    }

    /// The kernel has not been given the entry.
    pub(super) fn let_go(&self, ino: Ino) {
        self.fs.let_go(ino, 1);
    }

    /// The kernel has forgotten so many entries of a node.
    pub(super) fn forget_node(&self, node: NodeId, entries: u64) {
        self.opened.remove_if(node.0, || self.fs.let_go(self.ino(node), entries));
    }
}
