//! Ordinary reads, without the state lock.
//!
//! Most reads are in one region that is in sync, from a leg whose latency is not measured. Memory
//! serves such a read faster than taking the lock and counting the device as in use. So the
//! information for these reads is in an immutable [`ReadView`], kept in *lanes*. A task has a lane
//! for itself while it reads, and uses the view there. If its lane is in use, the task reads with
//! the lock.
//!
//! # Invariants
//!
//! 1. A view is used only while the version is the one of its creation. Whoever changes the state
//!    behind it increases the version first ([`Lanes::invalidate`]), with the lock held.
//! 2. The holders of a region are read before the version: a reader that sees a later change of the
//!    holders also sees the new version.
//! 3. A read that was begun before a change may end after it, as with the lock, which is not held
//!    across a request either.

use std::sync::Arc;

use super::Core;
use super::lanes::{Lanes, ReadView, ReadableLeg};
use super::leg::{Leg, bit};
use super::policy::{Policies, ReadPolicy, WritePolicy};
use super::state::State;
use crate::ondisk::label::LEGS_MAX;

impl Core {
    /// Drops the view that this task has used, if it has ended meanwhile.
    #[cold]
    pub(super) fn leave_lane(&self) {
        let (lane, version) = (self.lanes.of_thread(), self.lanes.version());
        let Some(mut kept) = lane.view.try_lock() else { return };
        if let Some(view) = kept.take_if(|view| view.version != version) {
            self.state.lock().legs.settle(|legs| lane.settle(&view, legs));
            drop(kept);
            drop(view);
        }
    }

    /// Has the next reads of this task's lane go without the lock, if they can. The lane of who
    /// reads at this moment is left to it. The view that was there is to be dropped without the
    /// lock.
    #[must_use = "to be dropped without the lock"]
    pub(super) fn open_lane(&self, state: &mut State) -> Option<Arc<ReadView>> {
        let view = state.view(&self.lanes)?;
        state.legs.settle(|legs| self.lanes.open(view, legs))
    }
}

impl State {
    /// The view of now, if reads can do with one.
    fn view(&mut self, lanes: &Lanes) -> Option<Arc<ReadView>> {
        let Policies { read, write, .. } = self.policies;
        // These need what all reads share: who was last, or how long each leg takes.
        let shared = matches!(read, ReadPolicy::RoundRobin | ReadPolicy::Adaptive);
        // There a leg may lack what was acknowledged.
        let behind = write == WritePolicy::WriteBehind || self.ranges.any_may_be_behind();
        let usual = self.closed.is_none() && self.pending.is_none() && self.checksums.is_none();
        let active = self.legs.whole();
        if shared || behind || !usual || active == 0 {
            return None;
        }
        if let Some(view) = self.legs.view() {
            return Some(Arc::clone(view));
        }
        let readable = |leg: &Option<Leg>| {
            let leg = leg.as_ref().filter(|leg| leg.is_active())?;
            Some(ReadableLeg {
                uuid: leg.uuid,
                epoch: leg.epoch,
                device: Arc::clone(leg.device.as_ref()?),
                data_start: leg.data_start,
            })
        };
        let block = u64::from(self.info.logical_block);
        if !block.is_power_of_two() {
            return None;
        }
        let legs: [Option<ReadableLeg>; LEGS_MAX] = self.legs.each_ref().map(readable);
        let (heats, holders) = self.regions.published();
        let view = Arc::new(ReadView {
            version: lanes.version(),
            policy: read,
            size: self.regions.size(),
            within_block: block - 1,
            shift: self.regions.region_bytes().trailing_zeros(),
            active: (0..LEGS_MAX).filter(|slot| legs[*slot].is_some()).map(bit).sum(),
            legs,
            holders,
            heats,
        });
        self.legs.set_view(&view);
        Some(view)
    }
}
