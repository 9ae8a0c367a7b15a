//! Reads.
//!
//! A read goes to one leg that holds all of the range. If no leg does, it is split into regions.
//! Unwritten regions are zeros. If a leg fails, the next one serves the read, and its data is
//! written back to the failed one.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, Request, Result, check};
use steadfast_runtime::{Nanos, now, spawn};

use super::Core;
use super::leg::{LegFailure, bit, mask_of, slots};
use super::policy::{LegLatency, ReadPolicy, choose};
use super::state::State;
use crate::joined::{Piece, joined_read};
use crate::ondisk::label::LEGS_MAX;
use crate::ondisk::whole_blocks;

/// Where a read goes.
pub(super) enum ReadRoute {
    /// It is zeros.
    Zeros,
    /// To this leg. `timed`: how long it takes is wanted.
    Leg { slot: usize, epoch: u64, device: Arc<dyn BlockDevice>, at: u64, timed: bool },
    /// In pieces: no leg holds all of it.
    Pieces(Vec<(u64, u64)>),
    /// Nowhere yet: the legs differ, and the range must be synced first.
    NeedsSync,
    /// No leg can serve it.
    Nowhere(BlockError),
}

impl Core {
    pub(super) fn submit_read(self: &Arc<Self>, offset: u64, len: u64) -> Completion {
        if self.checksums && whole_blocks(offset, len) != (offset, len) {
            return self.submit_part(offset, len);
        }
        let way = self.way(&mut self.state.lock(), offset, len, 0);
        self.go(way, offset, len)
    }

    /// A read of partial blocks in a mirror that verifies whole blocks.
    fn submit_part(self: &Arc<Self>, offset: u64, len: u64) -> Completion {
        let (at, blocks) = whole_blocks(offset, len);
        let (completer, completion) = Completion::pending();
        let from = (offset - at) as usize;
        self.submit_read(at, blocks).on_done(move |answer| {
            completer.complete(answer.clone().map(|bytes| bytes.slice(from..from + len as usize)));
        });
        completion
    }

    fn go(self: &Arc<Self>, way: ReadRoute, offset: u64, len: u64) -> Completion {
        match way {
            ReadRoute::Zeros => Completion::ready(Ok(vec![0; len as usize].into())),
            ReadRoute::Nowhere(error) => Completion::ready(Err(error)),
            ReadRoute::Leg { slot, epoch, device, at, timed } => {
                self.from_leg((slot, epoch, timed), &device, at, (offset, len))
            }
            ReadRoute::NeedsSync => {
                let (core, (completer, completion)) = (Arc::clone(self), Completion::pending());
                spawn("mirror read", move || {
                    let decided = core.sync_to_read(offset, len);
                    completer.complete(decided.and_then(|()| core.read_now(offset, len)));
                });
                completion
            }
            ReadRoute::Pieces(pieces) => {
                let read = |(at, len)| Piece {
                    at: (at - offset) as usize,
                    completion: self.submit_read(at, len),
                };
                joined_read(len as usize, pieces.into_iter().map(read).collect())
            }
        }
    }

    /// The short way for a caller that waits: no hand-over to another task.
    pub(super) fn read_now(self: &Arc<Self>, offset: u64, len: u64) -> Result<Bytes> {
        if self.checksums {
            return self.read_verified(offset, len);
        }
        if let Some(answer) = self.read_lockless(offset, len) {
            return answer;
        }
        let mut way = {
            let mut state = self.state.lock();
            check(&state.info, &Request::Read { offset, len })?;
            if let Some((slot, epoch, device, at)) = quick_way(&mut state, offset, len) {
                let before = self.open_lane(&mut state);
                drop(state);
                drop(before);
                return device.read(at, len).or_else(|error| {
                    self.answered((slot, epoch), None, false);
                    self.retry_read(offset, len, LegFailure { slot, epoch, error })
                });
            }
            self.way(&mut state, offset, len, 0)
        };
        if matches!(way, ReadRoute::NeedsSync) {
            self.sync_to_read(offset, len)?;
            way = self.way(&mut self.state.lock(), offset, len, 0);
        }
        let ReadRoute::Leg { slot, epoch, device, at, timed } = way else {
            return self.go(way, offset, len).wait();
        };
        let begun = timed.then(now);
        let answer = device.read(at, len);
        self.answered((slot, epoch), begun, answer.is_ok());
        answer.or_else(|error| self.retry_read(offset, len, LegFailure { slot, epoch, error }))
    }

