//! What the requests and the tasks of a mirror share, in three parts. Each uses those below it, and
//! knows nothing of those above.
//!
//! 1. [`Metadata`]: who the members are and what the map says, in memory and on the legs.
//! 2. [`Replicas`]: what the legs hold.
//! 3. [`Core`]: requests, and what a mirror does by itself.

use std::ops::Deref;
use std::sync::Arc;

use steadfast_block::{DeviceInfo, Persistence};
use steadfast_runtime::{Condvar, Mutex};
use uuid::Uuid;

use super::lanes::Lanes;
use super::metadata::Metadata;
use super::state::State;
use crate::planted::Bug;
use steadfast_block::planted::BugSwitch;

/// A mirror in use, as its tasks have it: it takes requests.
pub(crate) struct Core {
    replicas: Replicas,
    /// For reads that do without the lock of the state.
    pub(super) lanes: Arc<Lanes>,
    /// Held during a requested change of legs. Taken before `committing_assembly`.
    pub admin: Mutex<()>,
}

impl Core {
    pub fn new(volume: Uuid, name: String, planted: BugSwitch<Bug>, state: State) -> Core {
        let lanes = Arc::clone(state.legs.lanes());
        let replicas = Replicas {
            checksums: state.checksums.is_some(),
            metadata: Metadata {
                volume,
                name,
                planted,
                state: Mutex::new(state),
                changed: Condvar::new(),
                labels: Mutex::new(()),
                committing_assembly: Mutex::new(()),
            },
        };
        Core { replicas, lanes, admin: Mutex::new(()) }
    }
}

impl Deref for Core {
    type Target = Replicas;
    fn deref(&self) -> &Replicas {
        &self.replicas
    }
}

/// What the legs hold, region by region: read, proved, repaired and copied while the region is
/// locked.
pub(crate) struct Replicas {
    /// Regions have checksums.
    pub checksums: bool,
    metadata: Metadata,
}

impl Deref for Replicas {
    type Target = Metadata;
    fn deref(&self) -> &Metadata {
        &self.metadata
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
