//! Going back to the last transaction point.

use std::sync::atomic::Ordering;

use steadfast_ext4_format::Ext4Error;
use steadfast_journal::Journal;
use steadfast_vfs::{FsError, Result, TransactMask};

use crate::file::{CALL, process_orphans};
use crate::mounted::Ext4;
use crate::state::{RolledBack, Transact};

impl Ext4 {
    /// Goes back to the last transaction point: everything since then is as if it had never
    /// been. Says to which point it went, and what that took away.
    ///
    /// # Errors
    /// Unsupported: not with data=transact. Busy: files are open, or a group is. The journal's
    /// failure, if it has failed.
    pub fn roll_back(&self) -> Result<RolledBack> {
        self.enter(CALL)?;
        let (transact, journal) = self.journal_of_points()?;
        let _exclusive = transact.gate.write();
        let state = transact.state();
        if state.group_open && state.group_failed.is_none() {
            return Err(FsError::Busy { what: "an atomic group is open: end it" });
        }
        drop(state);
        let taken = self.since_point().unwrap_or_default();
        self.take_group_back(transact, journal)?;
        let point = transact.state().last;
        Ok(RolledBack { point, taken })
    }

    /// Throws away everything since the last point. The caller has the gate. With `open_too`
    /// handles that are open become useless instead of being in the way.
    pub(super) fn discard(
        &self,
        transact: &Transact,
        journal: &Journal,
        open_too: bool,
    ) -> Result<()> {
        if let Some(e) = journal.aborted() {
            return Err(Ext4Error::from(e).into());
        }
        // From here on nobody finds an inode of the state that goes. Calls that wait for the gate
        // with one find it anew (`pinned`).
        if !self.parts.inodes.retire(open_too) {
            return Err(FsError::Busy { what: "files are open" });
        }
        self.pages.forget_all();
        journal.discard_running().map_err(Ext4Error::from)?;
        let reloaded = self.parts.reload(self.options.metadata_cache_blocks);
        if let Err(e) = reloaded {
            self.volume.status.set_read_only(format!("after a rollback: {e}"));
            return Err(e.into());
        }
        {
            let mut state = transact.state();
            state.failed = None;
            state.errors = self.pages.any_error_cursor();
        }
        transact.rollbacks.fetch_add(1, Ordering::Release);
        // Files that were open without a name at the point are so no longer.
        Ok(process_orphans(self)?)
    }

    /// The last thing before an unmount: a point if the mask has UMOUNT, else back to the last
    /// one. A failed point goes back as well, and the failure is returned.
    pub(crate) fn stop_transacting(&self) -> Result<()> {
        let Ok((transact, journal)) = self.journal_of_points() else { return Ok(()) };
        transact.timer.end();
        // Also with a group that nobody has ended: that it goes is no success then.
        let keep = transact.policy().mask.intersects(TransactMask::UMOUNT);
        let outcome = if keep { self.make_point() } else { Ok(()) };
        if keep && outcome.is_ok() {
            return Ok(());
        }
        let _exclusive = transact.gate.write();
        self.forget_group(transact);
        let since = self.since_point().filter(|since| !since.is_nothing());
        let discarded = self.discard(transact, journal, true);
        if discarded.is_ok() {
            transact.state().discarded = since;
        }
        outcome.and(discarded)
    }
}
