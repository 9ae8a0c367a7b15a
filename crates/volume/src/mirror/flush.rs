//! Flushes, and what follows from them: first writes become promised, quiet regions clean.
//!
//! A flush is acknowledged when every durable leg has answered it with success, or was dropped,
//! durably, because it did not.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockError, Completion, Request, Result};
use steadfast_runtime::spawn;

use super::Core;
use super::state::{bit, slots};
use crate::ondisk::map::{Region, RegionState};

/// Passes of the timer without a write after which a region is clean.
const IDLE_PASSES: u8 = 2;
/// Passes of the timer after which a region counts half as hot.
const COOL_EVERY: u64 = 64;

impl Core {
    pub(super) fn submit_flush(self: &Arc<Self>) -> Completion {
        let alone = {
            let state = self.state.lock();
            let legs = state.active() & state.durable();
            let quick = state.stopped().is_none()
                && state.is_settled()
                && legs.count_ones() == 1
                && state.regions.filled().is_empty();
            let leg = legs.trailing_zeros() as usize;
            quick.then(|| state.leg(leg).map(|(_, device)| (leg, Arc::clone(device)))).flatten()
        };
        let core = Arc::clone(self);
        let Some((slot, device)) = alone else {
            return self.on_a_task("mirror flush", move || core.flush_slowly());
        };
        let (completer, completion) = Completion::pending();
        device.submit(Request::Flush).on_done(move |answer| match answer.clone() {
            Ok(_) => completer.complete(Ok(Bytes::new())),
            Err(error) => drop(spawn("mirror flush failed", move || {
                let outcome = core.flush_failed(&[(slot, error)]);
                completer.complete(outcome.map(|()| Bytes::new()));
            })),
        });
        completion
    }

    /// Flushes all durable legs, and makes durable that first writes are.
    pub(super) fn flush_slowly(self: &Arc<Self>) -> Result<()> {
        let filled = {
            let state = self.settled()?;
            state.regions.filled()
        };
        self.flush_legs()?;
        if filled.is_empty() {
            return Ok(());
        }
        {
            let mut state = self.state.lock();
            for region in filled {
                let now = state.regions.get(region);
                // It may have been discarded meanwhile, or settled by another flush.
                if now.state == RegionState::Filling && !state.regions.is_blank(region) {
                    state.regions.set(region, Region { state: RegionState::Dirty, ..now });
                }
            }
        }
        self.commit()
    }

    /// Flushes all durable legs that are in use.
    pub(super) fn flush_legs(&self) -> Result<()> {
        let sent: Vec<(usize, Completion)> = {
            let state = self.settled()?;
            let legs = slots(state.active() & state.durable());
            legs.filter_map(|slot| {
                let (_, device) = state.leg(slot)?;
                Some((slot, device.submit(Request::Flush)))
            })
            .collect()
        };
        let mut failed = Vec::new();
        for (slot, completion) in sent {
            if let Err(error) = completion.wait() {
                failed.push((slot, error));
            }
        }
        if failed.is_empty() { Ok(()) } else { self.flush_failed(&failed) }
    }

    /// Of a leg whose flush failed nothing is known that was not flushed before: it is dropped.
    /// Where the mirror cannot do without it, nothing can be promised any more.
    fn flush_failed(&self, failed: &[(usize, BlockError)]) -> Result<()> {
        let all: u8 = failed.iter().map(|(slot, _)| bit(*slot)).fold(0, |all, b| all | b);
        {
            let mut state = self.state.lock();
            for (slot, error) in failed {
                if !state.drop_failed(*slot, &error.to_string()) {
                    state.failed.get_or_insert(error.clone());
                }
            }
            if state.active() & state.durable() & !all == 0 {
                let error = failed.first().map(|(_, e)| e.clone());
                state.failed = state.failed.take().or(error);
            }
        }
        self.changed.notify_all();
        self.publish()
    }

    /// A pass of the timer: regions that nobody has written to for two passes become clean.
    pub(super) fn clean(self: &Arc<Self>, idle_passes: u8) -> Result<()> {
        let quiet: Vec<u32> = {
            let mut state = self.settled()?;
            let mut quiet = Vec::new();
            for region in state.regions.active() {
                let (start, len) = state.regions.bytes_of(region);
                let busy = state.ranges.is_busy(start, start + len);
                if !busy && state.regions.age(region) >= idle_passes {
                    quiet.push(region);
                }
            }
            quiet
        };
        if quiet.is_empty() {
            return Ok(());
        }
        self.flush_slowly()?;
        {
            let mut state = self.settled()?;
            for region in quiet {
                let (start, len) = state.regions.bytes_of(region);
                let now = state.regions.get(region);
                let written = state.regions.idle(region) < idle_passes
                    || state.ranges.is_busy(start, start + len);
                if now.state == RegionState::Dirty && !written {
                    state.regions.set(region, Region { state: RegionState::Clean, ..now });
                }
            }
        }
        self.commit()
    }

    /// See [`super::Mirror::tick`].
    pub(super) fn tick(self: &Arc<Self>) -> Result<()> {
        {
            let mut state = self.state.lock();
            state.ticks += 1;
            if state.ticks.is_multiple_of(COOL_EVERY) {
                state.regions.cool();
            }
        }
        self.clean(IDLE_PASSES)
    }
}
