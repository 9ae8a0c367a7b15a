//! Lanes: where tasks read without the state lock, each with the view that it uses (`lockless`).

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use spin::mutex::SpinMutex;
use steadfast_block::BlockDevice;
use uuid::Uuid;

use super::cells::Holders;
use super::heat::{Heats, Reader};
use super::leg::{Counters, Leg, LegFailure};
use super::policy::{ReadPolicy, choose};
use crate::ondisk::label::LEGS_MAX;

/// Tasks that may read at the same time, each in a lane of its own, if their lanes differ.
const LANES: usize = 16;
/// Counted reads of a lane before they are added to the heats.
const COOL_EVERY: u64 = 64;

/// What a read needs of the legs.
pub(super) struct ReadView {
    pub version: u64,
    pub policy: ReadPolicy,
    pub size: u64,
    /// Offsets and lengths have none of these bits.
    pub within_block: u64,
    /// A region is 2 to the power of this in bytes.
    pub shift: u32,
    pub legs: [Option<ReadableLeg>; LEGS_MAX],
    /// Those, as bits.
    pub active: u8,
    pub holders: Arc<Holders>,
    pub heats: Arc<Heats>,
}

/// A leg that takes reads.
pub(super) struct ReadableLeg {
    pub uuid: Uuid,
    pub epoch: u64,
    pub device: Arc<dyn BlockDevice>,
    pub data_start: u64,
}

/// Reads of a leg that its counters do not have yet. Only who has the lane adds to them.
#[derive(Default)]
struct Tally {
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    fn add(&self, bytes: u64) {
        let add = |to: &AtomicU64, n| to.store(to.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        add(&self.reads, 1);
        add(&self.bytes, bytes);
    }

    fn add_to(&self, counters: &mut Counters) {
        counters.reads += self.reads.load(Ordering::Relaxed);
        counters.read_bytes += self.bytes.load(Ordering::Relaxed);
    }

    fn clear(&self) {
        self.reads.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }
}

/// A place for one task at a time. Apart from its neighbours, as processors keep memory.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct ReaderSlot {
    /// No task waits for it: a task that finds it in use reads with the lock.
    pub view: SpinMutex<Option<Arc<ReadView>>>,
    /// The legs that the tallies are of, by their UUIDs, as far as a number can identify them.
    counted_of: [AtomicU64; LEGS_MAX],
    tallies: [Tally; LEGS_MAX],
    reader: Reader,
    /// Counted reads that are not yet added to the heats.
    counted: AtomicU64,
}

/// The lanes of a mirror.
pub(super) struct Lanes {
    version: AtomicU64,
    lanes: [ReaderSlot; LANES],
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes { version: AtomicU64::new(1), lanes: Default::default() }
    }
}

/// A read that was made in a lane.
pub(super) struct LaneRead {
    pub answer: Result<Bytes, LegFailure>,
    /// The view that it used is one of the past by now, and still in the lane.
    pub view_ended: bool,
}

/// Of a leg, as good as its UUID.
fn number_of(leg: Uuid) -> u64 {
    let (high, low) = leg.as_u64_pair();
    high ^ low
}

/// The lane of this thread: threads get them by turns.
fn lane_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    LANE.with(|lane| {
        if lane.get() == usize::MAX {
            lane.set(NEXT.fetch_add(1, Ordering::Relaxed) % LANES);
        }
        lane.get()
    })
}

impl ReaderSlot {
    /// Gives what was counted to the legs that it was counted of. The lane is the caller's.
    pub fn settle(&self, view: &ReadView, legs: &mut [Option<Leg>; LEGS_MAX]) {
        for ((tally, of), leg) in self.tallies.iter().zip(&view.legs).zip(legs) {
            let same = |leg: &&mut Leg| of.as_ref().is_some_and(|of| of.uuid == leg.uuid);
            if let Some(leg) = leg.as_mut().filter(same) {
                tally.add_to(&mut leg.counters);
            }
            tally.clear();
        }
    }

    /// A read of a region counts, or is one of a row.
    fn warm(&self, heats: &Heats, region: u32) {
        if !self.reader.counts(region) {
            return;
        }
        heats.warm(region);
        let counted = self.counted.load(Ordering::Relaxed) + 1;
        if counted >= COOL_EVERY {
            heats.cool(counted);
        }
        self.counted.store(counted % COOL_EVERY, Ordering::Relaxed);
    }
}

