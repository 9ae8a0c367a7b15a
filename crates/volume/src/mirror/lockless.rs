//! Ordinary reads, without the state lock.
//!
//! Most reads are in one region that is in sync, from a leg whose latency is not measured. Memory
//! serves such a read faster than taking the lock and counting the device as in use. So the
//! information for these reads is in an immutable [`View`], kept in *lanes*. A task has a lane for
//! itself while it reads, and uses the view there. If its lane is in use, the task reads with the
//! lock.
//!
//! # Invariants
//!
//! 1. A view is used only while the version is the one of its creation. Whoever changes the state
//!    behind it increases the version first ([`Lockless::invalidate`]), with the lock held.
//! 2. The holders of a region are read before the version: a reader that sees a later change of the
//!    holders also sees the new version.
//! 3. A read that was begun before a change may end after it, as with the lock, which is not held
//!    across a request either.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use spin::mutex::SpinMutex;
use steadfast_block::{BlockDevice, Result};
use uuid::Uuid;

use super::Core;
use super::cells::Holders;
use super::heat::{Heats, Reader};
use super::policy::{Policies, ReadPolicy, WritePolicy, choose};
use super::state::{Counters, Failed, Leg, State, bit};
use crate::ondisk::label::LEGS_MAX;

/// Tasks that may read at the same time, each in a lane of its own, if their lanes differ.
const LANES: usize = 16;
/// Counted reads of a lane before they are added to the heats.
const COOL_EVERY: u64 = 64;

/// What a read needs of the legs.
pub(super) struct View {
    version: u64,
    policy: ReadPolicy,
    size: u64,
    /// Offsets and lengths have none of these bits.
    within_block: u64,
    /// A region is 2 to the power of this in bytes.
    shift: u32,
    legs: [Option<Readable>; LEGS_MAX],
    /// Those, as bits.
    active: u8,
    holders: Arc<Holders>,
    heats: Arc<Heats>,
}

/// A leg that takes reads.
struct Readable {
    uuid: Uuid,
    epoch: u64,
    device: Arc<dyn BlockDevice>,
    data_start: u64,
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
struct Lane {
    /// No task waits for it: a task that finds it in use reads with the lock.
    view: SpinMutex<Option<Arc<View>>>,
    /// The legs that the tallies are of, by their UUIDs, as far as a number can identify them.
    counted_of: [AtomicU64; LEGS_MAX],
    tallies: [Tally; LEGS_MAX],
    reader: Reader,
    /// Counted reads that are not yet added to the heats.
    counted: AtomicU64,
}

/// The lanes of a mirror.
pub(super) struct Lockless {
    version: AtomicU64,
    lanes: [Lane; LANES],
}

impl Default for Lockless {
    fn default() -> Lockless {
        Lockless { version: AtomicU64::new(1), lanes: Default::default() }
    }
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

impl Lane {
    /// Gives what was counted to the legs that it was counted of. The lane is the caller's.
    fn settle(&self, view: &View, legs: &mut [Option<Leg>; LEGS_MAX]) {
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

impl Lockless {
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
    pub fn sweep(&self, legs: &mut [Option<Leg>; LEGS_MAX]) -> Vec<Arc<View>> {
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
    fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }
}

impl Core {
    /// A read as most are, if the lane's view is of now and this read is such a one.
    #[inline]
    pub(super) fn read_lockless(self: &Arc<Self>, offset: u64, len: u64) -> Option<Result<Bytes>> {
        let lane = &self.lockless.lanes[lane_of_thread()];
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
        // Invariant 2.
        if candidates == 0 || self.lockless.version.load(Ordering::Acquire) != view.version {
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
        if self.lockless.version.load(Ordering::Relaxed) != version {
            self.leave_lane(lane);
        }
        match answer {
            Ok(bytes) => Some(Ok(bytes)),
            Err(error) => Some(self.read_failed(offset, len, Failed { slot, epoch, error })),
        }
    }

    /// Drops the view that this task has used, if it has ended meanwhile.
    #[cold]
    fn leave_lane(&self, lane: &Lane) {
        let version = self.lockless.version.load(Ordering::Relaxed);
        let Some(mut kept) = lane.view.try_lock() else { return };
        if let Some(view) = kept.take_if(|view| view.version != version) {
            self.state.lock().legs.settle(|legs| lane.settle(&view, legs));
            drop(kept);
            drop(view);
        }
    }

    /// Has the next reads of this task's lane go without the lock, if they can. The lane of who
    /// reads at this moment is left to it. The view that was there is to be dropped without the
    /// lock.
    #[must_use = "to be dropped without the lock"]
    pub(super) fn open_lane(&self, state: &mut State) -> Option<Arc<View>> {
        let view = state.view(&self.lockless)?;
        let lane = &self.lockless.lanes[lane_of_thread()];
        let mut kept = lane.view.try_lock()?;
        if kept.as_ref().is_some_and(|kept| kept.version == view.version) {
            return None;
        }
        if let Some(before) = &*kept {
            state.legs.settle(|legs| lane.settle(before, legs));
        }
        for (counted_of, leg) in lane.counted_of.iter().zip(&view.legs) {
            let number = leg.as_ref().map_or(0, |leg| number_of(leg.uuid));
            counted_of.store(number, Ordering::Relaxed);
        }
        kept.replace(view)
    }

    /// A leg could not answer.
    #[cold]
    fn read_failed(self: &Arc<Self>, offset: u64, len: u64, failed: Failed) -> Result<Bytes> {
        self.answered((failed.slot, failed.epoch), None, false);
        self.retry_read(offset, len, failed)
    }
}

impl State {
    /// The view of now, if reads can do with one.
    fn view(&mut self, lockless: &Lockless) -> Option<Arc<View>> {
        let Policies { read, write, .. } = self.policies;
        // These need what all reads share: who was last, or how long each leg takes.
        let shared = matches!(read, ReadPolicy::RoundRobin | ReadPolicy::Adaptive);
        // There a leg may lack what was acknowledged.
        let behind = write == WritePolicy::WriteBehind || self.ranges.any_may_be_behind();
        let usual = self.closed.is_none() && self.pending.is_none() && self.checksums.is_none();
        let active = self.legs.whole();
        if shared || behind || !usual || active == 0 {
            return None;
        }
        if let Some(view) = self.legs.view() {
            return Some(Arc::clone(view));
        }
        let readable = |leg: &Option<Leg>| {
            let leg = leg.as_ref().filter(|leg| leg.is_active())?;
            Some(Readable {
                uuid: leg.uuid,
                epoch: leg.epoch,
                device: Arc::clone(leg.device.as_ref()?),
                data_start: leg.data_start,
            })
        };
        let block = u64::from(self.info.logical_block);
        if !block.is_power_of_two() {
            return None;
        }
        let legs: [Option<Readable>; LEGS_MAX] = self.legs.each_ref().map(readable);
        let (heats, holders) = self.regions.published();
        let view = Arc::new(View {
            version: lockless.version(),
            policy: read,
            size: self.regions.size(),
            within_block: block - 1,
            shift: self.regions.region_bytes().trailing_zeros(),
            active: (0..LEGS_MAX).filter(|slot| legs[*slot].is_some()).map(bit).sum(),
            legs,
            holders,
            heats,
        });
        self.legs.set_view(&view);
        Some(view)
    }
}
