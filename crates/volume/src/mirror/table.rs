//! The legs by place, and masks over all of them for ordinary reads, cached until a leg changes.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use steadfast_block::{BlockDevice, Request};

use super::lanes::{Lanes, ReadView};
use super::leg::{Counters, Leg, LegFailure, LegRequest, bit, slots};
use super::partial::PartialFrames;
use super::policy::LegLatency;
use crate::ondisk::label::{LEGS_MAX, MemberState};

/// The legs of a mirror.
#[derive(Default)]
pub(crate) struct Legs {
    legs: [Option<Leg>; LEGS_MAX],
    /// Legs that take requests, if no leg is partial. Forgotten whenever a leg may have changed: to
    /// look at all of them takes a good part of the time of a read from memory.
    whole: Option<u8>,
    /// The same for reads that take no lock.
    view: Option<Arc<ReadView>>,
    lanes: Arc<Lanes>,
    /// Where the next epoch of a leg comes from.
    last_epoch: u64,
}

impl Legs {
    /// Those.
    pub fn new(legs: [Option<Leg>; LEGS_MAX]) -> Legs {
        Legs { legs, ..Legs::default() }
    }

    /// The lanes of reads that take no lock.
    pub(super) fn lanes(&self) -> &Arc<Lanes> {
        &self.lanes
    }

    /// The answer for such reads, once computed.
    pub(super) fn view(&self) -> Option<&Arc<ReadView>> {
        self.view.as_ref()
    }

    /// The cached answer, until a leg changes.
    pub(super) fn set_view(&mut self, view: &Arc<ReadView>) {
        self.view = Some(Arc::clone(view));
    }

    /// Something that a view shows is about to change.
    pub fn invalidate(&mut self) {
        self.whole = None;
        if self.view.take().is_some() {
            self.lanes.invalidate(&mut self.legs);
        }
    }

    /// Counters are brought up to date, and views taken out that nobody can use: to be dropped
    /// without the lock.
    #[must_use = "to be dropped without the lock"]
    pub(super) fn sweep(&mut self) -> Vec<Arc<ReadView>> {
        self.lanes.sweep(&mut self.legs)
    }

    /// Changes counters only.
    pub fn settle<T>(&mut self, settle: impl FnOnce(&mut [Option<Leg>; LEGS_MAX]) -> T) -> T {
        settle(&mut self.legs)
    }

    /// Legs that take requests; none if one of them holds some regions only.
    pub fn whole(&mut self) -> u8 {
        if let Some(whole) = self.whole {
            return whole;
        }
        let partial = self.iter().flatten().any(|leg| leg.frames.is_some());
        let whole = if partial { 0 } else { self.active() };
        self.whole = Some(whole);
        whole
    }

    /// Legs of which this is true.
    pub fn mask(&self, of: impl Fn(&Leg) -> bool) -> u8 {
        let mut mask = 0;
        for (slot, leg) in self.legs.iter().enumerate() {
            if leg.as_ref().is_some_and(&of) {
                mask |= bit(slot);
            }
        }
        mask
    }

    /// Legs that take requests.
    pub fn active(&self) -> u8 {
        self.mask(Leg::is_active)
    }

    /// Legs whose contents survive the loss of power.
    pub fn durable(&self) -> u8 {
        self.mask(|leg| !leg.volatile)
    }

    /// Legs that belong to the mirror and miss what is written now, and those that the map always
    /// has as stale.
    pub fn absent(&self) -> u8 {
        self.mask(|leg| !leg.is_active() || leg.partial)
    }

    /// Legs that hold some regions only.
    pub fn partial(&self) -> u8 {
        self.mask(|leg| leg.partial)
    }

    /// All legs that belong to the mirror.
    pub fn known(&self) -> u8 {
        self.mask(|_| true)
    }

    /// An active leg and its device.
    pub fn leg(&self, slot: usize) -> Option<(&Leg, &Arc<dyn BlockDevice>)> {
        let leg = self.legs.get(slot)?.as_ref().filter(|leg| leg.state == MemberState::Active)?;
        Some((leg, leg.device.as_ref()?))
    }

    /// This request to each of these legs, if it is in use.
    pub fn requests(&self, legs: u8, request: impl Fn(&Leg) -> Request) -> Vec<LegRequest> {
        let request = |slot| {
            let (leg, device) = self.leg(slot)?;
            let (device, request) = (Arc::clone(device), request(leg));
            Some(LegRequest { slot, epoch: leg.epoch, device, request })
        };
        slots(legs).filter_map(request).collect()
    }

    /// The legs' epochs, for [`of_same_epoch`](Self::of_same_epoch).
    pub fn epochs(&self) -> [u64; LEGS_MAX] {
        std::array::from_fn(|slot| self.legs[slot].as_ref().map_or(0, |leg| leg.epoch))
    }

    /// Active legs that have been so since these epochs were noted.
    pub fn of_same_epoch(&self, epochs: [u64; LEGS_MAX]) -> u8 {
        let now = self.epochs();
        slots(self.active()).filter(|slot| now[*slot] == epochs[*slot]).map(bit).sum()
    }

    /// The slots of those that failed and are in use all the same: not of one that was replaced
    /// meanwhile, or is back.
    pub fn still_in_use(&self, failed: &[LegFailure]) -> u8 {
        let same = |f: &&LegFailure| self.leg(f.slot).is_some_and(|(leg, _)| leg.epoch == f.epoch);
        failed.iter().filter(same).fold(0, |mask, f| mask | bit(f.slot))
    }

    /// A leg is not what it was: what was begun with it does not count any more.
    pub fn new_epoch(&mut self, slot: usize) {
        self.invalidate();
        self.last_epoch += 1;
        if let Some(leg) = self.legs[slot].as_mut() {
            leg.epoch = self.last_epoch;
            leg.measured.in_flight = 0;
        }
    }

    /// The partial leg in use: its place and frames.
    pub fn frames(&self) -> Option<(usize, &Arc<PartialFrames>)> {
        self.frames_among(self.active())
    }

    /// The same, of these legs.
    pub fn frames_among(&self, active: u8) -> Option<(usize, &Arc<PartialFrames>)> {
        slots(active).find_map(|slot| {
            let frames = self.legs[slot].as_ref()?.frames.as_ref()?;
            Some((slot, frames))
        })
    }

    /// What is counted and measured of a leg, to be added to, and its epoch: no view shows
    /// these.
    pub fn tallied(&mut self, slot: usize) -> Option<(u64, &mut Counters, &mut LegLatency)> {
        let leg = self.legs.get_mut(slot)?.as_mut()?;
        Some((leg.epoch, &mut leg.counters, &mut leg.measured))
    }

    /// Counts a read of a leg: its epoch, the device that answers it, and where there.
    pub fn read_from(
        &mut self,
        slot: usize,
        offset: u64,
        len: u64,
        timed: bool,
    ) -> Option<(u64, Arc<dyn BlockDevice>, u64)> {
        let leg = self.legs.get_mut(slot)?.as_mut()?;
        leg.measured.in_flight += u64::from(timed);
        leg.counters.reads += 1;
        leg.counters.read_bytes += len;
        let at = leg.data_start + offset;
        let pinned = leg.frames.as_ref().map(|frames| frames.pinned(at, len));
        Some((leg.epoch, pinned.or_else(|| leg.device.clone())?, at))
    }
}

impl Deref for Legs {
    type Target = [Option<Leg>; LEGS_MAX];
    fn deref(&self) -> &Self::Target {
        &self.legs
    }
}

impl DerefMut for Legs {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.invalidate();
        &mut self.legs
    }
}
