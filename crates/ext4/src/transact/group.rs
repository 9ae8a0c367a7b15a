//! Atomic groups: operations that become durable together or not at all.
//!
//! A group is the time between two points in which no other point is made. The volume has one at a
//! time, and what others do meanwhile is part of it. A group that runs out of space is *spent*:
//! nothing more is changed, and its end takes it back.
//!
//! A group that must go back while a file is open cannot, and has *failed*: the close of the last
//! file takes it back. Until then nothing is changed, and whoever asks for a promise (fsync, sync,
//! close, a point) gets the failure.

use steadfast_journal::Journal;
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
            return Err(self.group_is_open());
        }
        // What came between the first point and the gate.
        let ended = self.end_transaction(transact, journal)?;
        self.await_commit(transact, journal, ended)?;
        transact.state().group_open = true;
        Ok(())
    }

    /// Ends the group: with a point, or back to where it began. A group that is spent, or whose
    /// point fails, goes back in any case, which is then the error. While a file is open it cannot
    /// go back: it has failed, and does so when the last file is closed
    /// ([`settle_group`](Self::settle_group)).
    ///
    /// # Errors
    /// Invalid: no group is open. Busy: it must go back and files are open. No space: it was
    /// spent.
    pub(crate) fn close_group(&self, commit: bool) -> Result<()> {
        let (transact, journal) = self.journal_of_points()?;
        let exclusive = transact.gate.write();
        if !transact.state().group_open {
            return Err(FsError::Invalid { what: "no atomic group is open" });
        }
        let failed = transact.state().group_failed.clone();
        let mut outcome = match failed {
            Some(why) => Err(why),
            None if self.is_spent() => Err(did_not_fit()),
            None => Ok(()),
        };
        if commit && outcome.is_ok() {
            match self.end_transaction(transact, journal) {
                Ok(ended) => {
                    transact.state().group_open = false;
                    drop(exclusive);
                    return self.await_commit(transact, journal, ended);
                }
                Err(e) => outcome = Err(e),
            }
        }
        // Before it is seen whether a file is open: whoever closes the last one looks at this.
        let why = outcome.clone().err();
        transact.state().group_failed.get_or_insert_with(|| gone(why.as_ref()));
        self.set_spent(true);
        self.take_group_back(transact, journal).map_err(|e| match e {
            FsError::Busy { .. } => FsError::Busy {
                what: "files are open: what has failed is taken back when the last one is closed",
            },
            e => e,
        })?;
        if commit { outcome } else { Ok(()) }
    }

    /// A file has been closed: a group that has failed goes back if it was the last that was open.
    ///
    /// # Errors
    /// As for a rollback, but for Busy.
    pub(crate) fn settle_group(&self) -> Result<()> {
        let Ok((transact, journal)) = self.journal_of_points() else { return Ok(()) };
        if transact.state().group_failed.is_none() {
            return Ok(());
        }
        let _exclusive = transact.gate.write();
        if transact.state().group_failed.is_none() {
            return Ok(());
        }
        match self.take_group_back(transact, journal) {
            Err(FsError::Busy { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    /// Goes back to where the group began. The caller has the gate.
    pub(super) fn take_group_back(&self, transact: &Transact, journal: &Journal) -> Result<()> {
        self.discard(transact, journal, false)?;
        self.forget_group(transact);
        Ok(())
    }

    /// There is no group any more.
    pub(super) fn forget_group(&self, transact: &Transact) {
        let mut state = transact.state();
        state.group_open = false;
        state.group_failed = None;
        drop(state);
        self.set_spent(false);
    }

    /// A point or another group cannot be: a group is open, or has failed.
    pub(super) fn group_is_open(&self) -> FsError {
        self.group_failure().unwrap_or(FsError::Busy { what: "an atomic group is open" })
    }

    /// Why nothing of the open group will be kept; `None` if it may be, or there is no group.
    pub(crate) fn group_failure(&self) -> Option<FsError> {
        let transact = self.transact.as_ref()?;
        let state = transact.state();
        if !state.group_open {
            return None;
        }
        state.group_failed.clone().or_else(|| self.is_spent().then(did_not_fit))
    }

    /// An operation found no space: if a group is open, it has failed as a whole.
    pub(super) fn spend_group(&self, transact: &Transact) {
        if transact.state().group_open {
            self.set_spent(true);
        }
    }

    fn is_spent(&self) -> bool {
        self.parts.allocator.fresh.as_ref().is_some_and(|fresh| fresh.is_spent())
    }

    fn set_spent(&self, spent: bool) {
        if let Some(fresh) = &self.parts.allocator.fresh {
            fresh.set_spent(spent);
        }
    }
}

fn did_not_fit() -> FsError {
    FsError::NoSpace { what: "the atomic group did not fit and was taken back" }
}

/// What is said of everything in a group that has failed and cannot go back yet.
fn gone(why: Option<&FsError>) -> FsError {
    match why {
        Some(no_space @ FsError::NoSpace { .. }) => no_space.clone(),
        why => {
            let why = why.map(|e| format!(" ({e})")).unwrap_or_default();
            let what = format!(
                "the atomic group has failed{why}: nothing of it is kept, and it is taken back \
                 when the last open file is closed"
            );
            FsError::Io { what }
        }
    }
}
