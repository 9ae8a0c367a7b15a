//! Flushes. After a flush first writes are durable, and idle regions become clean.
//!
//! A flush is acknowledged when two conditions hold. Every durable leg has completed it, or was
//! dropped durably because it failed. And the map that covers the flushed data is durable, even if
//! another flush is still writing it.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, Request, Result};
use steadfast_runtime::spawn;

use super::Core;
use super::leg::{LegFailure, send_all};
use super::metadata::Metadata;
use super::state::State;
use crate::ondisk::map::{Region, RegionState};
use crate::planted::Bug;

/// Passes of the timer without a write after which a region is clean.
const IDLE_PASSES: u8 = 2;

impl State {
    /// The leg, if a flush is no more than the flush of one leg: its place, epoch and device.
    fn flushed_alone(&self) -> Option<(usize, u64, Arc<dyn BlockDevice>)> {
        let legs = self.legs.active() & self.legs.durable();
        let quick = self.stopped().is_none()
            && !self.info.read_only
            && self.is_settled()
            && legs.count_ones() == 1
            && self.regions.filled().is_empty()
            // Another flush has changed the map, and it is not durable yet.
            && self.regions.is_committed()
            && self.passes_begun == self.passes_done;
        let slot = legs.trailing_zeros() as usize;
        let (leg, device) = quick.then(|| self.legs.leg(slot)).flatten()?;
        Some((slot, leg.epoch, Arc::clone(device)))
    }
}

impl Core {
    pub(super) fn submit_flush(self: &Arc<Self>) -> Completion {
        let alone = self.state.lock().flushed_alone();
        let core = Arc::clone(self);
        let Some((slot, epoch, device)) = alone else {
            return self.on_a_task("mirror flush", move || core.flush_slowly());
        };
        let (completer, completion) = Completion::pending();
        device.submit(Request::Flush).on_done(move |answer| match answer.clone() {
            Ok(_) => completer.complete(Ok(Bytes::new())),
            Err(error) => drop(spawn("mirror flush failed", move || {
                let outcome = core.flush_failed(&[LegFailure { slot, epoch, error }]);
                completer.complete(outcome.map(|()| Bytes::new()));
            })),
        });
        completion
    }

    /// Flushes all durable legs, and makes the state of first writes durable.
    pub(super) fn flush_slowly(self: &Arc<Self>) -> Result<()> {
        if self.state.lock().info.read_only {
            // Nothing was written.
            return Ok(());
        }
        let filled = self.settled()?.regions.filled();
        self.flush_legs()?;
        {
            let mut state = self.state.lock();
            for (region, fill) in filled {
                state.regions.promise(region, fill);
            }
        }
        // Also what another flush has promised and is still writing.
        self.commit()
    }

    /// Regions without a write for so many timer passes become clean.
    pub(super) fn clean(self: &Arc<Self>, idle_passes: u8) -> Result<()> {
        let (quiet, writes) = {
            let mut state = self.settled()?;
            let mut quiet: Vec<u32> = Vec::new();
            for region in state.regions.active() {
                let (start, len) = state.regions.bytes_of(region);
                let busy = state.ranges.is_busy(start, start + len);
                let decided = state.regions.out_of_sync(region) == 0;
                if decided && !busy && state.regions.age(region) >= idle_passes {
                    quiet.push(region);
                }
            }
            (quiet, state.regions.writes())
        };
        if quiet.is_empty() {
            return Ok(());
        }
        // What checksums they have is on the legs before the map says so.
        let late = self.checksums && self.planted.has(Bug::ChecksumsAfterClean);
        let records = match self.checksums && !late {
            true => self.save(&quiet)?,
            false => BTreeMap::new(),
        };
        self.flush_slowly()?;
        {
            let mut state = self.settled()?;
            for region in &quiet {
                let now = state.regions.get(*region);
                let written = state.regions.written_since(*region, writes);
                if now.state == RegionState::Dirty && !written {
                    let record = records.get(region);
                    let summed = late || record.is_some_and(|r| state.is_summable(*region, r));
                    let clean = Region { state: RegionState::Clean, summed, ..now };
                    state.regions.set(*region, clean);
                }
            }
        }
        self.commit()?;
        if late { self.save(&quiet).map(drop) } else { Ok(()) }
    }

    /// See [`super::Mirror::tick`].
    pub(super) fn tick(self: &Arc<Self>) -> Result<()> {
        {
            let dead = self.state.lock().legs.sweep();
            drop(dead);
            let state = self.state.lock();
            if state.pending.is_some() || state.info.read_only {
                // Nothing was written yet.
                return state.stopped().map_or(Ok(()), Err);
            }
        }
        self.clean(IDLE_PASSES)
    }
}

impl Metadata {
    /// Flushes all durable legs that are in use.
    pub(super) fn flush_legs(&self) -> Result<()> {
        self.flush_some(u8::MAX)
    }

    /// Flushes those of these legs that are durable and in use.
    pub(super) fn flush_some(&self, legs: u8) -> Result<()> {
        let requests = {
            let state = self.settled()?;
            state.legs.requests(legs & state.legs.durable(), |_| Request::Flush)
        };
        let failed = send_all(requests);
        if failed.is_empty() { Ok(()) } else { self.flush_failed(&failed) }
    }

    /// A leg whose flush failed is dropped: unflushed data on it is unknown. If the mirror cannot
    /// do without the leg, it fails.
    fn flush_failed(&self, failed: &[LegFailure]) -> Result<()> {
        {
            let mut state = self.state.lock();
            self.drop_all(&mut state, failed);
            if state.legs.active() & state.legs.durable() & !state.legs.still_in_use(failed) == 0 {
                let error = failed.first().map(|f| f.error.clone());
                state.failed = state.failed.take().or(error);
            }
        }
        self.changed.notify_all();
        self.publish()
    }
}
