//! Mirrors: the same bytes on up to four legs, and the knowledge of which leg holds what.
//!
//! # What it promises
//!
//! 1. A write is acknowledged when every leg that takes writes has it; a leg that failed was
//!    dropped first, durably. If no durable leg has it, the answer is an error.
//! 2. A flush, and a write with FUA, is acknowledged only when every durable leg has it.
//! 3. A volatile leg is never the source of a resync while a durable copy exists, and is not
//!    believed after a restart.
//! 4. What was never written, or was discarded, reads as zeros, the same from every leg.
//! 5. Reads of what nobody writes stay the same, also across cuts and resyncs.
//!
//! # How
//!
//! The volume is divided into regions; the map says of each whether a write may be under way and
//! which legs lack it (`regions`, `ondisk/map.rs`). What a cut must find is durable before the
//! write it covers (`write`). Labels say who the members are and which data is the newest
//! (`publish`, `assemble`). Everything that makes a leg whole again is one mechanism (`resync`).

mod flush;
mod legs;
pub(crate) mod policy;
mod publish;
pub(crate) mod ranges;
mod read;
pub(crate) mod regions;
mod resync;
mod state;
mod status;
mod write;

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{
    BlockDevice, BlockError, Completion, DeviceInfo, Payload, Persistence, Request, check,
};
use steadfast_runtime::{Condvar, Mutex, random_u64, sleep, spawn};
use uuid::Uuid;

pub use legs::NewLeg;
pub(crate) use legs::{clear_map, leg_on};
pub use policy::{Pass, Policies, ReadPolicy, WritePolicy};
pub use resync::{Resynced, Throttle};
pub use state::Counters;
pub(crate) use state::{Leg, Spare, State, bit, slots};
pub use status::{LegState, LegStatus, MirrorStatus};

use crate::planted::Planted;

/// A UUID from the world's own random numbers, so that a simulated run can be repeated.
pub(crate) fn random_uuid() -> Uuid {
    let number = u128::from(random_u64()) << 64 | u128::from(random_u64());
    uuid::Builder::from_random_bytes(number.to_be_bytes()).into_uuid()
}

/// A mirror that was assembled. Clones are the same mirror.
#[derive(Clone)]
pub struct Mirror(pub(crate) Arc<Core>);

pub(crate) struct Core {
    pub volume: Uuid,
    pub name: String,
    pub planted: Planted,
    pub state: Mutex<State>,
    /// A range was given back, the map or the labels were written, or nothing works any more.
    pub changed: Condvar,
    /// Held while labels are written: one after the other. Taken before `state`.
    pub labels: Mutex<()>,
    /// Held while legs come and go at somebody's request. Taken before `labels`.
    pub admin: Mutex<()>,
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
    /// If the labels cannot be written.
    pub fn set_policies(&self, policies: Policies) -> crate::Result<()> {
        let _admin = self.0.admin.lock();
        {
            let mut state = self.0.settled()?;
            state.policies = policies;
            state.membership += 1;
        }
        Ok(self.0.publish()?)
    }

    /// A pass of the timer: to be called every few seconds. Regions without a write for two passes
    /// become clean, so that a cut has less to resync; a spare takes a failed leg's place.
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
        let core: Weak<Core> = Arc::downgrade(&self.0);
        spawn("mirror upkeep", move || {
            loop {
                sleep(every);
                let Some(core) = core.upgrade() else { return };
                let mirror = Mirror(core);
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
    /// If the mirror has failed or is closed. Regions that cannot be read are counted, no error.
    pub fn resync(&self, throttle: Throttle) -> crate::Result<Resynced> {
        Ok(self.0.resync(throttle)?)
    }

    /// Ends the use: everything is flushed and marked clean, and later requests are refused.
    ///
    /// # Errors
    /// If something could not be made durable. The next assembly resyncs what is in doubt then.
    pub fn close(&self) -> crate::Result<()> {
        let _admin = self.0.admin.lock();
        let closed = self.close_open();
        let mut state = self.0.state.lock();
        state.closed = Some("the volume was closed".into());
        drop(state);
        self.0.changed.notify_all();
        closed
    }

    fn close_open(&self) -> crate::Result<()> {
        if self.0.state.lock().info.read_only {
            return Ok(());
        }
        self.0.flush_slowly()?;
        self.0.clean(0)?;
        // Heats are remembered where their blocks are written.
        self.0.state.lock().regions.rewrite_all();
        self.0.commit()?;
        Ok(self.0.publish_as(true)?)
    }

    fn refused(&self, request: &Request) -> Option<BlockError> {
        check(&self.0.state.lock().info, request).err()
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
                let core = Arc::clone(&self.0);
                self.0.on_a_task("mirror discard", move || core.discard_slowly(offset, len))
            }
        }
    }

    // Whoever waits anyway does the work itself: no hand-over.

    fn read(&self, offset: u64, len: u64) -> steadfast_block::Result<Bytes> {
        match self.refused(&Request::Read { offset, len }) {
            Some(refused) => Err(refused),
            None => self.0.read_now(offset, len),
        }
    }

    fn write(&self, offset: u64, data: Payload) -> steadfast_block::Result<()> {
        let request = Request::Write { offset, data: data.clone(), fua: false };
        match self.refused(&request) {
            Some(refused) => Err(refused),
            None => self.0.write_now(offset, data),
        }
    }

    fn flush(&self) -> steadfast_block::Result<()> {
        self.0.flush_slowly()
    }
}
