//! Reads. There are two ways.
//!
//! Most reads take no lock of the state (`lockless`). All others take it once, to choose a route:
//! one leg that holds all of the range, pieces if no leg does, zeros where nothing was written.
//!
//! If the leg fails, or its answer is not what its checksums say, the regions are locked and their
//! legs are asked one after the other (`verify`), which also repairs.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::{BlockDevice, BlockError, Completion, Request, Result, check};
use steadfast_runtime::{now, spawn};

use super::Core;
use super::lanes::LaneRead;
use super::leg::LegFailure;
use super::policy::{LegLatency, ReadPolicy, choose};
use super::state::State;
use crate::joined::{Piece, joined_read};
use crate::ondisk::label::LEGS_MAX;
use crate::ondisk::whole_blocks;

/// A read of one leg.
pub(super) struct LegRead {
    pub slot: usize,
    pub epoch: u64,
    pub device: Arc<dyn BlockDevice>,
    /// Byte of the device.
    pub at: u64,
    /// How long it takes is to be measured.
    timed: bool,
}

/// Where a read goes.
enum ReadRoute {
    /// It is zeros.
    Zeros,
    /// To this leg.
    Leg(LegRead),
    /// In pieces: no leg holds all of it.
    Pieces(Vec<(u64, u64)>),
    /// Nowhere yet: the legs differ, and the range must be synced first.
    NeedsSync,
    /// No leg can serve it.
    Nowhere(BlockError),
}

impl Core {
    /// A read for a caller that waits: a leg's answer is not handed to another task.
    pub(super) fn read_now(self: &Arc<Self>, offset: u64, len: u64) -> Result<Bytes> {
        if !self.checksums
            && let Some(LaneRead { answer, view_ended }) = self.lanes.read(offset, len)
        {
            if view_ended {
                self.leave_lane();
            }
            return answer.or_else(|failed| {
                self.answered((failed.slot, failed.epoch), None, false);
                self.read_by_region(offset, len, None, Some(failed))
            });
        }
        let (at, blocks) = self.unit_of(offset, len);
        let (route, before) = {
            let mut state = self.state.lock();
            check(&state.info, &Request::Read { offset, len })?;
            let route = self.route(&mut state, at, blocks);
            (route, self.open_lane(&mut state))
        };
        drop(before);
        let bytes = self.follow(route, at, blocks)?;
        let from = (offset - at) as usize;
        Ok(if blocks == len { bytes } else { bytes.slice(from..from + len as usize) })
    }

    pub(super) fn submit_read(self: &Arc<Self>, offset: u64, len: u64) -> Completion {
        let (at, blocks) = self.unit_of(offset, len);
        let (completer, completion) = Completion::pending();
        let from = (offset - at) as usize;
        let give = move |answer: Result<Bytes>| {
            completer.complete(answer.map(|bytes| bytes.slice(from..from + len as usize)));
        };
        let route = self.route(&mut self.state.lock(), at, blocks);
        let core = Arc::clone(self);
        match route {
            ReadRoute::Leg(leg) => {
                let begun = leg.timed.then(now);
                let below = leg.device.submit(Request::Read { offset: leg.at, len: blocks });
                below.on_done(move |answer| {
                    core.answered((leg.slot, leg.epoch), begun, answer.is_ok());
                    let answer = answer.clone();
                    match answer.as_ref().is_ok_and(|bytes| core.is_good(at, bytes)) {
                        true => give(answer),
                        // It may have to wait, which a hook must not.
                        false => drop(spawn("mirror read", move || {
                            give(core.proved(&leg, at, blocks, answer));
                        })),
                    }
                });
            }
            ReadRoute::NeedsSync => {
                drop(spawn("mirror read", move || give(core.follow(route, at, blocks))));
            }
            ReadRoute::Pieces(pieces) => {
                let all = self.submit_pieces(at, blocks, pieces);
                all.on_done(move |answer| give(answer.clone()));
            }
            ReadRoute::Zeros => give(Ok(vec![0; blocks as usize].into())),
            ReadRoute::Nowhere(error) => give(Err(error)),
        }
        completion
    }

