//! Resync: the stale regions of legs are copied to them.
//!
//! One mechanism for every cause. A leg that was missing and a new leg differ only in the number of
//! stale regions. Out-of-sync regions are copied in the same way. A copied region stays stale, or
//! dirty, in the durable map until the leg was flushed, so an interrupted resync continues where it
//! stopped.
//!
//! A region is copied from a durable leg. A volatile leg is a source only if no durable leg of the
//! mirror, present or missing, holds the region.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{Request, Result};
use steadfast_runtime::now;

use super::checksums::UnflushedRecord;
use super::core::Replicas;
use super::leg::{Leg, LegFailure, bit, mask_of, send_all, slots};
use super::state::State;
use crate::ondisk::label::LEGS_MAX;
use crate::ondisk::map::RegionState;
use crate::planted::Bug;

/// The epochs of all legs.
type Epochs = [u64; LEGS_MAX];

/// Bytes that are copied at once.
const COPY_BYTES: u64 = 1 << 20;
/// Regions between two times that progress is made durable.
const CHECKPOINT_REGIONS: usize = 64;

/// How fast a resync or a scrub goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResyncThrottle {
    /// At most so many bytes a second, at least one; `None`: as fast as the legs.
    pub bytes_per_second: Option<u64>,
    /// Stops after so many regions; `None`: when all is done.
    pub regions: Option<usize>,
}

impl ResyncThrottle {
    /// Refuses one that lets nothing through.
    pub(super) fn check(self, what: &str) -> crate::Result<()> {
        match self.bytes_per_second {
            Some(0) => refuse!("a {what} at 0 bytes a second never ends"),
            _ => Ok(()),
        }
    }
}

/// What a resync did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResyncReport {
    /// Regions copied.
    pub regions: u64,
    /// Bytes copied.
    pub bytes: u64,
    /// Regions that no leg could give.
    pub unreadable: u64,
    /// Nothing is left to do.
    pub complete: bool,
}

impl State {
    /// Regions that active legs lack, in the order in which they are copied: where a volatile leg
    /// is filled, the hottest first.
    fn to_copy(&self) -> Vec<u32> {
        // Regions of a partial leg are promoted (`promote`), not resynced.
        let active = self.legs.active() & !self.legs.partial();
        let lacks = |mask: u8| {
            move |r: &u32| !self.regions.is_blank(*r) && self.regions.lacking(*r) & mask != 0
        };
        let all = || 0..self.regions.count();
        let durable = active & self.legs.durable();
        // Durable legs come first.
        let mut first: Vec<u32> = all().filter(lacks(durable)).collect();
        let behind = |r: &u32| !lacks(durable)(r) && lacks(active)(r);
        let mut rest: Vec<u32> = all().filter(behind).collect();
        rest.sort_by_key(|r| std::cmp::Reverse(self.regions.heat(*r)));
        first.append(&mut rest);
        first
    }

    /// Legs that a region may be copied from, the best first.
    pub(super) fn sources(&self, region: u32, volatile_too: bool) -> Vec<usize> {
        let lacking = self.regions.lacking(region);
        let durable = self.legs.durable();
        let good = self.legs.active() & !lacking;
        if volatile_too {
            return slots(good & !durable).chain(slots(good & durable)).collect();
        }
        let somewhere = durable & !lacking != 0;
        let candidates = if somewhere { good & durable } else { good };
        slots(candidates).collect()
    }
}

impl Replicas {
    /// Copies regions until nothing is lacking or the throttle says stop.
    pub(super) fn resync(&self, throttle: ResyncThrottle) -> Result<ResyncReport> {
        {
            let mut state = self.settled()?;
            if state.resyncing {
                return Ok(ResyncReport::default());
            }
            state.resyncing = true;
        }
        let mut done = self.resync_alone(throttle);
        if let Ok(so_far) = &mut done
            && so_far.complete
            && let Err(error) = self.refill(throttle, so_far)
        {
            done = Err(error);
        }
        self.state.lock().resyncing = false;
        self.changed.notify_all();
        done
    }

