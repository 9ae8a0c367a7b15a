//! Inodes and handles by the numbers that callers give.

use std::sync::Arc;
use std::time::Duration;

use steadfast_ext4_format::Ext4Error;
use steadfast_ext4_format::ondisk::InodeNo;
use steadfast_runtime::cpu;
use steadfast_vfs::{Attr, Fh, FsError, Ino, OpenFlags, Result};

use crate::fastcommit::is_inode_number_taken;
use crate::file::delete_if_unused;
use crate::mounted::{Ext4, key};
use crate::state::{Inode, OpenFile};

pub(super) fn number(ino: Ino) -> Result<InodeNo> {
    u32::try_from(ino.0).map(InodeNo).map_err(|_| FsError::NotFound)
}

impl Ext4 {
    pub(super) fn attr(&self, inode: &Inode) -> Attr {
        inode.attr(&self.volume.layout)
    }

    /// For somebody who compares the times later: a change after this gets others.
    pub(super) fn attr_to_keep(&self, inode: &Inode) -> Attr {
        let mut state = inode.state();
        state.times_seen = true;
        inode.attr_of(&state, &self.volume.layout)
    }

    /// The beginning of every call, which takes this much simulated processor time.
    pub(crate) fn enter(&self, cost: Duration) -> Result<()> {
        cpu(cost);
        Ok(self.volume.status.check_up()?)
    }

    /// The inode of a number that a damaged directory or a caller may name: those of the file
    /// system's own are not read.
    pub(super) fn inode(&self, ino: Ino) -> Result<Arc<Inode>> {
        self.check_ordinary(number(ino)?)?;
        self.any_inode(ino)
    }

    /// Also one of the file system's own.
    pub(super) fn any_inode(&self, ino: Ino) -> Result<Arc<Inode>> {
        let no = number(ino)?;
        if no == InodeNo::NONE || no.0 > self.volume.layout.inodes_count {
            return Err(FsError::NotFound);
        }
        self.run(|| self.in_use(no))
    }

    /// The inode with this number, for operations that [`run`](Self::run) runs.
    pub(super) fn in_use(&self, no: InodeNo) -> steadfast_ext4_format::Result<Arc<Inode>> {
        if let Some(inode) = self.parts.inodes.get(no) {
            return Ok(inode);
        }
        let txn = self.parts.look_yielding();
        match txn.inode(no) {
            // What is not in use may hold anything. It is the caller's mistake.
            Err(Ext4Error::Corrupt { .. }) if !is_inode_number_taken(&txn, no)? => {
                Err(FsError::NotFound.into())
            }
            outcome => outcome,
        }
    }

    /// A number that a caller gives: one of the file system's own inodes, or one beyond all, is the
    /// caller's mistake, and no damage.
    pub(super) fn given(&self, ino: Ino) -> Result<InodeNo> {
        let no = number(ino).map_err(|_| FsError::Stale)?;
        if no == InodeNo::NONE || no.0 > self.volume.layout.inodes_count {
            return Err(FsError::Stale);
        }
        self.check_ordinary(no).map(|()| no)
    }

    /// As [`run`](Self::run), for an operation on inodes whose numbers a caller gives
    /// ([`given`](Self::given)). What is not in use may hold anything: that it cannot be read is
    /// the caller's mistake, and no damage.
    pub(super) fn run_on<T>(
        &self,
        given: &[Ino],
        mut operation: impl FnMut() -> steadfast_ext4_format::Result<T>,
    ) -> Result<T> {
        self.run(|| {
            let outcome = operation();
            if matches!(outcome, Err(Ext4Error::Corrupt { .. })) {
                let txn = self.parts.look_yielding();
                for ino in given {
                    if !is_inode_number_taken(&txn, self.given(*ino)?)? {
                        return Err(FsError::NotFound.into());
                    }
                }
            }
            outcome
        })
    }

    /// Refuses to touch the inodes that belong to the file system itself.
    pub(super) fn check_ordinary(&self, no: InodeNo) -> Result<()> {
        if self.volume.layout.is_reserved(no) {
            return Err(FsError::NotPermitted { what: "an inode of the file system itself" });
        }
        Ok(())
    }

    /// Does `work` on an inode that no handle keeps. While it lasts the inode is in use: it may
    /// lose its names, but its number cannot become another file's under the work's hands.
    ///
    /// A rollback does not wait for the work, which takes the gate by
    /// [`run_pinned`](Self::run_pinned). Work that a rollback has overtaken is done again, whole,
    /// on the same file as it is now.
    ///
    /// # Errors
    /// Not found: the file is gone, or a rollback has taken it back. Those of the work.
    pub(super) fn pinned<T>(
        &self,
        mut inode: Arc<Inode>,
        work: impl Fn(&Arc<Inode>) -> Result<T>,
    ) -> Result<T> {
        loop {
            if inode.pin() {
                let done = work(&inode);
                let unpinned = self.unpin(&inode);
                let retired = inode.state().doomed;
                if !retired || !matches!(done, Err(FsError::Stale)) {
                    return done.and_then(|done| unpinned.map(|()| done));
                }
            }
            inode = self.found_again(&inode)?;
        }
    }

    /// As [`run`](Self::run), for a part of the work on a pinned inode.
    ///
    /// # Errors
    /// Stale: a rollback was faster.
    pub(super) fn run_pinned<T>(
        &self,
        inode: &Inode,
        mut operation: impl FnMut() -> steadfast_ext4_format::Result<T>,
    ) -> Result<T> {
        self.run(|| {
            let retired = inode.state().doomed;
            if retired { Err(FsError::Stale.into()) } else { operation() }
        })
    }

    fn unpin(&self, inode: &Inode) -> Result<()> {
        // In a group that has failed the inode goes back as it was.
        if !inode.unpin() || self.group_failure().is_some() {
            return Ok(());
        }
        self.run(|| delete_if_unused(self, inode))
    }

    /// What a rollback has left of a file that was found before it.
    pub(super) fn found_again(&self, before: &Arc<Inode>) -> Result<Arc<Inode>> {
        let now = self.any_inode(Ino(before.no.0.into()))?;
        let generation = |inode: &Inode| inode.state().raw.generation();
        // The number may be that of a file that was removed and is there again.
        let same = !Arc::ptr_eq(before, &now) && generation(before) == generation(&now);
        if same { Ok(now) } else { Err(FsError::NotFound) }
    }

    /// An inode has changed, not by a write through a handle. With data=transact.
    pub(super) fn changed_beside(&self, inode: &Arc<Inode>) {
        if self.transact.is_some() {
            self.handles.note_change(inode);
        }
    }

    pub(super) fn add_handle(&self, inode: Arc<Inode>, flags: OpenFlags) -> Result<Fh> {
        let errors = self.pages.error_cursor(key(inode.no));
        Ok(self.handles.add(inode, flags, errors)?)
    }

    pub(super) fn file(&self, fh: Fh, needs: OpenFlags) -> Result<Arc<OpenFile>> {
        let file = self.handles.get(fh)?;
        if file.flags.contains(needs) { Ok(file) } else { Err(FsError::BadHandle) }
    }
}