    pub(super) fn way(
        self: &Arc<Self>,
        state: &mut State,
        offset: u64,
        len: u64,
        tried: u8,
    ) -> ReadRoute {
        if let Some(closed) = state.closed.as_ref().and_then(|_| state.stopped()) {
            return ReadRoute::Nowhere(closed);
        }
        let regions = state.regions.of(offset, len);
        let looks_only = state.looks_only();
        if !looks_only && state.needs_sync(regions.clone()) {
            return ReadRoute::NeedsSync;
        }
        let (mut blank, mut lacking) = (0, 0);
        for region in regions.clone() {
            state.regions.warm(region);
            if state.regions.is_blank(region) {
                blank += 1;
            } else {
                lacking |= state.regions.lacking(region);
                // Who only looks, and cannot read one leg, may be answered by another.
                if looks_only && tried != 0 {
                    lacking &= !state.regions.out_of_sync(region);
                }
            }
        }
        if blank == regions.len() {
            return ReadRoute::Zeros;
        }
        let active = state.active();
        self.request_promotion(state, active, regions.clone());
        let behind = state.ranges.behind(offset, offset + len);
        let candidates = active & !lacking & !behind & !tried;
        if blank == 0 && candidates != 0 {
            return self.to_one(state, candidates, offset, len);
        }
        if regions.len() > 1 {
            return ReadRoute::Pieces(cut(state, (offset, len)));
        }
        ReadRoute::Nowhere(self.no_leg(state, regions, offset))
    }

    fn to_one(&self, state: &mut State, candidates: u8, offset: u64, len: u64) -> ReadRoute {
        // Nobody else asks how long a leg takes, and to look at the clock takes as long as to read
        // memory.
        let timed = state.policies.read == ReadPolicy::Adaptive;
        let measured: [LegLatency; LEGS_MAX] = match timed {
            true => std::array::from_fn(|slot| {
                state.legs[slot].as_ref().map(|leg| leg.measured).unwrap_or_default()
            }),
            false => Default::default(),
        };
        let size = state.regions.size();
        let so_far = (state.reads, state.last);
        let slot = choose(state.policies.read, candidates, (offset, size), so_far, &measured);
        state.reads += 1;
        state.last = slot;
        if let Some((_, counters, measured)) = state.legs.tallied(slot) {
            measured.in_flight += u64::from(timed);
            counters.reads += 1;
            counters.read_bytes += len;
        }
        let Some(leg) = &state.legs[slot] else {
            return ReadRoute::Nowhere(self.no_leg(state, 0..0, offset));
        };
        let (at, epoch) = (leg.data_start + offset, leg.epoch);
        let pinned = leg.frames.as_ref().map(|frames| frames.pinned(at, len));
        match pinned.or_else(|| leg.device.clone()) {
            Some(device) => ReadRoute::Leg { slot, epoch, device, at, timed },
            None => ReadRoute::Nowhere(self.no_leg(state, 0..0, offset)),
        }
    }

    fn no_leg(&self, state: &State, regions: Range<u32>, offset: u64) -> BlockError {
        let erred = state.legs.iter().flatten().find_map(|leg| leg.erred.clone());
        let lacking = regions.fold(0, |all, r| all | state.regions.lacking(r));
        let reason = match erred {
            Some(error) => format!("no leg could be read; the last error was: {error}"),
            None => format!("no leg that is there holds this region (stale: {lacking:#06b})"),
        };
        BlockError::Io { device: self.name.clone(), op: "read", offset, reason }
    }