    fn resync_alone(&self, throttle: ResyncThrottle) -> Result<ResyncReport> {
        let mut done = ResyncReport::default();
        let limit = throttle.regions.unwrap_or(usize::MAX);
        let work = self.settled()?.to_copy();
        let (mut complete, mut since, mut copied) = (true, 0, 0);
        for region in work {
            // What cannot be copied does not count: it would keep a resync in parts from ever
            // reaching what lies behind it.
            if copied == limit || self.state.lock().closing {
                complete = false;
                break;
            }
            let bytes = self.copy_region(region, &mut done)?;
            copied += usize::from(bytes > 0);
            since += 1;
            if since == CHECKPOINT_REGIONS {
                self.checkpoint()?;
                since = 0;
            }
            self.keep_to(throttle, bytes);
        }
        self.checkpoint()?;
        done.complete = complete && self.settled()?.to_copy().is_empty();
        Ok(done)
    }

    /// Waits as long as so many bytes take.
    pub(super) fn keep_to(&self, throttle: ResyncThrottle, bytes: u64) {
        if let Some(rate) = throttle.bytes_per_second.filter(|rate| *rate > 0) {
            self.pause(Duration::from_secs_f64(bytes as f64 / rate as f64));
        }
    }

    /// Waits so long, or until the mirror is closed.
    pub(super) fn pause(&self, time: Duration) {
        let until = now() + time;
        let mut state = self.state.lock();
        while !state.closing && now() < until {
            state = self.changed.wait_timeout(state, until - now()).0;
        }
    }

    /// Makes durable what was copied.
    pub(super) fn checkpoint(&self) -> Result<()> {
        let (copied, epochs, records): (Vec<(u32, u8)>, Epochs, BTreeMap<u32, UnflushedRecord>) = {
            let mut state = self.settled()?;
            let known = state.checksums.as_mut();
            let records = known.map(|known| std::mem::take(&mut known.written));
            let whole = !state.legs.partial();
            let all = (0..state.regions.count()).map(|r| (r, state.regions.copied(r) & whole));
            let copied = all.filter(|(_, legs)| *legs != 0).collect();
            (copied, state.legs.epochs(), records.unwrap_or_default())
        };
        if copied.is_empty() && records.is_empty() {
            return Ok(());
        }
        self.flush_legs()?;
        {
            let mut state = self.settled()?;
            // A leg that was away meanwhile may not have been flushed.
            let flushed = state.legs.of_same_epoch(epochs);
            for (region, legs) in copied {
                state.set_fresh(region, legs & flushed, &records);
                state.regions.set_clean_if_untouched(region);
            }
            state.set_summed(&records);
        }
        self.commit()
    }

    /// Copies a region to all legs that lack it; how many bytes that were.
    pub(super) fn copy_region(&self, region: u32, done: &mut ResyncReport) -> Result<u64> {
        let copied = self.copy_to(region, None)?;
        done.unreadable += u64::from(copied.is_none());
        done.regions += u64::from(copied.is_some_and(|bytes| bytes > 0));
        done.bytes += copied.unwrap_or(0);
        Ok(copied.unwrap_or(0))
    }

    /// Copies a region to these legs, or to all but the partial one; `None`: it cannot be read.
    pub(super) fn copy_to(&self, region: u32, legs: Option<u8>) -> Result<Option<u64>> {
        let (_, ticket) = self.take_regions(self.settled()?, region..region + 1);
        let legs = legs.unwrap_or_else(|| !self.state.lock().legs.partial());
        let copied = self.copy_held(region, legs);
        self.release(ticket);
        match copied {
            Err(_) if self.state.lock().stopped().is_none() => Ok(None),
            copied => copied.map(Some),
        }
    }

