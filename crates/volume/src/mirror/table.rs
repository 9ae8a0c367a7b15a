//! The legs by their places, and what usual reads ask of all of them, kept until a leg changes.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use steadfast_block::BlockDevice;

use super::state::{Leg, bit};
use crate::ondisk::label::LEGS_MAX;

/// The legs of a mirror.
#[derive(Default)]
pub(crate) struct Legs {
    legs: [Option<Leg>; LEGS_MAX],
    /// Legs that take requests, if no leg is partial. Forgotten whenever a leg may have changed: to
    /// look at all of them takes a good part of the time of a read from memory.
    whole: Option<u8>,
}

impl Legs {
    /// Those.
    pub fn new(legs: [Option<Leg>; LEGS_MAX]) -> Legs {
        Legs { legs, whole: None }
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
        self.whole = None;
        &mut self.legs
    }
}
