//! Orphans at mount: who they are, and what becomes of them.

use steadfast_ext4_format::{Ext4Error, Result};

use crate::mounted::Ext4;

impl Ext4 {
    /// Finishes what a crash interrupted: deletes orphans without links, cuts the others to
    /// their size.
    pub(crate) fn process_orphans(&self) -> Result<()> {
        let all = self.volume.look().orphans().all();
        for no in all {
            let inode = self.volume.look().inode(no).map_err(|e| match e {
                Ext4Error::Fs(_) => {
                    let what = "an orphan that is not in use: let e2fsck repair this";
                    Ext4Error::corrupt(what, format!("inode {no}"))
                }
                other => other,
            })?;
            if inode.state().raw.links() == 0 {
                self.delete(&inode)?;
            } else {
                self.cut_to_size(&inode)?;
            }
        }
        Ok(())
    }
}