    /// Copies a region, whose range is locked, to those of these legs on which it is stale. An
    /// out-of-sync region is copied to all that differ; if its primary cannot be read, another leg
    /// becomes the primary.
    fn copy_held(&self, region: u32, legs: u8) -> Result<u64> {
        let mut tried = 0;
        loop {
            match self.copy_once(region, legs) {
                Err(error) if !self.next_primary(region, &mut tried) => return Err(error),
                Err(_) => {}
                copied => return copied,
            }
        }
    }

    fn copy_once(&self, region: u32, legs: u8) -> Result<u64> {
        let _pin = self.pin(region);
        self.load(region, true);
        let (sources, targets, epochs, (start, len)) = {
            let state = self.settled()?;
            if state.regions.is_blank(region) {
                return Ok(0);
            }
            let volatile_too = self.planted.has(Bug::VolatileSource);
            let legs = legs | state.regions.out_of_sync(region);
            let targets = state.legs.active() & state.regions.lacking(region) & legs;
            let room =
                |slot: &usize| match state.legs.leg(*slot).and_then(|(leg, _)| leg.frames.as_ref())
                {
                    Some(frames) => frames.place(region),
                    None => true,
                };
            let targets = slots(targets).filter(room).fold(0, |all, slot| all | bit(slot));
            let sources = state.sources(region, volatile_too);
            (sources, targets, state.legs.epochs(), state.regions.bytes_of(region))
        };
        // A leg that is removed meanwhile, and perhaps comes back, does not have all of it.
        let mut good = targets;
        let mut at = start;
        while at < start + len && good != 0 {
            let piece = COPY_BYTES.min(start + len - at);
            let bytes = self.read_source(region, &sources, at, piece)?;
            let (sent_to, failed) = self.write_targets(good, epochs, at, &bytes);
            good = sent_to & !mask_of(&failed);
            if !failed.is_empty() {
                self.fail(&failed, region..region + 1, 0)?;
            }
            at += piece;
        }
        if self.checksums {
            let (durable, clean) = {
                let state = self.state.lock();
                (state.legs.durable(), state.regions.get(region).state == RegionState::Clean)
            };
            // What memory is given of a region that is written to is not worth a record.
            if clean || good & durable != 0 {
                self.save_copied(region, good & durable)?;
            }
        }
        let mut state = self.state.lock();
        good &= state.legs.of_same_epoch(epochs);
        if self.planted.has(Bug::CopyToWhoLeft) {
            good = targets;
        }
        state.regions.set_copied(region, good);
        Ok(if good == 0 { 0 } else { len })
    }

    /// A part of a region that is held, from the first source that can be read; with checksums what
    /// they prove, whichever leg has it, and of other blocks what counts from now on.
    fn read_source(&self, region: u32, sources: &[usize], at: u64, len: u64) -> Result<Bytes> {
        let mut order = self.state.lock().holders_of(region);
        let place = |slot| sources.iter().position(|s| *s == slot);
        order.retain(|holder| self.checksums || place(holder.slot).is_some());
        order.sort_by_key(|holder| place(holder.slot).unwrap_or(usize::MAX));
        let trusted = sources.iter().fold(0, |all, slot| all | bit(*slot));
        self.learn_from(region, (at, len), &order, trusted)
    }

    /// Writes to those of these legs that were in use all the time; which they were, and which
    /// of them failed.
    fn write_targets(
        &self,
        targets: u8,
        epochs: Epochs,
        offset: u64,
        bytes: &Bytes,
    ) -> (u8, Vec<LegFailure>) {
        let (there, requests) = {
            let state = self.state.lock();
            let there = targets & state.legs.of_same_epoch(epochs);
            let write = |leg: &Leg| {
                let data = bytes.clone().into();
                Request::Write { offset: leg.data_start + offset, data, fua: false }
            };
            (there, state.legs.requests(there, write))
        };
        (there, send_all(requests))
    }
}
