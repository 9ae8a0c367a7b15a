//! What a cut left in doubt: the durable legs of a dirty region may differ in what was not flushed.
//!
//! One leg stands for such a region. Each of the others holds what was flushed too, so while nobody
//! has read or written the region any of them can take its place, if that leg is lost or cannot be
//! read. Before the first read or write the others are given what it holds, and are flushed: what
//! was read once is read from then on, whichever leg is lost. The map has the region as dirty all
//! the time, so a cut on the way leaves it as it was.

use std::ops::Range;
use std::sync::Arc;

use steadfast_block::Result;

use super::Core;
use super::resync::Resynced;
use super::state::{State, bit, slots};
use crate::ondisk::map::RegionState;
use crate::planted::Bug;

impl State {
    /// Whether something is to be decided before any of these regions is read or written.
    pub(super) fn is_undecided(&self, regions: Range<u32>) -> bool {
        let to_write_down =
            || self.pending.is_some() && self.undecided.range(regions.clone()).next().is_some();
        self.regions.doubtful(regions.clone()).next().is_some() || to_write_down()
    }

    /// Where the leg that stands for a region in doubt is gone, the first of the others does.
    pub(super) fn replace_sources(&mut self, regions: impl IntoIterator<Item = u32>) {
        for region in regions {
            let able = self.active() & self.durable();
            let doubt = self.regions.doubt(region);
            if able & !self.regions.lacking(region) == 0
                && let Some(next) = slots(able & doubt).next()
            {
                self.stand_for(region, next);
            }
        }
    }

    /// A leg is back that holds dirty regions which nobody else who is there does: others that are
    /// away may hold something else of what was not flushed, and lack it from now on.
    pub(super) fn stand_for_what_others_may_hold(&mut self, slot: usize) {
        let (known, able) = (self.known(), self.active() & self.durable());
        for region in self.regions.active() {
            let now = self.regions.get(region);
            if now.state == RegionState::Dirty && able & !now.stale == bit(slot) {
                self.regions.set_stale(region, known & !bit(slot));
            }
        }
    }

    /// This leg stands for a region in doubt from now on; those that did differ from it.
    fn stand_for(&mut self, region: u32, slot: usize) {
        let (active, durable) = (self.active(), self.durable());
        let before = active & durable & !self.regions.get(region).stale;
        // Memory was given what another leg holds.
        self.regions.set_stale(region, active & !durable);
        self.regions.drop_copied(region, u8::MAX);
        self.regions.set_doubt(region, before & !bit(slot));
    }
}

impl Core {
    /// Before a read or a write: what was decided is written down, and every leg that is there
    /// holds the same of these bytes' regions, durably.
    pub(super) fn decide(self: &Arc<Self>, offset: u64, len: u64) -> Result<()> {
        let regions: Vec<u32> = {
            let state = self.settled()?;
            state.regions.doubtful(state.regions.of(offset, len)).collect()
        };
        if regions.is_empty() {
            return Ok(());
        }
        if self.planted.has(Bug::DoubtNotCopied) {
            let mut state = self.state.lock();
            regions.iter().for_each(|region| state.regions.set_doubt(*region, 0));
            return Ok(());
        }
        self.decide_these(&regions)
    }

    /// The same for all regions.
    pub(super) fn decide_all(self: &Arc<Self>) -> Result<()> {
        let regions = self.settled()?.regions.all_doubtful();
        self.decide_these(&regions)
    }

    fn decide_these(self: &Arc<Self>, regions: &[u32]) -> Result<()> {
        let mut unreadable = false;
        for region in regions {
            let mut done = Resynced::default();
            self.copy_region(*region, &mut done)?;
            if done.unreadable > 0 {
                // No leg holds all of it: from now on only one counts.
                unreadable = true;
                let mut state = self.state.lock();
                let doubt = state.regions.doubt(*region);
                state.regions.set_stale(*region, doubt);
            }
        }
        let (given, epochs) = {
            let state = self.settled()?;
            let given = |r: &u32| (*r, state.regions.copied(*r) & state.regions.doubt(*r));
            (regions.iter().map(given).collect::<Vec<_>>(), state.epochs())
        };
        self.flush_legs()?;
        {
            let mut state = self.settled()?;
            // A leg that was away meanwhile may not have been flushed.
            let flushed = state.of_same_epoch(epochs);
            for (region, legs) in given {
                state.regions.set_fresh(region, legs & flushed);
            }
        }
        if unreadable { self.commit() } else { Ok(()) }
    }

    /// After a region in doubt could not be copied: whether another leg stands for it now, which
    /// was not tried yet.
    pub(super) fn stand_for_next(&self, region: u32, tried: &mut u8) -> bool {
        let mut state = self.state.lock();
        let doubt = state.regions.doubt(region);
        if doubt == 0 || state.stopped().is_some() {
            return false;
        }
        let able = state.active() & state.durable();
        let first = *tried == 0;
        *tried |= able & !state.regions.lacking(region);
        match slots(able & doubt & !*tried).next() {
            Some(next) => {
                state.stand_for(region, next);
                true
            }
            None => {
                // It stays with the one that was asked first.
                if let Some(slot) = slots(*tried & doubt).next().filter(|_| !first) {
                    state.stand_for(region, slot);
                }
                false
            }
        }
    }
}
