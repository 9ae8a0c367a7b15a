//! Promotion of regions to a partial leg: it holds the regions that are read most (as dm-cache).
//!
//! A read of a region that is not on the leg may promote it: a separate task copies it. If there is
//! no room, a region must be hotter than the coldest of some candidates, by a margin that prevents
//! thrashing. After a start the hottest regions of the map are promoted first.

use std::ops::Range;
use std::sync::Arc;

use steadfast_block::Result;
use steadfast_runtime::{now, spawn};

use super::Core;
use super::core::Replicas;
use super::leg::bit;
use super::promotion::is_hotter;
use super::resync::{ResyncReport, ResyncThrottle};
use super::state::State;

/// After a demotion the task pauses this many times as long as the copy took, otherwise once as
/// long: other requests to the disks come first.
const REST: u32 = 4;

impl Core {
    /// These regions were read: requests the promotion of those that are hot enough, to one of the
    /// `active` legs.
    pub(super) fn request_promotion(
        self: &Arc<Self>,
        state: &mut State,
        active: u8,
        regions: Range<u32>,
    ) {
        let Some((slot, frames)) = state.legs.frames_among(active) else { return };
        let worth = |region: &u32| {
            let lacks = state.regions.lacking(*region) & bit(slot) != 0;
            lacks
                && !state.regions.is_blank(*region)
                && state.fill.takes(state.regions.heat(*region), || frames.has_room())
        };
        let wanted: Vec<u32> = regions.filter(worth).collect();
        if wanted.is_empty() || state.closing || state.info.read_only || !state.is_settled() {
            return;
        }
        if state.fill.request(wanted) {
            let core = Arc::clone(self);
            spawn("mirror fill", move || core.fill());
        }
    }

    /// Promotes the requested regions, the hottest first.
    fn fill(self: &Arc<Self>) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let goes_on = !state.closing && state.stopped().is_none();
                let State { fill, regions, .. } = &mut *state;
                match fill.take_hottest(|r| regions.heat(r)).filter(|_| goes_on) {
                    Some(region) => region,
                    None => {
                        fill.end();
                        drop(state);
                        self.changed.notify_all();
                        return;
                    }
                }
            };
            let begun = now();
            let rest = match self.promote_one(next) {
                Ok(Some(made_room)) => (now() - begun) * if made_room { REST } else { 1 },
                // The region stays where it is; or the mirror has failed, which the next pass sees.
                Ok(None) | Err(_) => continue,
            };
            self.pause(rest);
        }
    }

    /// Promotes a region if it is hot enough. Whether another one was demoted.
    fn promote_one(self: &Arc<Self>, region: u32) -> Result<Option<bool>> {
        let (slot, frames, victim) = {
            let mut state = self.settled()?;
            let Some((slot, frames)) = state.legs.frames() else { return Ok(None) };
            let frames = Arc::clone(frames);
            let held = |r: u32| state.regions.lacking(r) & bit(slot) == 0;
            if held(region) || region >= state.regions.count() {
                return Ok(None);
            }
            // A frame of a discarded or dropped region is free to take.
            let heat = |r: u32| if held(r) { state.regions.heat(r) } else { 0 };
            let victim = if frames.has_room() { None } else { frames.coldest(heat) };
            if let Some(coldest) = victim {
                let (floor, hot) = (heat(coldest), state.regions.heat(region));
                let stays = held(coldest) && !is_hotter(hot, floor);
                state.fill.floor = floor;
                if stays {
                    return Ok(None);
                }
            }
            (slot, frames, victim)
        };
        if let Some(victim) = victim {
            let (_, ticket) = self.take_regions(self.settled()?, victim..victim + 1);
            // First no new read goes there: invariant 2 of `partial`.
            self.state.lock().regions.drop_copied(victim, bit(slot));
            frames.vacate(victim);
            self.release(ticket);
        }
        // An unreadable region is not promoted.
        self.copy_to(region, Some(bit(slot)))?;
        Ok(Some(victim.is_some()))
    }
}

impl Replicas {
    /// Promotes the hottest regions while the partial leg has room; `done` counts them.
    pub(super) fn refill(&self, throttle: ResyncThrottle, done: &mut ResyncReport) -> Result<()> {
        let (slot, frames, hottest) = {
            let state = self.settled()?;
            let Some((slot, frames)) = state.legs.frames() else { return Ok(()) };
            let lacks = |r: &u32| {
                !state.regions.is_blank(*r)
                    && state.regions.lacking(*r) & bit(slot) != 0
                    && state.regions.heat(*r) > 0
            };
            let mut hottest: Vec<u32> = (0..state.regions.count()).filter(lacks).collect();
            hottest.sort_by_key(|r| std::cmp::Reverse(state.regions.heat(*r)));
            (slot, Arc::clone(frames), hottest)
        };
        let most = throttle.regions.unwrap_or(usize::MAX);
        for region in hottest {
            if !frames.has_room() || done.regions as usize >= most || self.state.lock().closing {
                break;
            }
            let bytes = self.copy_to(region, Some(bit(slot)))?.unwrap_or(0);
            done.regions += u64::from(bytes > 0);
            done.bytes += bytes;
            self.keep_to(throttle, bytes);
        }
        Ok(())
    }
}
