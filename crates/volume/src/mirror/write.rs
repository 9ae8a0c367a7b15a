//! Writes.
//!
//! 1. The range is locked: overlapping writes reach all legs in the same order.
//! 2. The state that covers the write is made durable: the region is dirty, and stale on some legs.
//!    Mostly it is durable already, and the request goes to the legs at once.
//! 3. The legs write. The first write of a region writes all of it, the rest as zeros.
//! 4. Legs that failed are dropped, durably.
//! 5. It is acknowledged, if a durable leg has completed it for each of its regions; with FUA, if
//!    it would survive a power cut.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, BlockError, Completer, Completion, Payload, Request, Result, check,
};
use steadfast_runtime::{Mutex, MutexGuard, spawn};

use super::Core;
use super::leg::{LegFailure, LegRequest, bit, send_all};
use super::plan::{MirrorWrite, Plan, filled_up, plan, plan_held, sums_of};
use super::policy::WritePolicy;
use super::ranges::Ticket;
use super::state::State;
use crate::ondisk::map::RegionState;
use crate::ondisk::{BLOCK, whole_blocks};
use crate::planted::Bug;

/// What came back from the legs so far.
struct Progress {
    left_awaited: usize,
    left: usize,
    failed: Vec<LegFailure>,
    completer: Option<Completer>,
}

impl Core {
    pub(super) fn submit_write(
        self: &Arc<Self>,
        offset: u64,
        data: Payload,
        fua: bool,
    ) -> Completion {
        let sums = self.sums(offset, &data);
        let write = MirrorWrite { offset, data: &data, fua, sums: sums.as_deref() };
        let quick = self.plan_quick(&mut self.state.lock(), write);
        if let Some((ticket, plan)) = quick {
            return self.send(ticket, plan, false);
        }
        let core = Arc::clone(self);
        self.on_a_task("mirror write", move || core.write_slowly(offset, &data, fua))
    }

    /// The short way for a waiting caller: one leg is written without a hand-over, and the long way
    /// needs no task of its own.
    pub(super) fn write_now(self: &Arc<Self>, offset: u64, data: Payload, fua: bool) -> Result<()> {
        let sums = self.sums(offset, &data);
        let write = MirrorWrite { offset, data: &data, fua, sums: sums.as_deref() };
        let quick = {
            let mut state = self.state.lock();
            if let Some(refused) = state.refuses_writes() {
                return Err(refused);
            }
            check(&state.info, &Request::Write { offset, data: data.clone(), fua })?;
            self.plan_quick(&mut state, write)
        };
        match quick {
            Some((ticket, plan)) => self.send(ticket, plan, true).wait().map(drop),
            None => self.write_slowly(offset, &data, fua),
        }
    }

