//! What the requests and the tasks of a mirror share.

use std::sync::Arc;

use steadfast_block::{DeviceInfo, Persistence};
use steadfast_runtime::{Condvar, Mutex};
use uuid::Uuid;

use super::lanes::Lanes;
use super::state::State;
use crate::planted::VolumeBug;

/// A mirror in use, as its tasks have it.
pub(crate) struct Core {
    pub volume: Uuid,
    pub name: String,
    pub planted: VolumeBug,
    /// Regions have checksums.
    pub checksums: bool,
    pub state: Mutex<State>,
    /// For reads that do without that lock.
    pub(super) lanes: Arc<Lanes>,
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
    pub fn new(volume: Uuid, name: String, planted: VolumeBug, state: State) -> Core {
        Core {
            volume,
            name,
            planted,
            checksums: state.checksums.is_some(),
            lanes: Arc::clone(state.legs.lanes()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            labels: Mutex::new(()),
            committing_assembly: Mutex::new(()),
            admin: Mutex::new(()),
        }
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
