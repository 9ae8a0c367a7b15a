//! What a cut left in doubt: the durable legs of a dirty region may differ in what was not flushed.
//! So they may after a write that failed on all of them.
//!
//! One leg stands for such a region. Each of the others holds what was flushed too, so while nobody
//! has read or written the region any of them can take its place, if that leg is lost or cannot be
//! read. Before the first read or write the others are given what it holds, and are flushed: what
//! was read once is read from then on, whichever leg is lost. The map has the region as dirty all
//! the time, so a cut on the way leaves it as it was.

use std::ops::Range;
use std::sync::Arc;

use steadfast_block::{BlockError, Result};

use super::Core;
use super::resync::Resynced;
use super::state::{Failed, State, bit, slots};
use crate::ondisk::map::RegionState;
use crate::planted::{Bug, Planted};

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
            self.stand_for_one_of(region, able);
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

    /// A write of these regions has failed on some legs. Of a region that no durable leg has taken,
    /// one leg stands for it, whatever it holds; the others may differ from it, and hold what was
    /// flushed. `None`: of each region a durable leg has the write. Otherwise the legs that stay in
    /// use, because what they hold nobody else holds better.
    pub(super) fn write_failed(
        &mut self,
        failed: &[Failed],
        regions: Range<u32>,
        planted: Planted,
    ) -> Option<u8> {
        let failing = self.still_in_use(failed);
        let is_gone = |f: &&Failed| matches!(f.error, BlockError::Gone { .. });
        let gone = failed.iter().filter(is_gone).fold(0, |all, f| all | bit(f.slot)) & failing;
        let mut lost = None;
        for region in regions {
            // Those in doubt were given the write before they were.
            let doubt = self.regions.doubt(region);
            let holds = !self.regions.lacking(region);
            let given = self.active() & self.durable() & (holds | doubt);
            let took = given & !failing;
            if took != 0 {
                if doubt != 0 {
                    self.stand_for_one_of(region, took);
                    let lack = self.regions.doubt(region) & failing;
                    self.regions.set_stale(region, lack);
                }
                continue;
            }
            let stay = if given & !gone != 0 { given & !gone } else { given };
            *lost.get_or_insert(0) |= stay;
            if self.regions.is_blank(region) {
                continue;
            }
            if doubt != 0 {
                self.stand_for_one_of(region, stay);
                continue;
            }
            // What was copied to a leg and not flushed is not what a cut would leave there.
            let flushed = stay & !self.regions.get(region).stale;
            let keeper = slots(flushed).chain(slots(stay)).next().map_or(0, bit);
            let alike = if planted.has(Bug::FailedWriteLeavesOne) { 0 } else { flushed & !keeper };
            // Memory that took the write does not stand for it.
            self.regions.set_stale(region, self.active() & holds & !keeper & !alike);
            self.regions.set_doubt(region, alike);
        }
        lost
    }

    /// One of these stands for a region in doubt, if none of them does.
    fn stand_for_one_of(&mut self, region: u32, legs: u8) {
        if legs & !self.regions.lacking(region) == 0
            && let Some(next) = slots(legs & self.regions.doubt(region)).next()
        {
            self.stand_for(region, next);
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

    /// Before a read. Where nothing can be written down any more, a leg answers as it is.
    pub(super) fn decide_to_read(self: &Arc<Self>, offset: u64, len: u64) -> Result<()> {
        let decided = self.decide(offset, len);
        if self.state.lock().failed.is_some() { Ok(()) } else { decided }
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