impl Lanes {
    /// The lane of this thread.
    #[inline]
    pub fn of_thread(&self) -> &ReaderSlot {
        &self.lanes[lane_of_thread()]
    }

    /// A read as most are, if the lane's view is of now and this read is such a one.
    #[inline]
    pub fn read(&self, offset: u64, len: u64) -> Option<LaneRead> {
        let lane = self.of_thread();
        let kept = lane.view.try_lock()?;
        let view = kept.as_ref()?;
        let region = offset >> view.shift;
        let last = offset.checked_add(len.checked_sub(1)?)?;
        if (offset | len) & view.within_block != 0
            || last >= view.size
            || last >> view.shift != region
        {
            return None;
        }
        let candidates = view.holders.get(region) & view.active;
        // Invariant 2 of `lockless`.
        if candidates == 0 || self.version.load(Ordering::Acquire) != view.version {
            return None;
        }
        let slot = choose(view.policy, candidates, (offset, view.size), (0, 0), &[]);
        let leg = view.legs.get(slot)?.as_ref()?;
        // OK to truncate: the region has holders, so it exists.
        lane.warm(&view.heats, region as u32);
        lane.tallies[slot].add(len);
        let answer = leg.device.read(leg.data_start + offset, len);
        let (version, epoch) = (view.version, leg.epoch);
        drop(kept);
        let answer = answer.map_err(|error| LegFailure { slot, epoch, error });
        Some(LaneRead { answer, view_ended: self.version() != version })
    }

    /// Gives this thread's lane a view, unless it has that one, or somebody reads in it at this
    /// moment. The view that was there is to be dropped without the lock.
    #[must_use = "to be dropped without the lock"]
    pub fn open(
        &self,
        view: Arc<ReadView>,
        legs: &mut [Option<Leg>; LEGS_MAX],
    ) -> Option<Arc<ReadView>> {
        let lane = self.of_thread();
        let mut kept = lane.view.try_lock()?;
        if kept.as_ref().is_some_and(|kept| kept.version == view.version) {
            return None;
        }
        if let Some(before) = &*kept {
            lane.settle(before, legs);
        }
        for (counted_of, leg) in lane.counted_of.iter().zip(&view.legs) {
            let number = leg.as_ref().map_or(0, |leg| number_of(leg.uuid));
            counted_of.store(number, Ordering::Relaxed);
        }
        kept.replace(view)
    }

    /// What views show is about to change: none is used any more, and devices are given back.
    /// The lock is held, and the legs are as they were: they have the devices too, so that none is
    /// the last to have one. A lane in which somebody reads is emptied by him.
    pub fn invalidate(&self, legs: &mut [Option<Leg>; LEGS_MAX]) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Release);
        for lane in &self.lanes {
            let Some(mut kept) = lane.view.try_lock() else { continue };
            if let Some(view) = kept.take_if(|view| view.version == version) {
                lane.settle(&view, legs);
            }
        }
    }

    /// Brings counters up to date, and takes views out that nobody can use: to be dropped without
    /// the lock, for theirs may be the last hold on a device.
    #[must_use = "to be dropped without the lock"]
    pub fn sweep(&self, legs: &mut [Option<Leg>; LEGS_MAX]) -> Vec<Arc<ReadView>> {
        let version = self.version.load(Ordering::Relaxed);
        let mut dead = Vec::new();
        for lane in &self.lanes {
            let Some(mut kept) = lane.view.try_lock() else { continue };
            if let Some(view) = &*kept {
                lane.settle(view, legs);
                dead.extend(kept.take_if(|view| view.version != version));
            }
        }
        dead
    }

    /// Adds what lanes have counted of a leg.
    pub fn count(&self, slot: usize, leg: Uuid, counters: &mut Counters) {
        for lane in &self.lanes {
            if lane.counted_of[slot].load(Ordering::Relaxed) == number_of(leg) {
                lane.tallies[slot].add_to(counters);
            }
        }
    }

    /// Version that a view of now has.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
}
