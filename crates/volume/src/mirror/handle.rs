//! What users hold of a mirror.

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, DeviceInfo, Request, check};
use steadfast_runtime::{sleep, spawn};
use uuid::Uuid;

use super::core::Core;
use super::events::Listener;
use super::policy::{Policies, check_policies};
use super::resync::{ResyncReport, ResyncThrottle};
use super::scrub::ScrubReport;

/// The shortest time between two passes of the timer.
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// A mirror that was assembled. Clones are the same mirror.
///
/// When the last one is dropped the mirror is closed, if [`close`](Self::close) was not called.
/// This waits for its legs, so it must not happen in the hook of a completion, and errors are lost.
/// After a panic it is not closed: the next assembly resyncs the dirty regions.
#[derive(Clone)]
pub struct Mirror(pub(crate) Arc<Handle>);

/// What users hold, and not the mirror's own tasks: nobody uses it any more when it is dropped.
pub(crate) struct Handle(Arc<Core>);

impl Deref for Handle {
    type Target = Arc<Core>;
    fn deref(&self) -> &Arc<Core> {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(self.0.close());
        }
    }
}

impl Mirror {
    /// What users hold of a mirror.
    pub(crate) fn of(core: Arc<Core>) -> Mirror {
        Mirror(Arc::new(Handle(core)))
    }

    /// The mirror's UUID.
    pub fn uuid(&self) -> Uuid {
        self.0.volume
    }

    /// The mirror's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The policies of now.
    pub fn policies(&self) -> Policies {
        self.0.state.lock().policies
    }

    /// Changes the policies, durably, while requests go on.
    ///
    /// # Errors
    /// If they name a leg that cannot be, or the labels cannot be written.
    pub fn set_policies(&self, policies: Policies) -> crate::Result<()> {
        let _admin = self.0.admin.lock();
        {
            let (mut state, ()) = self.0.checked(|_| check_policies(policies))?;
            state.legs.invalidate();
            state.policies = policies;
            state.membership += 1;
        }
        Ok(self.0.publish()?)
    }

    /// Sets the listener for later events; there is one at a time. It is called in the middle of
    /// requests, with locks of the mirror held: it must neither wait nor use the mirror.
    pub fn listen(&self, listener: Listener) {
        self.0.state.lock().listener = Some(listener);
    }

    /// A pass of the timer: to be called every few seconds. Regions without a write for two passes
    /// become clean, so that a power cut has less to resync; a spare takes a failed leg's place.
    ///
    /// # Errors
    /// If the mirror has failed or is closed.
    pub fn tick(&self) -> crate::Result<()> {
        self.0.tick()?;
        self.use_spare()
    }

    /// Calls [`tick`](Self::tick) and resyncs in the background, until the mirror is dropped,
    /// closed or has failed.
    pub fn keep(&self, every: Duration, throttle: ResyncThrottle) {
        let handle: Weak<Handle> = Arc::downgrade(&self.0);
        spawn("mirror upkeep", move || {
            loop {
                sleep(every.max(SHORTEST_TICK));
                let Some(handle) = handle.upgrade() else { return };
                let mirror = Mirror(handle);
                if mirror.tick().is_err() {
                    return;
                }
                if mirror.policies().pass.number() > 0 && mirror.resync(throttle).is_err() {
                    return;
                }
            }
        });
    }

    /// Gives active legs what they lack.
    ///
    /// # Errors
    /// If the mirror has failed or is closed, or the throttle would never let anything through.
    /// Regions that cannot be read are counted, no error.
    pub fn resync(&self, throttle: ResyncThrottle) -> crate::Result<ResyncReport> {
        throttle.check("resync")?;
        Ok(self.0.resync(throttle)?)
    }

    /// Reads everything that was ever written from all legs that hold it, and compares. What a leg
    /// cannot read is written from another one. With `repair` legs that differ are given what most
    /// durable ones hold, or the first one where there is no majority.
    ///
    /// # Errors
    /// If the mirror has failed or is closed, or the throttle would never let anything through.
    pub fn scrub(&self, repair: bool, throttle: ResyncThrottle) -> crate::Result<ScrubReport> {
        throttle.check("scrub")?;
        let mut done = self.0.scrub(repair, throttle)?;
        done.clean = done.repaired == done.differing + done.unreadable && done.lost == 0;
        Ok(done)
    }

    /// Closes the mirror: waits for requests in flight, syncs out-of-sync regions to all legs,
    /// flushes everything, marks it clean, and refuses later requests. The opener calls it after
    /// the last user, also after an error; a second call has no effect.
    ///
    /// # Errors
    /// If something could not be made durable. The next assembly then resyncs the dirty regions.
    pub fn close(&self) -> crate::Result<()> {
        Ok(self.0.close()?)
    }

    fn refused(&self, request: &Request) -> Option<BlockError> {
        let state = self.0.state.lock();
        let change = !matches!(request, Request::Read { .. } | Request::Flush);
        let closing = if change { state.refuses_writes() } else { None };
        closing.or_else(|| check(&state.info, request).err())
    }
}

impl BlockDevice for Mirror {
    fn info(&self) -> DeviceInfo {
        self.0.state.lock().info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        if let Some(refused) = self.refused(&request) {
            return Completion::ready(Err(refused));
        }
        match request {
            Request::Read { offset, len } => self.0.submit_read(offset, len),
            Request::Write { offset, data, fua } => self.0.submit_write(offset, data, fua),
            Request::Flush => self.0.submit_flush(),
            Request::Discard { offset, len } => {
                let core = Arc::clone(&self.0.0);
                self.0.on_a_task("mirror discard", move || core.discard_slowly(offset, len))
            }
        }
    }

    // A waiting caller does the work itself: no hand-over.

    fn execute(&self, request: Request) -> steadfast_block::Result<Bytes> {
        let done = match request {
            Request::Read { offset, len } => return self.0.read_now(offset, len),
            Request::Write { offset, data, fua } => self.0.write_now(offset, data, fua),
            Request::Flush => self.0.flush_slowly(),
            Request::Discard { .. } => return self.submit(request).wait(),
        };
        done.map(|()| Bytes::new())
    }
}
