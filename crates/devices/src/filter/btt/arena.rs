//! An arena in use: its tables, its lanes, and their locks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use steadfast_block::{BlockError, DirectMemory, Result};
use steadfast_runtime::{Mutex, MutexGuard};

use super::find::LocatedArena;
use super::flog::{FlogSlots, HALF, LOG_BYTES};
use super::layout::Layout;
use super::map::{ENTRY_BYTES, Entry};
use super::reading::Reading;

/// Map entries of a cache line share a lock.
const ENTRIES_A_LOCK: u32 = 16;

/// What a write needs: a free block, and a place in the flog to say where it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lane {
    /// The block that is free.
    pub block: u32,
    /// Which of the two places the next entry goes to.
    pub place: usize,
    /// Its sequence number.
    pub sequence: u32,
    /// Its free block could not be written: the lane is retired.
    pub retired: bool,
}

pub(super) struct Arena {
    /// The device's name, for messages.
    pub name: String,
    /// Where it begins on the device.
    pub at: u64,
    pub layout: Layout,
    pub places: FlogSlots,
    /// Marked as one with an error, or of a device that is read only.
    pub read_only: bool,
    lanes: Box<[Mutex<Lane>]>,
    /// Where the next write begins to look for a lane.
    turn: AtomicUsize,
    /// Guard the map entries, [`ENTRIES_A_LOCK`] next to each other each.
    map_locks: Box<[Mutex<()>]>,
    pub reading: Reading,
    /// Why nothing is written any more; asked for by `has_failed` first.
    failure: Mutex<Option<BlockError>>,
    has_failed: AtomicBool,
}

impl Arena {
    pub fn new(
        name: String,
        found: &LocatedArena,
        places: FlogSlots,
        lanes: &[Lane],
        read_only: bool,
    ) -> Arena {
        let layout = found.info.layout;
        Arena {
            name,
            at: found.at,
            layout,
            places,
            read_only,
            lanes: lanes.iter().copied().map(Mutex::new).collect(),
            turn: AtomicUsize::new(0),
            map_locks: lanes.iter().map(|_| Mutex::new(())).collect(),
            reading: Reading::new(lanes.len()),
            failure: Mutex::new(None),
            has_failed: AtomicBool::new(false),
        }
    }

    /// An error of this arena at a sector of it.
    pub fn error(&self, op: &'static str, at: u64, reason: impl Into<String>) -> BlockError {
        BlockError::Io { device: self.name.clone(), op, offset: at, reason: reason.into() }
    }

    /// Refuses changes after a failure that left it unknown what the tables say.
    pub fn check_writable(&self) -> Result<()> {
        if self.read_only {
            return Err(BlockError::ReadOnly { device: self.name.clone() });
        }
        if self.has_failed.load(Ordering::Acquire)
            && let Some(failure) = &*self.failure.lock()
        {
            return Err(failure.clone());
        }
        Ok(())
    }

    /// Writes nothing more: what the device holds is found out when it is opened again.
    pub fn fail(&self, error: BlockError) -> BlockError {
        self.failure.lock().get_or_insert_with(|| error.clone());
        self.has_failed.store(true, Ordering::Release);
        error
    }

    /// A lane that nobody uses; waits for one if there is none.
    pub fn lane(&self) -> Result<(u32, MutexGuard<'_, Lane>)> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let order = || (0..self.lanes.len()).map(|n| first.wrapping_add(n) % self.lanes.len());
        let free = order().find_map(|n| {
            let lane = self.lanes[n].try_lock().filter(|lane| !lane.retired)?;
            Some((n as u32, lane))
        });
        if let Some(free) = free {
            return Ok(free);
        }
        for n in order() {
            let lane = self.lanes[n].lock();
            if !lane.retired {
                return Ok((n as u32, lane));
            }
        }
        let reason = "none of its free blocks can be written: create the namespace again";
        Err(self.error("write", self.at, reason))
    }

    /// Holds a sector's map entry.
    pub fn lock_entry(&self, sector: u32) -> MutexGuard<'_, ()> {
        let lock = (sector / ENTRIES_A_LOCK) as usize % self.map_locks.len();
        self.map_locks[lock].lock()
    }

    /// What the map says of a sector; its lock is held.
    pub fn entry(&self, memory: &dyn DirectMemory, sector: u32) -> Result<Entry> {
        let mut raw = [0; ENTRY_BYTES as usize];
        let at = self.at + self.layout.entry_at(sector);
        memory.load(at, &mut raw)?;
        let entry = Entry::decode(u32::from_le_bytes(raw), sector);
        if entry.block >= self.layout.blocks {
            let (block, blocks) = (entry.block, self.layout.blocks);
            let reason = format!(
                "the map names block {block} for sector {sector} of the arena at byte {}, which \
                 has {blocks} blocks: check the namespace",
                self.at
            );
            return Err(self.error("load", at, reason));
        }
        Ok(entry)
    }

    /// Changes what the map says; the sector's lock is held. The caller persists.
    pub fn set_entry(&self, memory: &dyn DirectMemory, sector: u32, entry: Entry) -> Result<()> {
        memory.store(self.at + self.layout.entry_at(sector), &entry.raw().to_le_bytes())
    }

    /// Begins writing a sector's map entry back.
    pub fn persist_entry(&self, memory: &dyn DirectMemory, sector: u32) -> Result<()> {
        memory.persist(self.at + self.layout.entry_at(sector), ENTRY_BYTES)
    }

    /// Where a block is on the device.
    pub fn block_at(&self, block: u32) -> u64 {
        self.at + self.layout.block_at(block)
    }

    /// Where a half of one of a lane's entries is on the device.
    pub fn half_at(&self, lane: u32, place: usize, half: usize) -> u64 {
        let place = self.places.0[place] as u64;
        self.at + self.layout.group_at(lane) + place * LOG_BYTES + (half * HALF) as u64
    }
}
