//! Project ids: groups of files across owners, for quota.

use steadfast_ext4_format::ondisk::RoCompat;
use steadfast_vfs::{FsError, Ino};

use crate::mounted::Ext4;

impl Ext4 {
    /// The inode's project; 0 where the file system keeps none.
    ///
    /// # Errors
    /// No such inode.
    pub fn project(&self, ino: Ino) -> steadfast_vfs::Result<u32> {
        Ok(self.inode(ino)?.state().raw.project())
    }

    /// Moves the inode to another project (`FS_IOC_FSSETXATTR`). New files and directories are of
    /// the project of their directory if that has the project-inherit flag.
    ///
    /// # Errors
    /// Unsupported: without the `project` feature, or room in the inode. Quota exceeded.
    pub fn set_project(&self, ino: Ino, project: u32) -> steadfast_vfs::Result<()> {
        let inode = self.inode(ino)?;
        self.check_ordinary(inode.no)?;
        let feature = self.volume.layout.features.ro_compat.contains(RoCompat::PROJECT);
        self.pinned(inode, |inode| {
            if !feature || !inode.state().raw.has_project() {
                let what = "project ids: the file system, or this inode, has no room for them";
                return Err(FsError::Unsupported { what: what.into() });
            }
            self.run_pinned(inode, || {
                let mut txn = self.parts.begin()?;
                txn.modify_inode(inode.no, |raw| raw.set_project(project))?;
                txn.touch(inode.no, false)?;
                txn.finish().map(drop)
            })
        })
    }
}