    fn from_leg(
        self: &Arc<Self>,
        (slot, epoch, timed): (usize, u64, bool),
        device: &Arc<dyn BlockDevice>,
        at: u64,
        (offset, len): (u64, u64),
    ) -> Completion {
        let begun = timed.then(now);
        let below = device.submit(Request::Read { offset: at, len });
        let (completer, completion) = Completion::pending();
        let core = Arc::clone(self);
        below.on_done(move |answer| {
            core.answered((slot, epoch), begun, answer.is_ok());
            match answer.clone() {
                Ok(bytes) if !core.checksums || core.is_good(offset, &bytes) => {
                    completer.complete(Ok(bytes));
                }
                Ok(bytes) => drop(spawn("mirror read proved", move || {
                    completer.complete(match core.is_good_now(offset, &bytes) {
                        true => Ok(bytes),
                        false => core.verify_range(offset, len, Some(slot), None),
                    });
                })),
                Err(error) => drop(spawn("mirror read failed", move || {
                    let failed = LegFailure { slot, epoch, error };
                    completer.complete(core.retry_read(offset, len, failed));
                })),
            }
        });
        completion
    }

    /// A leg has answered. `begun`: when it was asked, if that is wanted.
    pub(super) fn answered(&self, (slot, epoch): (usize, u64), begun: Option<Nanos>, good: bool) {
        if begun.is_none() && good {
            return;
        }
        let mut state = self.state.lock();
        let leg = state.legs.tallied(slot).filter(|(of, ..)| *of == epoch);
        let Some((_, counters, measured)) = leg else { return };
        if let Some(begun) = begun {
            measured.in_flight = measured.in_flight.saturating_sub(1);
            measured.answered(now() - begun);
        }
        counters.errors += u64::from(!good);
    }

    /// After a leg has failed: asks the others, and repairs the first.
    pub(super) fn retry_read(
        self: &Arc<Self>,
        offset: u64,
        len: u64,
        first: LegFailure,
    ) -> Result<Bytes> {
        if self.checksums {
            return self.verify_range(offset, len, None, Some(first));
        }
        let mut failed = vec![first];
        let regions = self.state.lock().regions.of(offset, len);
        loop {
            let tried = mask_of(&failed);
            let way = self.way(&mut self.state.lock(), offset, len, tried);
            match way {
                ReadRoute::Leg { slot, epoch, device, at, timed } => {
                    let begun = timed.then(now);
                    let answer = device.read(at, len);
                    self.answered((slot, epoch), begun, answer.is_ok());
                    match answer {
                        Err(error) => failed.push(LegFailure { slot, epoch, error }),
                        Ok(bytes) => {
                            self.repair(&failed, offset, len, &regions);
                            return Ok(bytes);
                        }
                    }
                }
                // No other leg holds all of it, but perhaps of each region one does.
                ReadRoute::Nowhere(_) | ReadRoute::Pieces(_) if regions.len() > 1 => {
                    return self.read_by_region(offset, len, regions);
                }
                ReadRoute::Zeros => return Ok(vec![0; len as usize].into()),
                ReadRoute::NeedsSync => self.sync_to_read(offset, len)?,
                ReadRoute::Nowhere(_) | ReadRoute::Pieces(_) => {
                    let first = failed.swap_remove(0);
                    self.note_error(&first);
                    return Err(first.error);
                }
            }
        }
    }

    fn read_by_region(
        self: &Arc<Self>,
        offset: u64,
        len: u64,
        regions: Range<u32>,
    ) -> Result<Bytes> {
        let pieces = {
            let state = self.state.lock();
            debug_assert!(regions.len() > 1);
            cut(&state, (offset, len))
        };
        let mut out = Vec::with_capacity(len as usize);
        for (at, len) in pieces {
            out.extend_from_slice(&self.read_now(at, len)?);
        }
        Ok(out.into())
    }

    /// Records the error of a leg that is the only holder and failed.
    pub(super) fn note_error(&self, failed: &LegFailure) {
        let mut state = self.state.lock();
        if let Some(leg) = state.legs[failed.slot].as_mut().filter(|l| l.epoch == failed.epoch) {
            leg.erred = Some(failed.error.to_string());
        }
    }

