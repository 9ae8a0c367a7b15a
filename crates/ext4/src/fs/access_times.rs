//! Times of access.

use std::sync::atomic::Ordering;

use steadfast_ext4_format::ondisk::{InodeFlags, RawInode};
use steadfast_vfs::{FileType, Timestamp};

use crate::mounted::Ext4;
use crate::options::AccessTimes;
use crate::state::Inode;

/// With `relatime`, a time of access older than this is set in any case, in seconds.
const DAY: i64 = 24 * 60 * 60;

impl Ext4 {
    /// Changes `noatime`, `relatime` or `strictatime`, and `nodiratime`, from now on.
    pub fn set_access_times(&self, times: AccessTimes, no_directories: bool) {
        self.access_rule.times.store(times as u8, Ordering::Relaxed);
        self.access_rule.no_directories.store(no_directories, Ordering::Relaxed);
    }

    /// The inode has been read: sets its time of access as the mount options want it. That this
    /// fails is no reason for the reading to fail, as in the kernel.
    pub(crate) fn accessed(&self, inode: &Inode) {
        let now = self.volume.stamps.tick();
        if !self.access_counts(&inode.state().raw, now) || self.parts.check_writable().is_err() {
            return;
        }
        let set = || {
            // A rollback forgets what is in memory: no change may come from before it.
            let _shared = self.transact.as_ref().map(|transact| transact.gate.read());
            let retired = inode.state().doomed;
            if retired {
                return Ok(());
            }
            let mut txn = self.parts.begin()?;
            let raw = txn.raw_inode(inode.no)?;
            if raw.links() == 0 || !self.access_counts(&raw, now) {
                return Ok(());
            }
            txn.modify_inode(inode.no, |raw| raw.set_atime(now))?;
            txn.finish().map(drop)
        };
        let _: steadfast_ext4_format::Result<()> = set();
    }

    fn access_counts(&self, raw: &RawInode, now: Timestamp) -> bool {
        let directory = raw.file_type() == Some(FileType::Directory);
        if raw.flags().contains(InodeFlags::NO_ATIME)
            || (directory && self.access_rule.no_directories.load(Ordering::Relaxed))
            || raw.atime() == now
        {
            return false;
        }
        match self.access_rule.times() {
            AccessTimes::Never => false,
            AccessTimes::Always => true,
            AccessTimes::Relative => {
                let last = raw.atime();
                last <= raw.mtime() || last <= raw.ctime() || now.secs - last.secs >= DAY
            }
        }
    }
}
