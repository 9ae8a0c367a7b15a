//! Writes.
//!
//! 1. The range is taken: overlapping writes reach all legs in one order.
//! 2. What a cut must find is made durable: the region may be in doubt, and these legs miss it.
//!    Mostly it is already, and the request goes to the legs at once.
//! 3. The legs write. The first write of a region writes all of it, the rest as zeros.
//! 4. Legs that failed are dropped, durably.
//! 5. It is acknowledged, if a durable leg has it: with FUA, if it would survive.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completer, Completion, Payload, Request, Result};
use steadfast_runtime::{Mutex, spawn};

use super::Core;
use super::policy::{BEHIND_MAX, WritePolicy};
use super::ranges::Ticket;
use super::state::{State, bit, slots};
use crate::ondisk::map::{Region, RegionState};
use crate::planted::Bug;

/// Zeros to fill a region with.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A piece of a write for one leg.
struct Piece {
    slot: usize,
    device: Arc<dyn BlockDevice>,
    request: Request,
}

/// Which legs a write goes to, and what of it.
pub(super) struct Plan {
    pieces: Vec<Piece>,
    regions: Range<u32>,
    /// Legs that must have it before it is acknowledged.
    awaited: u8,
}

/// What came back from the legs so far.
struct Progress {
    left_awaited: usize,
    left: usize,
    failed: Vec<(usize, BlockError)>,
    completer: Option<Completer>,
}

impl Core {
    pub(super) fn submit_write(
        self: &Arc<Self>,
        offset: u64,
        data: Payload,
        fua: bool,
    ) -> Completion {
        let quick = {
            let mut state = self.state.lock();
            self.plan_quick(&mut state, offset, &data, fua)
        };
        if let Some((ticket, plan)) = quick {
            return self.send(ticket, plan);
        }
        let core = Arc::clone(self);
        self.on_a_task("mirror write", move || core.write_slowly(offset, &data, fua))
    }

    /// The short way for whoever waits: the long way needs no task of its own.
    pub(super) fn write_now(self: &Arc<Self>, offset: u64, data: Payload) -> Result<()> {
        let quick = {
            let mut state = self.state.lock();
            self.plan_quick(&mut state, offset, &data, false)
        };
        match quick {
            Some((ticket, plan)) => self.send(ticket, plan).wait().map(drop),
            None => self.write_slowly(offset, &data, false),
        }
    }

