//! Times of access.

use super::Ext4;
use crate::inode::Inode;
use crate::mount::AccessTimes;
use crate::ondisk::{InodeFlags, RawInode};
use steadfast_vfs::{FileType, Timestamp};

/// With `relatime`, a time of access older than this is set in any case, in seconds.
const DAY: i64 = 24 * 60 * 60;

impl Ext4 {
    /// The inode has been read: sets its time of access as the mount options want it. That this
    /// fails is no reason for the reading to fail, as in the kernel.
    pub(crate) fn accessed(&self, inode: &Inode) {
        let now = self.volume.clock.tick();
        if !self.access_counts(&inode.state().raw, now) || self.volume.check_writable().is_err() {
            return;
        }
        let set = || {
            let mut txn = self.volume.begin()?;
            let raw = txn.raw_inode(inode.no)?;
            if raw.links() == 0 || !self.access_counts(&raw, now) {
                return Ok(());
            }
            txn.modify_inode(inode.no, |raw| raw.set_atime(now))?;
            txn.finish().map(drop)
        };
        let _: crate::Result<()> = set();
    }

    fn access_counts(&self, raw: &RawInode, now: Timestamp) -> bool {
        let directory = raw.file_type() == Some(FileType::Directory);
        if raw.flags().contains(InodeFlags::NO_ATIME)
            || (directory && self.options.no_directory_access_times)
            || raw.atime() == now
        {
            return false;
        }
        match self.options.access_times {
            AccessTimes::Never => false,
            AccessTimes::Always => true,
            AccessTimes::Relative => {
                let last = raw.atime();
                last <= raw.mtime() || last <= raw.ctime() || now.secs - last.secs >= DAY
            }
        }
    }
}
