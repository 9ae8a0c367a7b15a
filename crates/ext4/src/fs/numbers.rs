//! Inodes by number alone, as file handles keep them (open_by_handle_at(2), NFS): the number may
//! be anything, and what had it may be gone. The kernel's ext4_nfs_get_inode.

use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo};
use steadfast_vfs::{Attr, FsError, Ino, Result};

use crate::fastcommit::is_inode_number_taken;
use crate::mounted::Ext4;

impl Ext4 {
    /// Attributes of a file or directory that has a name; ESTALE for all else.
    pub(super) fn named_inode(&self, ino: Ino) -> Result<Attr> {
        let no = u32::try_from(ino.0).map(InodeNo).map_err(|_| FsError::Stale)?;
        let layout = &self.volume.layout;
        let is_possible = no != InodeNo::NONE && no.0 <= layout.inodes_count;
        if !is_possible || layout.is_reserved(no) {
            return Err(FsError::Stale);
        }
        // What is not in use may hold anything: it is not read.
        let is_taken = self.run(|| is_inode_number_taken(&self.parts.look_yielding(), no))?;
        if !is_taken {
            return Err(FsError::Stale);
        }
        let inode = self.inode(ino)?;
        let (links, flags) = {
            let state = inode.state();
            (state.raw.links(), state.raw.flags())
        };
        if links == 0 || flags.contains(InodeFlags::EA_INODE) {
            return Err(FsError::Stale);
        }
        Ok(self.attr(&inode))
    }
}