    /// Runs what must wait on a task of its own.
    pub(super) fn on_a_task(
        &self,
        name: &str,
        body: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Completion {
        let (completer, completion) = Completion::pending();
        spawn(name, move || completer.complete(body().map(|()| Bytes::new())));
        completion
    }

    /// A plan for a write that need not wait for anything.
    fn plan_quick(
        &self,
        state: &mut State,
        offset: u64,
        data: &Payload,
        fua: bool,
    ) -> Option<(Ticket, Plan)> {
        let len = data.len() as u64;
        let regions = state.regions.of(offset, len);
        let can = |r: u32| {
            state.is_ready(r) && !(fua && state.regions.get(r).state == RegionState::Filling)
        };
        if state.stopped().is_some()
            || !state.is_settled()
            || state.policies.write == WritePolicy::Serial
            || !regions.clone().all(can)
        {
            return None;
        }
        let ticket = state.ranges.try_take(offset, offset + len)?;
        Some((ticket, self.plan(state, offset, data, fua)))
    }

    /// What goes to which leg: all of the range where the leg holds its regions.
    fn plan(&self, state: &mut State, offset: u64, data: &Payload, fua: bool) -> Plan {
        let len = data.len() as u64;
        let regions = state.regions.of(offset, len);
        let (active, durable) = (state.active(), state.durable());
        let mut pieces = Vec::new();
        for slot in slots(active) {
            let held = |r: u32| state.regions.lacking(r) & bit(slot) == 0;
            let runs = runs(&state.regions, &regions, (offset, len), held);
            let Some((leg, device)) = state.leg(slot) else { continue };
            for (at, bytes) in &runs {
                let data = data.slice((at - offset) as usize, *bytes as usize);
                let fua = fua && durable & bit(slot) != 0;
                let request = Request::Write { offset: leg.data_start + at, data, fua };
                pieces.push(Piece { slot, device: Arc::clone(device), request });
            }
            if let Some(leg) = state.legs[slot].as_mut() {
                leg.counters.writes += runs.len() as u64;
                leg.counters.written_bytes += runs.iter().map(|(_, bytes)| bytes).sum::<u64>();
            }
        }
        regions.clone().for_each(|r| state.regions.touch(r));
        let behind = state.policies.write == WritePolicy::WriteBehind
            && state.ranges.behind_count() < BEHIND_MAX;
        let awaited = if behind { durable } else { u8::MAX };
        Plan { pieces, regions, awaited }
    }

    /// Sends a plan to the legs; whoever answers last does the rest.
    fn send(self: &Arc<Self>, ticket: Ticket, plan: Plan) -> Completion {
        let Plan { pieces, regions, awaited } = plan;
        let (completer, completion) = Completion::pending();
        let count_awaited = pieces.iter().filter(|p| awaited & bit(p.slot) != 0).count();
        if count_awaited == 0 {
            let core = Arc::clone(self);
            spawn("mirror write", move || {
                core.release(ticket);
                completer.complete(Err(core.nobody_has_it()));
            });
            return completion;
        }
        let progress = Arc::new(Mutex::new(Progress {
            left_awaited: count_awaited,
            left: pieces.len(),
            failed: Vec::new(),
            completer: Some(completer),
        }));
        for Piece { slot, device, request } in pieces {
            let (core, progress, regions) =
                (Arc::clone(self), Arc::clone(&progress), regions.clone());
            device.submit(request).on_done(move |answer| {
                core.leg_answered(slot, awaited, answer, &progress, ticket, regions);
            });
        }
        completion
    }

    fn leg_answered(
        self: &Arc<Self>,
        slot: usize,
        awaited: u8,
        answer: &Result<Bytes>,
        progress: &Mutex<Progress>,
        ticket: Ticket,
        regions: Range<u32>,
    ) {
        let mut p = progress.lock();
        if let Err(error) = answer {
            p.failed.push((slot, error.clone()));
        }
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
            let outcome = core.after_failure(&failed, regions);
            core.release(ticket);
            if let Some(completer) = completer {
                completer.complete(outcome.map(|()| Bytes::new()));
            }
        });
    }

    /// Gives a range back and wakes those who wait.
    pub(super) fn release(&self, ticket: Ticket) {
        let turns = self.state.lock().ranges.release(ticket);
        turns.tell();
    }

    /// Drops legs that failed; whether a durable leg has the write all the same.
    pub(super) fn after_failure(
        &self,
        failed: &[(usize, BlockError)],
        regions: Range<u32>,
    ) -> Result<()> {
        let mask = failed.iter().fold(0, |mask, (slot, _)| mask | bit(*slot));
        let lost = {
            let mut state = self.state.lock();
            let (active, durable) = (state.active(), state.durable());
            let mut lost = false;
            for region in regions.clone() {
                let targets = active & !state.regions.lacking(region);
                if targets & durable & !mask != 0 {
                    continue;
                }
                lost = true;
                // One leg stands for the region, whatever it holds: reads stay the same.
                let keeper = slots(targets & durable).next().or(slots(targets).next());
                let others = targets & !keeper.map_or(0, bit);
                if !state.regions.is_blank(region) {
                    state.regions.set_stale(region, others);
                }
            }
            lost
        };
        self.fail(failed, regions)?;
        match failed.first() {
            Some((_, error)) if lost => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn nobody_has_it(&self) -> BlockError {
        BlockError::Io {
            device: self.name.clone(),
            op: "write",
            offset: 0,
            reason: "no durable leg holds this region".into(),
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
        loop {
            let mut state = self.settled()?;
            let regions = state.regions.of(offset, end - offset);
            if self.needs_whole(&state, &regions, fua) {
                let (regions, ticket) = self.take_regions(state, regions);
                let done = self.write_whole(offset, data, fua, regions);
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
            if let Some(plan) = self.plan_held(offset, data, fua) {
                return self.send(ticket, plan).wait().map(drop);
            }
            // Cleaned, discarded, or a leg has gone meanwhile.
            self.release(ticket);
        }
    }

    /// A plan for a range that is held, if it may be carried out now.
    fn plan_held(&self, offset: u64, data: &Payload, fua: bool) -> Option<Plan> {
        let mut state = self.state.lock();
        let mut regions = state.regions.of(offset, data.len() as u64);
        let ready = state.stopped().is_none()
            && state.is_settled()
            && !self.needs_whole(&state, &regions, fua)
            && regions.all(|r| state.is_ready(r));
        ready.then(|| self.plan(&mut state, offset, data, fua))
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
        fua: bool,
        regions: Range<u32>,
    ) -> Option<Result<()>> {
        let needed = match self.settled() {
            Ok(state) => self.needs_whole(&state, &regions, fua),
            Err(stopped) => return Some(Err(stopped)),
        };
        needed.then(|| self.write_held(offset, data, fua, regions))
    }

    /// Waits for the right to write whole regions.
    pub(super) fn take_regions(
        &self,
        mut state: steadfast_runtime::MutexGuard<'_, State>,
        regions: Range<u32>,
    ) -> (Range<u32>, Ticket) {
        let (start, _) = state.regions.bytes_of(regions.start);
        let (last, len) = state.regions.bytes_of(regions.end - 1);
        let (ticket, turn) = state.ranges.queue(start, last + len);
        drop(state);
        drop(turn.wait());
        (regions, ticket)
    }

    fn write_held(
        self: &Arc<Self>,
        offset: u64,
        data: &Payload,
        fua: bool,
        regions: Range<u32>,
    ) -> Result<()> {
        let late = self.planted.has(Bug::StateAfterData);
        let state = self.opened(&regions, late)?;
        let blank: Vec<u32> = regions.clone().filter(|r| state.regions.is_blank(*r)).collect();
        let (at, whole) = filled_up(&state, offset, data, &blank);
        let mut state = state;
        let serial = state.policies.write == WritePolicy::Serial;
        let plan = self.plan(&mut state, at, &whole, fua);
        let durable = state.durable();
        drop(state);
        if !plan.pieces.iter().any(|p| durable & bit(p.slot) != 0) {
            return Err(self.nobody_has_it());
        }
        let failed = carry_out(plan, serial);
        if failed.is_empty() {
            self.set_filled(&blank);
        } else {
            self.after_failure(&failed, regions.clone())?;
            self.set_filled(&blank);
        }
        if late {
            self.commit()?;
        }
        if fua { self.settle_filled(regions) } else { Ok(()) }
    }

    fn set_filled(&self, blank: &[u32]) {
        let mut state = self.state.lock();
        blank.iter().for_each(|r| state.regions.set_filled(*r));
    }

    /// Makes durable what must be before these regions are written, and returns with the lock.
    fn opened(
        &self,
        regions: &Range<u32>,
        late: bool,
    ) -> Result<steadfast_runtime::MutexGuard<'_, State>> {
        loop {
            let mut state = self.settled()?;
            let absent = state.absent();
            for region in regions.clone() {
                if !state.is_covered(region) {
                    state.regions.open(region, absent);
                }
            }
            if late || regions.clone().all(|r| state.is_covered(r)) {
                return Ok(state);
            }
            drop(state);
            self.commit()?;
        }
    }

    /// The state, once all changes of the members are in the labels.
    pub(super) fn settled(&self) -> Result<steadfast_runtime::MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        loop {
            if let Some(stopped) = state.stopped() {
                return Err(stopped);
            }
            if state.is_settled() {
                return Ok(state);
            }
            state = self.changed.wait(state);
        }
    }

    /// A write with FUA to a region whose first write is not promised yet: it is from now on.
    fn settle_filled(self: &Arc<Self>, regions: Range<u32>) -> Result<()> {
        let filling = {
            let state = self.state.lock();
            regions.clone().any(|r| state.regions.get(r).state == RegionState::Filling)
        };
        if filling { self.flush_slowly() } else { Ok(()) }
    }

    /// Tells the legs that regions are not needed; they are unwritten from then on. Parts of
    /// regions stay as they are.
    pub(super) fn discard_slowly(self: &Arc<Self>, offset: u64, len: u64) -> Result<()> {
        let state = self.settled()?;
        let regions = state.regions.inside(offset, len);
        if regions.is_empty() {
            return Ok(());
        }
        let (regions, ticket) = self.take_regions(state, regions);
        let done = self.discard_held(&regions);
        self.release(ticket);
        done
    }

    fn discard_held(&self, regions: &Range<u32>) -> Result<()> {
        {
            let mut state = self.settled()?;
            regions.clone().for_each(|r| state.regions.set(r, Region::UNWRITTEN));
        }
        // Before the legs forget: a cut in between must not find the region to be read.
        self.commit()?;
        let sent: Vec<Completion> = {
            let state = self.state.lock();
            let (start, _) = state.regions.bytes_of(regions.start);
            let (last, bytes) = state.regions.bytes_of(regions.end - 1);
            let len = last + bytes - start;
            let legs = slots(state.active()).filter_map(|slot| state.leg(slot));
            legs.map(|(leg, device)| {
                device.submit(Request::Discard { offset: leg.data_start + start, len })
            })
            .collect()
        };
        // Whatever a leg holds there by now does not matter.
        sent.iter().for_each(|c| drop(c.wait()));
        Ok(())
    }
}

/// The parts of a range in regions for which `held` is true.
pub(super) fn runs(
    map: &super::regions::Regions,
    regions: &Range<u32>,
    (offset, len): (u64, u64),
    held: impl Fn(u32) -> bool,
) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for region in regions.clone().filter(|r| held(*r)) {
        let (start, bytes) = map.bytes_of(region);
        let (from, to) = (start.max(offset), (start + bytes).min(offset + len));
        match runs.last_mut() {
            Some((at, run)) if *at + *run == from => *run += to - from,
            _ => runs.push((from, to - from)),
        }
    }
    runs
}

