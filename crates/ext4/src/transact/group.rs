//! Atomic groups: operations that become durable together or not at all.
//!
//! A group is the time between two points in which no other point is made. The volume has one at a
//! time, and what others do meanwhile is part of it. A group that runs out of space is *spent*:
//! nothing more is changed, and its end takes it back.

use steadfast_vfs::{FsError, Result};

use crate::mounted::Ext4;
use crate::state::Transact;

impl Ext4 {
    /// Begins a group, with a point: to this state a group that fails goes back.
    ///
    /// # Errors
    /// Busy: there is one. As for a point.
    pub(crate) fn open_group(&self) -> Result<()> {
        let (transact, journal) = self.journal_of_points()?;
        self.make_point()?;
        let _exclusive = transact.gate.write();
        if transact.state().group_open {
            return Err(FsError::Busy { what: "an atomic group is open" });
        }
        // What came between the first point and the gate.
        let ended = self.end_transaction(transact, journal)?;
        self.await_commit(transact, journal, ended)?;
        transact.state().group_open = true;
        Ok(())
    }

    /// Ends the group: with a point, or back to where it began. A group that is spent, or whose
    /// point fails, goes back in any case, which is then the error.
    ///
    /// # Errors
    /// Invalid: no group is open. Busy: it must go back and files are open; it stays open. No
    /// space: it was spent.
    pub(crate) fn close_group(&self, commit: bool) -> Result<()> {
        let (transact, journal) = self.journal_of_points()?;
        let exclusive = transact.gate.write();
        if !transact.state().group_open {
            return Err(FsError::Invalid { what: "no atomic group is open" });
        }
        let spent = self.parts.allocator.fresh.as_ref().is_some_and(|f| f.is_spent());
        let mut outcome = if spent {
            Err(FsError::NoSpace { what: "the atomic group did not fit and was taken back" })
        } else {
            Ok(())
        };
        if commit && !spent {
            match self.end_transaction(transact, journal) {
                Ok(ended) => {
                    transact.state().group_open = false;
                    drop(exclusive);
                    return self.await_commit(transact, journal, ended);
                }
                Err(e) => outcome = Err(e),
            }
        }
        self.discard(transact, journal, false)?;
        transact.state().group_open = false;
        if let Some(fresh) = &self.parts.allocator.fresh {
            fresh.set_spent(false);
        }
        if commit { outcome } else { Ok(()) }
    }

    /// An operation found no space: if a group is open, it has failed as a whole.
    pub(super) fn spend_group(&self, transact: &Transact) {
        if let Some(fresh) = &self.parts.allocator.fresh
            && transact.state().group_open
        {
            fresh.set_spent(true);
        }
    }
}
