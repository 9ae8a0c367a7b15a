//! The label of a mounted file system (FS_IOC_GETFSLABEL, FS_IOC_SETFSLABEL).

use steadfast_vfs::{FsError, Result};

use crate::mounted::Ext4;

impl Ext4 {
    /// The label, without its padding.
    pub(super) fn label_bytes(&self) -> Vec<u8> {
        let txn = self.parts.look();
        let padded = txn.superblock().volume_name;
        padded.split(|b| *b == 0).next().unwrap_or_default().to_vec()
    }

    /// Changes it, durably and in its place, where other programs look for it while the file system
    /// is mounted (with data=transact: with the next point). Backups of the superblock keep the old
    /// one.
    pub(super) fn change_label(&self, label: &[u8]) -> Result<()> {
        let mut padded = [0; 16];
        let Some(place) = padded.get_mut(..label.len()) else {
            return Err(FsError::Invalid { what: "a label of more than 16 bytes" });
        };
        place.copy_from_slice(label);
        self.run(|| {
            let mut txn = self.parts.begin()?;
            txn.superblock_mut().volume_name = padded;
            let tid = txn.finish()?;
            if self.parts.transacts() {
                return Ok(());
            }
            self.parts.log.commit(tid)?;
            self.parts.log.checkpoint_all()
        })
    }
}