    /// Runs what must wait on a task of its own.
    pub(super) fn on_a_task(
        &self,
        name: &str,
        body: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Completion {
        Completion::on_task(name, move || body().map(|()| Bytes::new()))
    }

    /// A plan for a write that need not wait for anything.
    fn plan_quick(&self, state: &mut State, write: MirrorWrite<'_>) -> Option<(Ticket, Plan)> {
        let MirrorWrite { offset, data, fua, sums } = write;
        let len = data.len() as u64;
        if let Some(known) = &state.checksums
            && (sums.is_none() || known.must_save())
        {
            return None;
        }
        let regions = state.regions.of(offset, len);
        let can = |r: u32| {
            state.is_ready(r) && !(fua && state.regions.get(r).state == RegionState::Filling)
        };
        if state.refuses_writes().is_some()
            || !state.is_settled()
            || state.policies.write == WritePolicy::Serial
            || !regions.clone().all(can)
            || self.refuse_orphans(state, &regions).is_err()
        {
            return None;
        }
        let ticket = state.ranges.try_take(offset, offset + len)?;
        Some((ticket, plan_held(state, ticket, write)))
    }

    /// The checksums of a write of whole blocks, where they are wanted.
    fn sums(&self, offset: u64, data: &Payload) -> Option<Vec<u32>> {
        let len = data.len() as u64;
        (self.checksums && whole_blocks(offset, len) == (offset, len)).then(|| sums_of(data))
    }

    /// Sends a plan to the legs; whoever answers last does the rest. `waits`: whoever asks waits
    /// for the answer, so one leg that is waited for is written by the caller's own thread.
    fn send(self: &Arc<Self>, ticket: Ticket, plan: Plan, waits: bool) -> Completion {
        let Plan { pieces, regions, range, awaited, durable } = plan;
        let (completer, completion) = Completion::pending();
        let count_awaited = pieces.iter().filter(|p| awaited & bit(p.slot) != 0).count();
        if count_awaited == 0 {
            let core = Arc::clone(self);
            spawn("mirror write", move || {
                core.set_unknown(range);
                core.release(ticket);
                completer.complete(Err(core.nobody_has_it(0)));
            });
            return completion;
        }
        let progress = Arc::new(Mutex::new(Progress {
            left_awaited: count_awaited,
            left: pieces.len(),
            failed: Vec::new(),
            completer: Some(completer),
        }));
        let of = |legs: u8| pieces.iter().position(|p| legs & bit(p.slot) != 0);
        // Memory has answered before its request is handed over.
        let own = if waits { of(awaited & durable).or_else(|| of(awaited)) } else { None };
        let mut own_piece = None;
        for (n, piece) in pieces.into_iter().enumerate() {
            if own == Some(n) {
                // The others are in flight first.
                own_piece = Some(piece);
                continue;
            }
            let LegRequest { slot, epoch, device, request } = piece;
            let (core, progress, regions) =
                (Arc::clone(self), Arc::clone(&progress), regions.clone());
            device.submit(request).on_done(move |answer| {
                let failed = answer.as_ref().err().cloned();
                let failed = failed.map(|error| LegFailure { slot, epoch, error });
                core.leg_answered((slot, awaited), failed, &progress, ticket, (regions, range));
            });
        }
        if let Some(LegRequest { slot, epoch, device, request }) = own_piece {
            let failed = write_here(&device, request).err();
            let failed = failed.map(|error| LegFailure { slot, epoch, error });
            self.leg_answered((slot, awaited), failed, &progress, ticket, (regions, range));
        }
        completion
    }

    fn leg_answered(
        self: &Arc<Self>,
        (slot, awaited): (usize, u8),
        failed: Option<LegFailure>,
        progress: &Mutex<Progress>,
        ticket: Ticket,
        (regions, range): (Range<u32>, (u64, u64)),
    ) {
        let mut p = progress.lock();
        p.failed.extend(failed);
        p.left -= 1;
        p.left_awaited -= usize::from(awaited & bit(slot) != 0);
        let last = p.left == 0;
        if p.failed.is_empty() {
            let acknowledged = if p.left_awaited == 0 { p.completer.take() } else { None };
            drop(p);
            if last {
                self.release(ticket);
            } else if acknowledged.is_some() {
                self.state.lock().ranges.acknowledged_before(ticket, !awaited);
            }
            if let Some(completer) = acknowledged {
                completer.complete(Ok(Bytes::new()));
            }
            return;
        }
        // Somebody failed: the rest is not a hook's work, and waits until all have answered.
        if !last {
            return;
        }
        let (failed, completer) = (std::mem::take(&mut p.failed), p.completer.take());
        drop(p);
        let core = Arc::clone(self);
        spawn("mirror write failed", move || {
            let outcome = core.after_failure(&failed, regions, range);
            core.release(ticket);
            if let Some(completer) = completer {
                completer.complete(outcome.map(|()| Bytes::new()));
            }
        });
    }

    /// Drops legs that failed; whether a durable leg has the write all the same.
    fn after_failure(
        &self,
        failed: &[LegFailure],
        regions: Range<u32>,
        range: (u64, u64),
    ) -> Result<()> {
        let lost = || self.state.lock().write_failed(failed, regions.clone(), self.planted);
        let mut stay = lost();
        if stay.is_none() {
            self.fail(failed, regions.clone(), 0)?;
            // A leg that took it may have left before those that failed were dealt with.
            stay = lost();
        }
        let Some(stay) = stay else { return Ok(()) };
        self.set_unknown(range);
        self.fail(failed, regions, stay)?;
        failed.first().map_or(Ok(()), |failed| Err(failed.error.clone()))
    }

    /// The contents of these bytes are unknown: a write of them failed.
    fn set_unknown(&self, (offset, len): (u64, u64)) {
        if let Some(known) = self.state.lock().checksums.as_mut() {
            known.set_unknown(offset, len);
        }
    }

    fn nobody_has_it(&self, offset: u64) -> BlockError {
        BlockError::Io {
            device: self.name.clone(),
            op: "write",
            offset,
            reason: "no durable leg that is there holds this region".into(),
        }
    }

    /// Refuses a write of which a region would be on no durable leg.
    fn refuse_orphans(&self, state: &State, regions: &Range<u32>) -> Result<()> {
        match state.orphan(regions.clone()) {
            Some(region) => Err(self.nobody_has_it(state.regions.bytes_of(region).0)),
            None => Ok(()),
        }
    }

    /// The long way: waits for the map and for its range.
    pub(super) fn write_slowly(
        self: &Arc<Self>,
        offset: u64,
        data: &Payload,
        fua: bool,
    ) -> Result<()> {
        let end = offset + data.len() as u64;
        if self.checksums {
            self.save_oldest()?;
        }
        // Parts of blocks: the region must be held while the rest of them is read.
        let sums = self.sums(offset, data);
        let parts = self.checksums && sums.is_none();
        loop {
            let mut state = self.settled_for_writes()?;
            let regions = state.regions.of(offset, end - offset);
            self.refuse_orphans(&state, &regions)?;
            if state.needs_sync(regions.clone()) {
                drop(state);
                self.sync_range(offset, end - offset)?;
                continue;
            }
            if parts || self.needs_whole(&state, &regions, fua) {
                let (regions, ticket) = self.take_regions(state, regions);
                let done = self.write_whole(offset, data, (fua, parts), regions);
                self.release(ticket);
                match done {
                    Some(outcome) => return outcome,
                    None => continue,
                }
            }
            if !regions.clone().all(|r| state.is_ready(r)) {
                drop(state);
                drop(self.opened(&regions, false)?);
                continue;
            }
            let (ticket, turn) = state.ranges.queue(offset, end);
            drop(state);
            drop(turn.wait());
            let write = MirrorWrite { offset, data, fua, sums: sums.as_deref() };
            if let Some(plan) = self.plan_if_ready(ticket, write) {
                return self.send(ticket, plan, true).wait().map(drop);
            }
            // Cleaned, discarded, or a leg has gone meanwhile.
            self.release(ticket);
        }
    }

    /// A plan for a range that is held, if it may be carried out now.
    fn plan_if_ready(&self, ticket: Ticket, write: MirrorWrite<'_>) -> Option<Plan> {
        let mut state = self.state.lock();
        let mut regions = state.regions.of(write.offset, write.data.len() as u64);
        let ready = state.refuses_writes().is_none()
            && state.is_settled()
            && !self.needs_whole(&state, &regions, write.fua)
            && self.refuse_orphans(&state, &regions).is_ok()
            && regions.all(|r| state.is_ready(r));
        ready.then(|| plan_held(&mut state, ticket, write))
    }

    /// Whether a write must hold its regions whole: it is the first of one, must make the first one
    /// promised, or goes to one leg after the other.
    fn needs_whole(&self, state: &State, regions: &Range<u32>, fua: bool) -> bool {
        let first = |r: u32| {
            matches!(state.regions.get(r).state, RegionState::Unwritten | RegionState::Filling)
                && (fua || state.regions.is_blank(r))
        };
        state.policies.write == WritePolicy::Serial
            || self.planted.has(Bug::StateAfterData)
            || regions.clone().any(first)
    }

    /// As [`write_held`](Self::write_held), if it is still needed now that the regions are held.
    fn write_whole(
        self: &Arc<Self>,
        offset: u64,
        data: &Payload,
        (fua, parts): (bool, bool),
        regions: Range<u32>,
    ) -> Option<Result<()>> {
        let needed = match self.settled_for_writes() {
            // Another write has failed on all legs meanwhile: the regions are synced first.
            Ok(state) if state.needs_sync(regions.clone()) => return None,
            Ok(state) => parts || self.needs_whole(&state, &regions, fua),
            Err(stopped) => return Some(Err(stopped)),
        };
        if parts && needed {
            return Some(
                self.whole_blocks(offset, data)
                    .and_then(|(offset, data)| self.write_held(offset, &data, fua, regions)),
            );
        }
        needed.then(|| self.write_held(offset, data, fua, regions))
    }

    fn write_held(
        self: &Arc<Self>,
        offset: u64,
        data: &Payload,
        fua: bool,
        regions: Range<u32>,
    ) -> Result<()> {
        let late = self.planted.has(Bug::StateAfterData);
        let mut state = self.opened(&regions, late)?;
        self.refuse_orphans(&state, &regions)?;
        let blank: Vec<u32> = regions.clone().filter(|r| state.regions.is_blank(*r)).collect();
        let (at, whole) = filled_up(&state, offset, data, &blank);
        let serial = state.policies.write == WritePolicy::Serial;
        let sums = self.sums(at, &whole);
        let write = MirrorWrite { offset: at, data: &whole, fua, sums: sums.as_deref() };
        let plan = plan(&mut state, write);
        let range = plan.range;
        drop(state);
        let failed = carry_out(plan, serial);
        if failed.is_empty() {
            self.set_filled(&blank);
        } else {
            self.after_failure(&failed, regions.clone(), range)?;
            self.set_filled(&blank);
        }
        if late {
            self.commit()?;
        }
        if fua { self.settle_filled(regions) } else { Ok(()) }
    }

    /// A write of parts of blocks in regions that are held, with the rest of the blocks.
    fn whole_blocks(self: &Arc<Self>, offset: u64, data: &Payload) -> Result<(u64, Payload)> {
        let end = offset + data.len() as u64;
        let (at, len) = whole_blocks(offset, data.len() as u64);
        let block = |at: u64| {
            let region = self.state.lock().regions.of(at, BLOCK).start;
            self.read_held(region, at, BLOCK, None, None)
        };
        let mut all = Payload::new();
        if offset > at {
            all.push(block(at)?.slice(..(offset - at) as usize));
        }
        data.parts().iter().for_each(|part| all.push(part.clone()));
        if end < at + len {
            let last = at + len - BLOCK;
            all.push(block(last)?.slice((end - last) as usize..));
        }
        Ok((at, all))
    }

    fn set_filled(&self, blank: &[u32]) {
        let mut state = self.state.lock();
        blank.iter().for_each(|r| state.regions.set_filled(*r));
    }

    /// Makes durable what must be before these regions are written, and returns with the lock.
    /// Out-of-sync legs stay so; there are none while the regions are locked.
    fn opened(&self, regions: &Range<u32>, late: bool) -> Result<MutexGuard<'_, State>> {
        loop {
            let mut state = self.settled()?;
            let absent = state.legs.absent();
            let open: Vec<u32> = regions.clone().filter(|r| state.must_open(*r)).collect();
            open.iter().for_each(|region| state.regions.open(*region, absent));
            if late || open.is_empty() {
                return Ok(state);
            }
            drop(state);
            self.commit()?;
        }
    }

    /// A write with FUA to a region whose first write is not promised yet: it is from now on.
    fn settle_filled(self: &Arc<Self>, mut regions: Range<u32>) -> Result<()> {
        let filling = {
            let state = self.state.lock();
            regions.any(|r| state.regions.get(r).state == RegionState::Filling)
        };
        // A flush may have promised it meanwhile, and still be writing the map.
        if filling { self.flush_slowly() } else { self.commit() }
    }
}

/// Does a request that a plan has for a leg, and waits.
fn write_here(device: &Arc<dyn BlockDevice>, request: Request) -> Result<()> {
    match request {
        Request::Write { offset, data, fua: false } => device.write(offset, data),
        Request::Write { offset, data, fua: true } => device.write_fua(offset, data),
        other => device.submit(other).wait().map(drop),
    }
}

/// Sends a plan and waits for all of it; which legs failed.
fn carry_out(plan: Plan, serial: bool) -> Vec<LegFailure> {
    match serial {
        true => plan.pieces.into_iter().flat_map(|piece| send_all(vec![piece])).collect(),
        false => send_all(plan.pieces),
    }
}
