//! Inodes that a front end holds by their numbers, and their deletion once it has let go of them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use steadfast_ext4_format::Ext4Error;
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_vfs::{FileSystem, FsError, Shutdown};

use crate::file::{delete, delete_if_unused};
use crate::mounted::Ext4;

impl Ext4 {
    pub(super) fn start_deleting(&self) {
        if self.parts.holds.needs_task() {
            let fs = self.me.clone();
            self.parts.holds.start(move |no| {
                let fs = fs.upgrade()?;
                let deleted = catch_unwind(AssertUnwindSafe(|| fs.delete_due(no)));
                Some(deleted.unwrap_or_else(|panic| {
                    // As a panic below a mount's request: nobody goes on with what it has left.
                    // OK to ignore: going down at once does not fail.
                    let _ = fs.shutdown(Shutdown::Now);
                    resume_unwind(panic)
                }))
            });
        }
    }

    /// Deletes an inode that nobody holds any more, unless somebody uses it again. False: it is to
    /// be tried again when there is more room, or when a group has ended. What fails otherwise is
    /// left to the next mount, as an orphan.
    fn delete_due(&self, no: InodeNo) -> bool {
        // Not as other operations: one that finds no space waits for this one.
        let _shared = self.transact.as_ref().map(|transact| transact.gate.read());
        if self.volume.status.is_down() {
            return true;
        }
        if self.group_failure().is_some() {
            // It goes back as it was.
            return false;
        }
        let deleted = self.outcome(self.parts.with_blocks(|| match self.in_use(no) {
            Err(Ext4Error::Fs(FsError::NotFound)) => Ok(()),
            inode => delete_if_unused(self, &*inode?),
        }));
        self.note_change();
        !matches!(deleted, Err(FsError::NoSpace { .. }))
    }

    /// The end of all holds, and of all handles, before an unmount: what they have kept is deleted.
    /// A kernel that unmounts sends neither all that it forgets nor each close. What fails is left
    /// to the next mount.
    pub(crate) fn end_holds(&self) {
        for no in self.parts.holds.end() {
            self.delete_due(no);
        }
        let left = self.parts.lock_meta().orphans.all();
        for no in left {
            // OK to ignore, as said.
            let _ = self.run(|| match self.in_use(no)? {
                inode if inode.lose_handles() => {
                    // It may be tried again, with more room.
                    delete(self, &inode).inspect_err(|_| inode.state().doomed = false)
                }
                _ => Ok(()),
            });
        }
    }
}