    /// Writes the data of a good leg to legs that could not read it. Those that fail the write, or
    /// are gone, are dropped.
    fn repair(
        self: &Arc<Self>,
        failed: &[LegFailure],
        offset: u64,
        len: u64,
        regions: &Range<u32>,
    ) {
        // Being assembled, read-only, closed or failed: no repair.
        if self.state.lock().assembling {
            return;
        }
        let Ok(state) = self.settled() else { return };
        let (_, ticket) = self.take_regions(state, regions.clone());
        let mut dropped: Vec<LegFailure> = Vec::new();
        for LegFailure { slot, epoch, error } in failed {
            let (slot, epoch) = (*slot, *epoch);
            if matches!(error, BlockError::Gone { .. }) {
                dropped.push(LegFailure { slot, epoch, error: error.clone() });
            } else if let Err(error) = self.copy_range(slot, mask_of(failed), offset, len) {
                dropped.push(LegFailure { slot, epoch, error });
            }
        }
        if !dropped.is_empty() {
            // An error here is in `failed`, and every write and flush reports it.
            drop(self.fail(&dropped, regions.clone(), 0));
        }
        self.release(ticket);
    }

    /// Copies a range that is held to a leg that holds its regions and could not read it, from one
    /// that holds them too and is not among those that `failed`; whether there was one.
    pub(super) fn copy_range(&self, to: usize, failed: u8, offset: u64, len: u64) -> Result<bool> {
        let (sources, target) = {
            let state = self.state.lock();
            let regions = state.regions.of(offset, len);
            let from = regions.fold(u8::MAX, |from, r| from & state.repairs(r, to));
            let from = slots(from & !failed).filter_map(|slot| state.leg(slot));
            let from = from.map(|(leg, device)| (Arc::clone(device), leg.data_start));
            let to = state.leg(to).map(|(leg, device)| (Arc::clone(device), leg.data_start));
            (from.collect::<Vec<_>>(), to)
        };
        let read = |(source, start): &(Arc<dyn BlockDevice>, u64)| source.read(start + offset, len);
        let good = sources.iter().find_map(|source| read(source).ok());
        match (good, target) {
            (Some(good), Some((target, start))) => {
                target.write(start + offset, good.into()).map(|()| true)
            }
            // Discarded, dropped or made stale meanwhile, or no other leg is trusted.
            _ => Ok(false),
        }
    }
}

impl State {
    /// Whether a read changes no state: the mirror is only being assembled, or nothing can be
    /// written any more.
    pub(super) fn looks_only(&self) -> bool {
        self.assembling || self.info.read_only || self.failed.is_some()
    }

    /// Legs from which a region may be repaired on another holder. Not a volatile leg if another
    /// durable leg, present or missing, holds the region.
    pub(super) fn repairs(&self, region: u32, to: usize) -> u8 {
        let holders = !self.regions.lacking(region) & !bit(to);
        if self.regions.is_blank(region) || self.regions.lacking(region) & bit(to) != 0 {
            return 0;
        }
        let durable = self.durable() & holders;
        let only = if durable != 0 { durable } else { u8::MAX };
        self.active() & holders & only
    }
}

/// The way of a read inside of one region for which nothing is to be decided, copied or measured:
/// of most reads, and memory answers in less time than the long way takes. The leg that is asked,
/// its epoch and device, and where.
fn quick_way(
    state: &mut State,
    offset: u64,
    len: u64,
) -> Option<(usize, u64, Arc<dyn BlockDevice>, u64)> {
    let policy = state.policies.read;
    let plain = state.closed.is_none() && state.pending.is_none();
    if !plain || policy == ReadPolicy::Adaptive {
        return None;
    }
    let (region, holders) = state.regions.only(offset, len)?;
    let behind = state.ranges.behind(offset, offset + len);
    let candidates = state.legs.whole() & holders & !behind;
    if candidates == 0 {
        return None;
    }
    state.regions.warm(region);
    let so_far = (state.reads, state.last);
    let slot = choose(policy, candidates, (offset, state.regions.size()), so_far, &[]);
    state.reads += 1;
    state.last = slot;
    let (epoch, device, start) = state.legs.read_from(slot, len)?;
    Some((slot, epoch, device, start + offset))
}

/// A range cut at the borders of regions.
pub(super) fn cut(state: &State, (offset, len): (u64, u64)) -> Vec<(u64, u64)> {
    let piece = |region: u32| {
        let (start, bytes) = state.regions.bytes_of(region);
        let (from, to) = (start.max(offset), (start + bytes).min(offset + len));
        (from, to - from)
    };
    state.regions.of(offset, len).map(piece).collect()
}