/// The write with zeros before and after it where it begins or ends in a blank region.
fn filled_up(state: &State, offset: u64, data: &Payload, blank: &[u32]) -> (u64, Payload) {
    let end = offset + data.len() as u64;
    let (mut from, mut to) = (offset, end);
    for region in blank {
        let (start, len) = state.regions.bytes_of(*region);
        (from, to) = (from.min(start), to.max(start + len));
    }
    if (from, to) == (offset, end) {
        return (offset, data.clone());
    }
    let mut whole = Payload::new();
    zeros(&mut whole, offset - from);
    data.parts().iter().for_each(|part| whole.push(part.clone()));
    zeros(&mut whole, to - end);
    (from, whole)
}

fn zeros(to: &mut Payload, mut count: u64) {
    while count > 0 {
        let piece = count.min(ZEROS.len() as u64);
        to.push(Bytes::from_static(&ZEROS[..piece as usize]));
        count -= piece;
    }
}

/// Sends a plan and waits for all of it; which legs failed.
fn carry_out(plan: Plan, serial: bool) -> Vec<(usize, BlockError)> {
    let mut failed: Vec<(usize, BlockError)> = Vec::new();
    let mut sent = Vec::new();
    for Piece { slot, device, request } in plan.pieces {
        let completion = device.submit(request);
        if serial {
            drop(completion.wait());
        }
        sent.push((slot, completion));
    }
    for (slot, completion) in sent {
        if let Err(error) = completion.wait() {
            failed.push((slot, error));
        }
    }
    failed
}
