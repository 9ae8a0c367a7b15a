//! Mirrors: the same data on up to four legs, with a record of which leg holds which region.
//!
//! # What it promises
//!
//! 1. A write is acknowledged when every active leg has completed it. A leg that failed was dropped
//!    before, durably. If no durable leg has completed it, the write fails.
//! 2. A flush, and a write with FUA, is acknowledged only when every durable leg has completed it.
//! 3. A volatile leg is never the source of a resync while a durable copy exists, and is not
//!    trusted after a restart.
//! 4. Regions that were never written, or were discarded, read as zeros from every leg.
//! 5. Repeated reads return the same data until it is written, also across power cuts and resyncs.
//!
//! # How
//!
//! The volume is divided into regions. For each region the map says whether a write may be in
//! flight and on which legs it is stale (`regions`, `ondisk/map.rs`). The map is durable before the
//! write that it covers (`write`). Labels contain the members and the newest generation (`publish`,
//! `assemble`). One mechanism makes legs complete again (`resync`). Mirrors with checksums have a
//! checksum of each block (`checksums`), store it next to the map (`area`), and return only
//! verified data (`verify`).
//!
//! # Opening and closing
//!
//! Assembly writes nothing. Its decisions are written before the first change, or before the first
//! read of an out-of-sync region (`commit_assembly`). So a read-only command and a refused command
//! change nothing. The opener closes the mirror ([`Mirror::close`]). Dropping the last handle does
//! so too, but cannot report an error.

mod area;
mod cells;
mod checksums;
mod close;
mod commit_assembly;
mod discard;
mod events;
mod flush;
mod grow;
mod heat;
mod last;
mod legs;
mod lockless;
mod out_of_sync;
pub(crate) mod partial;
mod plan;
pub(crate) mod policy;
mod promote;
mod publish;
pub(crate) mod ranges;
mod read;
pub(crate) mod regions;
mod replace;
mod resync;
mod scrub;
mod spares;
mod state;
mod status;
mod table;
mod verify;
mod write;

use std::ops::Deref;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, Payload, Persistence, Request, check,
};
use steadfast_runtime::{Condvar, Mutex, random_u64, sleep, spawn};
use uuid::Uuid;

pub(crate) use checksums::Checksums;
pub use events::{Event, LegError, Listener};
pub use legs::NewLeg;
pub(crate) use legs::{ONE_PARTIAL, clear_map, leg_on};
pub use policy::{Pass, Policies, ReadPolicy, WritePolicy};
pub use resync::{Resynced, Throttle};
pub use scrub::Scrubbed;
pub use state::Counters;
pub(crate) use state::{AssemblyChanges, Leg, Spare, State, bit, slots};
pub use status::{LegState, LegStatus, MirrorStatus, RegionStatus};
pub(crate) use table::Legs;

use lockless::Lockless;

use crate::error::VolumeError;
use crate::ondisk::label::LEGS_MAX;
use crate::planted::Planted;

/// A UUID from the world's own random numbers, so that a simulated run can be repeated.
pub(crate) fn random_uuid() -> Uuid {
    let number = u128::from(random_u64()) << 64 | u128::from(random_u64());
    uuid::Builder::from_random_bytes(number.to_be_bytes()).into_uuid()
}

/// A mirror that was assembled. Clones are the same mirror.
///
/// When the last one is dropped the mirror is closed, if [`close`](Self::close) was not called.
/// This waits for its legs, so it must not happen in the hook of a completion, and errors are lost.
/// After a panic it is not closed: the next assembly resyncs the dirty regions.
#[derive(Clone)]
pub struct Mirror(pub(crate) Arc<Handle>);

/// What users hold, and not the mirror's own tasks: nobody uses it any more when it is dropped.
pub(crate) struct Handle(Arc<Core>);

impl Deref for Handle {
    type Target = Arc<Core>;
    fn deref(&self) -> &Arc<Core> {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            drop(self.0.close());
        }
    }
}

