//! The last copy: regions that would be lost, or unreadable, without a leg.

use std::ops::Range;

use super::Core;
use super::leg::{Leg, bit};
use super::state::State;
use crate::error::{Result, VolumeError};
use crate::ondisk::map::RegionState;

impl State {
    /// Regions that this leg holds and no other durable leg of the mirror, there or not: lost for
    /// good without it.
    pub(crate) fn held_alone(&self, slot: usize) -> Vec<u32> {
        self.held_without(slot, self.legs.durable())
    }

    /// Regions that this leg holds and none of these others.
    fn held_without(&self, slot: usize, others: u8) -> Vec<u32> {
        let others = others & !bit(slot) & !self.legs.mask(|leg| leg.joining);
        let alone = |r: &u32| {
            let region = self.regions.get(*r);
            region.state != RegionState::Unwritten
                && region.stale & bit(slot) == 0
                && others & !region.stale == 0
        };
        (0..self.regions.count()).filter(alone).collect()
    }

    pub(crate) fn bytes_in(&self, regions: &[u32]) -> u64 {
        regions.iter().map(|r| self.regions.bytes_of(*r).1).sum()
    }

    /// Refuses to go on without a leg where no durable one would be in use, or where something that
    /// it has could not be read then.
    pub(super) fn check_not_last(&self, slot: usize, what: &str) -> Result<()> {
        self.check_not_only(slot, what)?;
        if !self.legs[slot].as_ref().is_some_and(Leg::is_active) {
            return Ok(());
        }
        let unread = self.held_without(slot, self.legs.active() & self.legs.durable());
        if unread.is_empty() {
            return Ok(());
        }
        Err(self.last_copy(slot, what, &format!(" of {} bytes", self.bytes_in(&unread)), ""))
    }

    /// Refuses what a leg that goes for good would take along. Where that may be lost, and was
    /// given up, what other legs hold that are not there does not matter.
    pub(super) fn check_going(&self, slot: usize, what: &str, lose: bool) -> Result<()> {
        self.check_nothing_lost(slot, what)?;
        if lose { Ok(()) } else { self.check_not_last(slot, what) }
    }

    /// Refuses to give a leg up that alone holds something, whether it is there or not.
    fn check_nothing_lost(&self, slot: usize, what: &str) -> Result<()> {
        self.check_not_only(slot, what)?;
        let alone = self.held_alone(slot);
        if alone.is_empty() {
            return Ok(());
        }
        let bytes = format!(" of {} bytes", self.bytes_in(&alone));
        Err(self.last_copy(slot, what, &bytes, "; that they may be lost is said with --lose-data"))
    }

    /// Refuses to give up the only durable leg in use.
    pub(super) fn check_not_only(&self, slot: usize, what: &str) -> Result<()> {
        let only = self.legs.active() & self.legs.durable() == bit(slot);
        let advice = "; add another durable leg first";
        if only { Err(self.last_copy(slot, what, "", advice)) } else { Ok(()) }
    }

    fn last_copy(&self, slot: usize, what: &str, of: &str, advice: &str) -> VolumeError {
        let name = self.legs[slot].as_ref().map_or("", |leg| &leg.name);
        VolumeError::refused(format!(
            "{name}: {what} would take the last good durable copy{of} from '{}'{advice}",
            self.info.name
        ))
    }
}

impl Core {
    /// Gives up what a leg alone holds: those regions are unwritten from now on, and read as zeros
    /// from every leg. How many bytes that are.
    pub(super) fn give_up(&self, slot: usize) -> steadfast_block::Result<u64> {
        let (regions, bytes) = {
            let state = self.settled_for_writes()?;
            let alone = state.held_alone(slot);
            let bytes = state.bytes_in(&alone);
            (alone, bytes)
        };
        for run in runs(&regions) {
            let (run, ticket) = self.take_regions(self.settled_for_writes()?, run);
            let done = self.discard_held(&run);
            self.release(ticket);
            done?;
        }
        Ok(bytes)
    }
}

/// Numbers in order as ranges without gaps.
fn runs(regions: &[u32]) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for region in regions {
        match runs.last_mut() {
            Some(run) if run.end == *region => run.end += 1,
            _ => runs.push(*region..region + 1),
        }
    }
    runs
}
