//! Making a transaction point.

use std::sync::atomic::Ordering;

use steadfast_block::Completion;
use steadfast_ext4_format::Ext4Error;
use steadfast_journal::{Journal, Tid, Update};
use steadfast_vfs::{FsError, Result};

use crate::mounted::Ext4;
use crate::state::{LastPoint, Transact, WriteError};

impl Ext4 {
    /// Makes everything that is there now, data and metadata, what any later power cut leaves at
    /// the least. Does nothing if nothing has changed since the last point.
    ///
    /// # Errors
    /// Busy: a group is open. Why it has failed, if it has. The first failure of a write-back or of
    /// the journal, for ever.
    pub(crate) fn make_point(&self) -> Result<()> {
        let (transact, journal) = self.journal_of_points()?;
        if let Some(e) = transact.state().failed.clone() {
            return Err(e);
        }
        self.parts.holds.settle_due();
        if !self.is_changed(journal) {
            if transact.state().group_open {
                return Err(self.group_is_open());
            }
            self.check_written(transact, Ok(()))?;
            return self.await_commit(transact, journal, last_ended(journal));
        }
        // Most of the data goes out while others work. Errors are found below.
        let _ = self.pages.flush_all();
        let ended = {
            let _exclusive = transact.gate.write();
            if transact.state().group_open {
                return Err(self.group_is_open());
            }
            self.end_transaction(transact, journal)?
        };
        self.await_commit(transact, journal, ended)?;
        // The log has room again.
        self.parts.holds.retry();
        Ok(())
    }

    pub(super) fn journal_of_points(&self) -> Result<(&Transact, &Journal)> {
        let transact = self.transacting()?;
        let journal = self.journal().ok_or_else(|| FsError::ReadOnly {
            why: self.read_only_because().unwrap_or_default(),
        })?;
        Ok((transact, journal))
    }

    /// Whether there is anything that the last point does not hold.
    pub(super) fn is_changed(&self, journal: &Journal) -> bool {
        journal.running_blocks().0 > 0 || self.pages.dirty_bytes() > 0
    }

    /// Writes out the page cache and ends the journal's transaction. The caller has the gate.
    /// Returns the transaction that the point must wait for.
    pub(super) fn end_transaction(&self, transact: &Transact, journal: &Journal) -> Result<Tid> {
        let written = self.pages.flush_all();
        self.check_written(transact, written)?;
        if let Some(e) = journal.aborted() {
            return Err(Ext4Error::from(e).into());
        }
        let outside = self.parts.outside.load(Ordering::SeqCst);
        if journal.running_blocks().0 > 0 && !journal.flushes().covers(outside) {
            // Data that was written over fresh blocks is in no update's list. The commit flushes
            // the device that it is on if there is anything on any list.
            let wait_for = vec![Completion::ready(Ok(bytes::Bytes::new()))];
            let on_device = Update { wait_for, ..Update::default() };
            journal.submit(on_device).map_err(Ext4Error::from)?;
        }
        journal.close_running().map_err(Ext4Error::from)?;
        if let Some(fresh) = &self.parts.allocator.fresh {
            fresh.clear();
        }
        let ended = last_ended(journal);
        transact.state().last =
            Some(LastPoint { transaction: ended, at: self.volume.clock.seconds() });
        Ok(ended)
    }

    /// A mount that has changed nothing makes no point, but has one to go back to.
    pub(super) fn note_point_of_mount(&self, transact: &Transact) {
        let Some(journal) = self.journal() else { return };
        let now = LastPoint { transaction: last_ended(journal), at: self.volume.clock.seconds() };
        transact.state().last.get_or_insert(now);
    }

    /// Refuses when data has been lost on its way to the device, and from then on.
    fn check_written(&self, transact: &Transact, written: Result<()>) -> Result<()> {
        let mut state = transact.state();
        let failed_before = self.pages.any_error_since(&mut state.errors);
        if let Some(e) = state.failed.clone() {
            return Err(e);
        }
        match written.and(failed_before) {
            Ok(()) => Ok(()),
            Err(e) => {
                let error = state.failed.insert(lost(&e)).clone();
                drop(state);
                self.volume.status.notify(&WriteError::NoPoints { error: &error });
                Err(error)
            }
        }
    }

    /// Why there can be no further transaction point; `None` if there can.
    pub fn points_fail_because(&self) -> Option<FsError> {
        let transact = self.transact.as_ref()?;
        let state = transact.state();
        let found = || self.pages.has_error_since(&state.errors).map(|e| lost(&e));
        state.failed.clone().or_else(found)
    }

    /// Waits until the point is durable.
    pub(super) fn await_commit(
        &self,
        transact: &Transact,
        journal: &Journal,
        tid: Tid,
    ) -> Result<()> {
        journal.commit(tid).map_err(|e| {
            let e = FsError::from(Ext4Error::from(e));
            transact.state().failed.get_or_insert(e).clone()
        })
    }
}

/// The transaction before the running one: nothing joins it any more.
fn last_ended(journal: &Journal) -> Tid {
    journal.running_tid().plus(u32::MAX)
}

/// What is said of every point after data was lost on its way to the device.
fn lost(e: &FsError) -> FsError {
    let what = format!(
        "data could not be written ({e}), so there is no transaction point any more: go back to \
         the last one (rollback), or unmount, which does that"
    );
    FsError::Io { what }
}
