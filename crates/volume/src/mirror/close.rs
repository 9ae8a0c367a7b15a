//! Closing a mirror.

use std::sync::Arc;

use steadfast_block::Result;

use super::Core;

impl Core {
    /// See [`super::Mirror::close`].
    pub(super) fn close(self: &Arc<Self>) -> Result<()> {
        let _admin = self.admin.lock();
        {
            let mut state = self.state.lock();
            if state.closed.is_some() {
                return Ok(());
            }
            state.closing = true;
            self.changed.notify_all();
            // It ends at the next region.
            while state.resyncing || state.fill.running {
                state = self.changed.wait(state);
            }
        }
        let outcome = self.close_open();
        {
            let mut state = self.state.lock();
            state.legs.invalidate();
            state.closed = Some("the volume was closed".into());
        }
        self.changed.notify_all();
        outcome
    }

    fn close_open(self: &Arc<Self>) -> Result<()> {
        {
            // The assembly may be being committed.
            let _one = self.committing_assembly.lock();
            let state = self.state.lock();
            if state.info.read_only || state.pending.is_some() {
                // Nothing was written.
                return Ok(());
            }
        }
        // Writes that were begun; none begins any more.
        self.drain()?;
        let out_of_sync = self.settled()?.regions.all_out_of_sync();
        self.sync_regions(&out_of_sync)?;
        self.flush_slowly()?;
        self.clean(0)?;
        // Heats are recorded where their blocks are written.
        self.state.lock().regions.rewrite_all();
        self.commit()?;
        self.publish_as(true)
    }
}