pub(crate) struct Core {
    pub volume: Uuid,
    pub name: String,
    pub planted: Planted,
    /// Regions have checksums.
    pub checksums: bool,
    pub state: Mutex<State>,
    /// For reads that do without that lock.
    lockless: Arc<Lockless>,
    /// A range was given back, the map or the labels were written, or nothing works any more.
    pub changed: Condvar,
    /// Held while labels are written: one after the other. Taken before `state`.
    pub labels: Mutex<()>,
    /// Held while what the assembly decided is written down. Taken before `labels`.
    pub committing_assembly: Mutex<()>,
    /// Held during a requested change of legs. Taken before `committing_assembly`.
    pub admin: Mutex<()>,
}

impl Core {
    pub fn new(volume: Uuid, name: String, planted: Planted, state: State) -> Core {
        Core {
            volume,
            name,
            planted,
            checksums: state.checksums.is_some(),
            lockless: Arc::clone(state.legs.lockless()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            labels: Mutex::new(()),
            committing_assembly: Mutex::new(()),
            admin: Mutex::new(()),
        }
    }
}

/// The shortest time between two passes of the timer.
const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// Refuses policies that name a leg that no mirror has.
pub(crate) fn check_policies(policies: Policies) -> crate::Result<()> {
    match policies.read {
        ReadPolicy::Preferred(slot) if slot >= LEGS_MAX => Err(VolumeError::refused(format!(
            "leg {slot} cannot be preferred: legs have the places 0 to {}",
            LEGS_MAX - 1
        ))),
        _ => Ok(()),
    }
}

fn check_rate(throttle: Throttle, what: &str) -> crate::Result<()> {
    match throttle.bytes_per_second {
        Some(0) => Err(VolumeError::refused(format!("a {what} at 0 bytes a second never ends"))),
        _ => Ok(()),
    }
}

/// What the mirror is, made from what its legs are.
pub(crate) fn describe(name: &str, size: u64, legs: &[DeviceInfo], read_only: bool) -> DeviceInfo {
    let most = |of: fn(&DeviceInfo) -> u32| legs.iter().map(of).max().unwrap_or(512);
    let durable = legs.iter().any(|info| info.persistence == Persistence::Persistent);
    let reason = "no leg of the mirror keeps its contents without power".to_owned();
    DeviceInfo {
        name: name.to_owned(),
        model: format!("mirror of {}", legs.len()),
        size,
        logical_block: most(|i| i.logical_block),
        physical_block: most(|i| i.physical_block),
        atomic_write: legs.iter().map(|i| i.atomic_write).min().unwrap_or(512),
        // The first write of a region is promised by a flush, whatever the legs are.
        volatile_cache: true,
        persistence: match durable {
            true => Persistence::Persistent,
            false => Persistence::Volatile { reason },
        },
        rotational: legs.iter().any(|i| i.rotational),
        read_only,
        initialised: true,
    }
}

impl Mirror {
    /// What users hold of a mirror.
    pub(crate) fn of(core: Arc<Core>) -> Mirror {
        Mirror(Arc::new(Handle(core)))
    }

    /// The mirror's UUID.
    pub fn uuid(&self) -> Uuid {
        self.0.volume
    }

    /// The mirror's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The policies of now.
    pub fn policies(&self) -> Policies {
        self.0.state.lock().policies
    }

    /// Changes the policies, durably, while requests go on.
    ///
    /// # Errors
    /// If they name a leg that cannot be, or the labels cannot be written.
    pub fn set_policies(&self, policies: Policies) -> crate::Result<()> {
        let _admin = self.0.admin.lock();
        {
            let (mut state, ()) = self.0.checked(|_| check_policies(policies))?;
            state.legs.invalidate();
            state.policies = policies;
            state.membership += 1;
        }
        Ok(self.0.publish()?)
    }

