//! File systems that decide themselves where a transaction ends ([`Config::on_demand`]).
//!
//! [`Config::on_demand`]: crate::Config::on_demand

use crate::journal::Journal;
use crate::{Result, Tid};

impl Journal {
    /// Closes the running transaction: later updates are part of the next one. Waits for the commit
    /// before it, if there is one, but not for its own: [`commit`](Self::commit) does. `None` if
    /// nothing has joined.
    ///
    /// # Errors
    /// [`JournalError::Aborted`](crate::JournalError::Aborted), and refused when the journal is
    /// closed.
    pub fn close_running(&self) -> Result<Option<Tid>> {
        let shared = &*self.shared;
        let mut st = shared.state.lock();
        let tid = st.running_tid;
        if st.running.is_none() {
            return Ok(None);
        }
        st.request_commit(tid);
        shared.commit_work.notify_all();
        while st.running_tid == tid {
            st.check_alive()?;
            st = shared.progress.wait(st);
        }
        Ok(Some(tid))
    }

    /// Discards the running transaction, as if its updates had never joined. Waits for a commit in
    /// progress; afterwards everything in the journal is durable. The caller ensures that nothing
    /// joins meanwhile, and drops its state of those updates.
    ///
    /// # Errors
    /// As [`close_running`](Self::close_running).
    pub fn discard_running(&self) -> Result<()> {
        let shared = &*self.shared;
        let mut st = shared.state.lock();
        st.running = None;
        st.running_full = false;
        shared.note_images(&st);
        while st.committing.is_some()
            || !st.committed_tid.is_at_least(st.running_tid.plus(u32::MAX))
        {
            st.check_alive()?;
            st = shared.progress.wait(st);
        }
        drop(st);
        shared.progress.notify_all();
        Ok(())
    }

    /// Log blocks that the running transaction takes so far, and the most that it can.
    pub fn running_blocks(&self) -> (u32, u32) {
        let st = self.shared.state.lock();
        let taken = st.running.as_ref().map_or(0, |r| r.log_blocks(&st.layout));
        (taken, st.capacity() - 1)
    }
}
