//! The legs by place, and masks over all of them for ordinary reads, cached until a leg changes.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use steadfast_block::BlockDevice;

use super::lanes::{Lanes, ReadView};
use super::leg::{Counters, Leg, bit};
use super::policy::LegLatency;
use crate::ondisk::label::LEGS_MAX;

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
        let mut whole = 0;
        for (slot, leg) in self.legs.iter().enumerate() {
            whole |= if leg.as_ref().is_some_and(Leg::is_active) { bit(slot) } else { 0 };
        }
        if self.legs.iter().flatten().any(|leg| leg.frames.is_some()) {
            whole = 0;
        }
        self.whole = Some(whole);
        whole
    }

    /// What is counted and measured of a leg, to be added to, and its epoch: no view shows
    /// these.
    pub fn tallied(&mut self, slot: usize) -> Option<(u64, &mut Counters, &mut LegLatency)> {
        let leg = self.legs.get_mut(slot)?.as_mut()?;
        Some((leg.epoch, &mut leg.counters, &mut leg.measured))
    }

    /// Counts a read of a leg: its epoch, its device, and where its data begins.
    pub fn read_from(
        &mut self,
        slot: usize,
        bytes: u64,
    ) -> Option<(u64, Arc<dyn BlockDevice>, u64)> {
        let leg = self.legs.get_mut(slot)?.as_mut()?;
        leg.counters.reads += 1;
        leg.counters.read_bytes += bytes;
        Some((leg.epoch, Arc::clone(leg.device.as_ref()?), leg.data_start))
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
