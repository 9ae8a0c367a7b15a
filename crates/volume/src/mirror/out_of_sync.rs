//! Regions that are out of sync after a power cut. The durable legs of a dirty region may differ in
//! data that was not flushed. The same is true after a write that failed on all of them.
//!
//! One leg is the primary of such a region (as in dm-raid1). Every other leg holds all flushed data
//! too. So while nothing has read or written the region, any of them can become the primary, if the
//! primary is lost or cannot be read. Before the first read or write the others are synced from the
//! primary, and flushed. So data that was read once is stable, whichever leg is lost. The map has
//! the region as dirty all the time, so another power cut in between changes nothing.

use std::ops::Range;

use steadfast_block::{BlockError, Result};

use super::core::Replicas;
use super::leg::{LegFailure, bit, slots};
use super::resync::ResyncReport;
use super::state::State;
use crate::ondisk::map::RegionState;
use crate::planted::Bug;
use steadfast_block::planted::BugSwitch;

impl State {
    /// Whether any of these regions must be synced, or an assembly committed, before it is read or
    /// written.
    pub(super) fn needs_sync(&self, regions: Range<u32>) -> bool {
        let to_write_down =
            || self.pending.is_some() && self.undecided.range(regions.clone()).next().is_some();
        self.regions.out_of_sync_regions(regions.clone()).next().is_some() || to_write_down()
    }

    /// If the primary of an out-of-sync region is gone, the first other leg becomes the primary.
    pub(super) fn replace_primaries(&mut self, regions: impl IntoIterator<Item = u32>) {
        for region in regions {
            let able = self.legs.active() & self.legs.durable();
            self.choose_primary(region, able);
        }
    }

    /// A leg is back that is the only present holder of dirty regions. Missing legs may hold other
    /// unflushed data, so the regions become stale on them.
    pub(super) fn mark_absent_stale(&mut self, slot: usize) {
        let (known, able) = (self.legs.known(), self.legs.active() & self.legs.durable());
        for region in self.regions.active() {
            let now = self.regions.get(region);
            if now.state == RegionState::Dirty && able & !now.stale == bit(slot) {
                self.regions.set_stale(region, known & !bit(slot));
            }
        }
    }

    /// A write of these regions has failed on some legs. If no durable leg has completed the write
    /// of a region, one leg becomes its primary, whatever it holds; the others may differ from it,
    /// and hold all flushed data. `None`: a durable leg has completed the write of each region.
    /// Otherwise the legs that stay in use, because no other leg has better data.
    pub(super) fn write_failed(
        &mut self,
        failed: &[LegFailure],
        regions: Range<u32>,
        planted: BugSwitch<Bug>,
    ) -> Option<u8> {
        let failing = self.legs.still_in_use(failed);
        let is_gone = |f: &&LegFailure| matches!(f.error, BlockError::Gone { .. });
        let gone = failed.iter().filter(is_gone).fold(0, |all, f| all | bit(f.slot)) & failing;
        let mut lost = None;
        for region in regions {
            // Out-of-sync legs were written too, before they became out of sync.
            let out_of_sync = self.regions.out_of_sync(region);
            let holds = !self.regions.lacking(region);
            let given = self.legs.active() & self.legs.durable() & (holds | out_of_sync);
            let took = given & !failing;
            if took != 0 {
                if out_of_sync != 0 {
                    self.choose_primary(region, took);
                    let lack = self.regions.out_of_sync(region) & failing;
                    self.regions.set_stale(region, lack);
                }
                continue;
            }
            let stay = if given & !gone != 0 { given & !gone } else { given };
            *lost.get_or_insert(0) |= stay;
            if self.regions.is_blank(region) {
                continue;
            }
            if out_of_sync != 0 {
                self.choose_primary(region, stay);
                continue;
            }
            // A copy that was not flushed may be missing after a power cut.
            let flushed = stay & !self.regions.get(region).stale;
            let keeper = slots(flushed).chain(slots(stay)).next().map_or(0, bit);
            let alike = if planted.has(Bug::FailedWriteLeavesOne) { 0 } else { flushed & !keeper };
            // Memory that completed the write does not become the primary.
            self.regions.set_stale(region, self.legs.active() & holds & !keeper & !alike);
            self.regions.set_out_of_sync(region, alike);
        }
        lost
    }