    /// What is read for a range: whole blocks, where these are verified.
    fn unit_of(&self, offset: u64, len: u64) -> (u64, u64) {
        if self.checksums { whole_blocks(offset, len) } else { (offset, len) }
    }

    /// Waits until a route has given its bytes.
    fn follow(self: &Arc<Self>, mut route: ReadRoute, at: u64, len: u64) -> Result<Bytes> {
        loop {
            match route {
                ReadRoute::Leg(leg) => {
                    let begun = leg.timed.then(now);
                    let answer = leg.device.read(leg.at, len);
                    self.answered((leg.slot, leg.epoch), begun, answer.is_ok());
                    return self.proved(&leg, at, len, answer);
                }
                ReadRoute::Pieces(pieces) => return self.submit_pieces(at, len, pieces).wait(),
                ReadRoute::Zeros => return Ok(vec![0; len as usize].into()),
                ReadRoute::Nowhere(error) => return Err(error),
                // A write that fails on all legs may leave them out of sync at any time.
                ReadRoute::NeedsSync => self.sync_to_read(at, len)?,
            }
            route = self.route(&mut self.state.lock(), at, len);
        }
    }

    /// A leg's answer, if it is what was written; otherwise that of another leg.
    fn proved(
        self: &Arc<Self>,
        leg: &LegRead,
        at: u64,
        len: u64,
        answer: Result<Bytes>,
    ) -> Result<Bytes> {
        match answer {
            Ok(bytes) if self.is_good(at, &bytes) || self.is_good_now(at, &bytes) => Ok(bytes),
            Ok(_) => self.read_by_region(at, len, Some(leg.slot), None),
            Err(error) => {
                let failed = LegFailure { slot: leg.slot, epoch: leg.epoch, error };
                self.read_by_region(at, len, None, Some(failed))
            }
        }
    }

    fn submit_pieces(self: &Arc<Self>, at: u64, len: u64, pieces: Vec<(u64, u64)>) -> Completion {
        let read = |(from, len)| Piece {
            at: (from - at) as usize,
            completion: self.submit_read(from, len),
        };
        joined_read(len as usize, pieces.into_iter().map(read).collect())
    }

    fn route(self: &Arc<Self>, state: &mut State, offset: u64, len: u64) -> ReadRoute {
        let regions = state.regions.of(offset, len);
        let behind = state.ranges.behind(offset, offset + len);
        // Most reads: there is nothing to decide, to copy or to write down.
        if state.closed.is_none() && state.pending.is_none() {
            let candidates = state.legs.whole() & state.regions.holders(regions.clone()) & !behind;
            if candidates != 0 {
                regions.for_each(|region| state.regions.warm(region));
                return self.to_one(state, candidates, offset, len);
            }
        }
        if let Some(closed) = state.closed.as_ref().and_then(|_| state.stopped()) {
            return ReadRoute::Nowhere(closed);
        }
        if !state.looks_only() && state.needs_sync(regions.clone()) {
            return ReadRoute::NeedsSync;
        }
        let (mut blank, mut lacking) = (0, 0);
        for region in regions.clone() {
            state.regions.warm(region);
            match state.regions.is_blank(region) {
                true => blank += 1,
                false => lacking |= state.regions.lacking(region),
            }
        }
        if blank == regions.len() {
            return ReadRoute::Zeros;
        }
        let active = state.legs.active();
        self.request_promotion(state, active, regions.clone());
        let candidates = active & !lacking & !behind;
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
        match state.legs.read_from(slot, offset, len, timed) {
            Some((epoch, device, at)) => ReadRoute::Leg(LegRead { slot, epoch, device, at, timed }),
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