    /// A pass of the timer: to be called every few seconds. Regions without a write for two passes
    /// become clean, so that a power cut has less to resync; a spare takes a failed leg's place.
    ///
    /// # Errors
    /// If the mirror has failed or is closed.
    pub fn tick(&self) -> crate::Result<()> {
        self.0.tick()?;
        self.use_spare()
    }

    /// Calls [`tick`](Self::tick) and resyncs in the background, until the mirror is dropped,
    /// closed or has failed.
    pub fn keep(&self, every: Duration, throttle: Throttle) {
        let handle: Weak<Handle> = Arc::downgrade(&self.0);
        spawn("mirror upkeep", move || {
            loop {
                sleep(every.max(SHORTEST_TICK));
                let Some(handle) = handle.upgrade() else { return };
                let mirror = Mirror(handle);
                if mirror.tick().is_err() {
                    return;
                }
                if mirror.policies().pass.number() > 0 && mirror.resync(throttle).is_err() {
                    return;
                }
            }
        });
    }

    /// Gives active legs what they lack.
    ///
    /// # Errors
    /// If the mirror has failed or is closed, or the throttle would never let anything through.
    /// Regions that cannot be read are counted, no error.
    pub fn resync(&self, throttle: Throttle) -> crate::Result<Resynced> {
        check_rate(throttle, "resync")?;
        Ok(self.0.resync(throttle)?)
    }

    /// Reads everything that was ever written from all legs that hold it, and compares. What a leg
    /// cannot read is written from another one. With `repair` legs that differ are given what most
    /// durable ones hold, or the first one where there is no majority.
    ///
    /// # Errors
    /// If the mirror has failed or is closed, or the throttle would never let anything through.
    pub fn scrub(&self, repair: bool, throttle: Throttle) -> crate::Result<Scrubbed> {
        check_rate(throttle, "scrub")?;
        Ok(self.0.scrub(repair, throttle)?)
    }

    /// Closes the mirror: waits for requests in flight, syncs out-of-sync regions to all legs,
    /// flushes everything, marks it clean, and refuses later requests. The opener calls it after
    /// the last user, also after an error; a second call has no effect.
    ///
    /// # Errors
    /// If something could not be made durable. The next assembly then resyncs the dirty regions.
    pub fn close(&self) -> crate::Result<()> {
        Ok(self.0.close()?)
    }

    fn refused(&self, request: &Request) -> Option<BlockError> {
        let state = self.0.state.lock();
        let change = !matches!(request, Request::Read { .. } | Request::Flush);
        let closing = if change { state.refuses_writes() } else { None };
        closing.or_else(|| check(&state.info, request).err())
    }
}

impl BlockDevice for Mirror {
    fn info(&self) -> DeviceInfo {
        self.0.state.lock().info.clone()
    }

    fn submit(&self, request: Request) -> Completion {
        if let Some(refused) = self.refused(&request) {
            return Completion::ready(Err(refused));
        }
        match request {
            Request::Read { offset, len } => self.0.submit_read(offset, len),
            Request::Write { offset, data, fua } => self.0.submit_write(offset, data, fua),
            Request::Flush => self.0.submit_flush(),
            Request::Discard { offset, len } => {
                let core = Arc::clone(&self.0.0);
                self.0.on_a_task("mirror discard", move || core.discard_slowly(offset, len))
            }
        }
    }

    // A waiting caller does the work itself: no hand-over.

    fn read(&self, offset: u64, len: u64) -> steadfast_block::Result<Bytes> {
        self.0.read_now(offset, len)
    }

    fn write(&self, offset: u64, data: Payload) -> steadfast_block::Result<()> {
        self.0.write_now(offset, data, false)
    }

    fn write_fua(&self, offset: u64, data: Payload) -> steadfast_block::Result<()> {
        self.0.write_now(offset, data, true)
    }

    fn flush(&self) -> steadfast_block::Result<()> {
        self.0.flush_slowly()
    }
}