    /// Makes one of these legs the primary of an out-of-sync region, if none of them is.
    fn choose_primary(&mut self, region: u32, legs: u8) {
        if legs & !self.regions.lacking(region) == 0
            && let Some(next) = slots(legs & self.regions.out_of_sync(region)).next()
        {
            self.set_primary(region, next);
        }
    }

    /// Makes this leg the primary of an out-of-sync region. The former primaries differ from it.
    fn set_primary(&mut self, region: u32, slot: usize) {
        let (active, durable) = (self.legs.active(), self.legs.durable());
        let before = active & durable & !self.regions.get(region).stale;
        // Memory was synced from another leg.
        self.regions.set_stale(region, active & !durable);
        self.regions.drop_copied(region, u8::MAX);
        self.regions.set_out_of_sync(region, before & !bit(slot));
    }
}

impl Replicas {
    /// Before a read or a write: commits the assembly, and makes all present legs equal, durably,
    /// in the regions of these bytes.
    pub(super) fn sync_range(&self, offset: u64, len: u64) -> Result<()> {
        let regions: Vec<u32> = {
            let state = self.settled()?;
            state.regions.out_of_sync_regions(state.regions.of(offset, len)).collect()
        };
        if regions.is_empty() {
            return Ok(());
        }
        if self.planted.has(Bug::OutOfSyncNotCopied) {
            let mut state = self.state.lock();
            regions.iter().for_each(|region| state.regions.set_out_of_sync(*region, 0));
            return Ok(());
        }
        self.sync_regions(&regions)
    }

    /// Before a read. If nothing can be written any more, a leg is read as it is.
    pub(super) fn sync_to_read(&self, offset: u64, len: u64) -> Result<()> {
        let decided = self.sync_range(offset, len);
        if self.state.lock().failed.is_some() { Ok(()) } else { decided }
    }

    /// The same for these regions.
    pub(super) fn sync_regions(&self, regions: &[u32]) -> Result<()> {
        let mut unreadable = false;
        for region in regions {
            let mut done = ResyncReport::default();
            self.copy_region(*region, &mut done)?;
            if done.unreadable > 0 {
                // No leg holds all of it: from now on only the primary counts.
                unreadable = true;
                let mut state = self.state.lock();
                let out_of_sync = state.regions.out_of_sync(*region);
                state.regions.set_stale(*region, out_of_sync);
            }
        }
        let (given, epochs) = {
            let state = self.settled()?;
            let given = |r: &u32| (*r, state.regions.copied(*r) & state.regions.out_of_sync(*r));
            (regions.iter().map(given).collect::<Vec<_>>(), state.legs.epochs())
        };
        self.flush_legs()?;
        {
            let mut state = self.settled()?;
            // A leg that was missing in between may not have been flushed.
            let flushed = state.legs.of_same_epoch(epochs);
            for (region, legs) in given {
                state.regions.set_fresh(region, legs & flushed);
            }
        }
        if unreadable { self.commit() } else { Ok(()) }
    }

    /// After an out-of-sync region could not be copied: makes another leg the primary that was not
    /// tried yet. Whether there is one.
    pub(super) fn next_primary(&self, region: u32, tried: &mut u8) -> bool {
        let mut state = self.state.lock();
        let out_of_sync = state.regions.out_of_sync(region);
        if out_of_sync == 0 || state.stopped().is_some() {
            return false;
        }
        let able = state.legs.active() & state.legs.durable();
        let first = *tried == 0;
        *tried |= able & !state.regions.lacking(region);
        match slots(able & out_of_sync & !*tried).next() {
            Some(next) => {
                state.set_primary(region, next);
                true
            }
            None => {
                // The leg that was tried first stays the primary.
                if let Some(slot) = slots(*tried & out_of_sync).next().filter(|_| !first) {
                    state.set_primary(region, slot);
                }
                false
            }
        }
    }
}
