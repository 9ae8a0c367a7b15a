//! The state of each region, and the legs that may serve it.
//!
//! The legs follow from the state. They are published after every change, for reads without the
//! lock ([`super::lockless`]).

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::ondisk::map::{Region, RegionState};

/// What is true of a region.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// The present state; `copied` legs hold the region although `stale` or `out_of_sync` says
    /// otherwise.
    pub now: Region,
    pub copied: u8,
    /// Legs that may differ from the primary of the region after a power cut. Each holds what was
    /// flushed, so any of them could stand for it instead.
    pub out_of_sync: u8,
    /// Passes of the timer since the last write.
    pub idle: u8,
}

impl Cell {
    fn new(now: Region) -> Cell {
        Cell { now, copied: 0, out_of_sync: 0, idle: 0 }
    }

    /// Legs that do not hold the region's contents.
    pub fn lacking(&self) -> u8 {
        (self.now.stale | self.out_of_sync) & !self.copied
    }

    /// Legs that hold it, if a read needs nothing else: it was written, and is in sync.
    pub fn holders(&self) -> u8 {
        let plain = matches!(self.now.state, RegionState::Dirty | RegionState::Clean);
        if plain && self.out_of_sync == 0 { !self.lacking() } else { 0 }
    }
}

/// For each region the legs that may answer a read of it; none where it needs more than that.
pub(super) struct Holders(Box<[AtomicU8]>);

impl Holders {
    fn of(cells: &[Cell]) -> Arc<Holders> {
        Arc::new(Holders(cells.iter().map(|cell| AtomicU8::new(cell.holders())).collect()))
    }

    /// Of this region; none beyond the end.
    #[inline]
    pub fn get(&self, region: u64) -> u8 {
        let region = usize::try_from(region).unwrap_or(usize::MAX);
        // Whoever sees a change sees also what was changed before it.
        self.0.get(region).map_or(0, |legs| legs.load(Ordering::Acquire))
    }
}

/// All regions.
pub(super) struct RegionCells {
    cells: Vec<Cell>,
    holders: Arc<Holders>,
}

impl RegionCells {
    /// So many regions of this state.
    pub fn new(count: usize, all: Region) -> RegionCells {
        let cells = vec![Cell::new(all); count];
        RegionCells { holders: Holders::of(&cells), cells }
    }

    /// What is published; another one once there are more regions.
    pub fn holders(&self) -> &Arc<Holders> {
        &self.holders
    }

    /// Changes a region, and publishes what follows.
    pub fn change<T>(&mut self, region: u32, change: impl FnOnce(&mut Cell) -> T) -> T {
        let cell = &mut self.cells[region as usize];
        let changed = change(cell);
        self.holders.0[region as usize].store(cell.holders(), Ordering::Release);
        changed
    }

    /// Adds regions that were never written.
    pub fn grow(&mut self, count: usize) {
        self.cells.resize(count, Cell::new(Region::UNWRITTEN));
        self.holders = Holders::of(&self.cells);
    }
}

impl Deref for RegionCells {
    type Target = [Cell];
    fn deref(&self) -> &[Cell] {
        &self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_answer_follows_every_change() {
        let mut cells = RegionCells::new(3, Region::UNWRITTEN);
        let state = |state, stale| Region { state, stale, summed: false };
        let holders = |cells: &RegionCells| cells.holders().get(1);
        assert_eq!(holders(&cells), 0, "zeros are no leg's");
        cells.change(1, |cell| cell.now = state(RegionState::Filling, 0b100));
        assert_eq!(holders(&cells), 0, "not on the legs yet");
        cells.change(1, |cell| cell.now = state(RegionState::Dirty, 0b100));
        assert_eq!(holders(&cells), !0b100);
        cells.change(1, |cell| cell.copied = 0b100);
        assert_eq!(holders(&cells), u8::MAX);
        cells.change(1, |cell| cell.out_of_sync = 0b10);
        assert_eq!(holders(&cells), 0, "to be decided first");
        assert_eq!(cells.holders().get(3), 0, "beyond the end");
        let before = Arc::clone(cells.holders());
        cells.grow(4);
        assert_eq!(before.get(3), 0);
        cells.change(3, |cell| cell.now = state(RegionState::Clean, 0));
        assert_eq!((before.get(3), cells.holders().get(3)), (0, u8::MAX));
    }
}
