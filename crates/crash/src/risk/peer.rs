//! A workload that runs in either world: on Steadfast's own file system in virtual time, and on the
//! kernel's, on the same device, in real time.
//!
//! Whoever records it builds the devices, puts what a used one holds on them, records them
//! ([`RecordLog`]) with the log paused, makes the file system (without discarding: what was there
//! before must stay, so that a stale block is seen), mounts it, and hands the mount and the log to
//! the workload. The workload prepares, syncs, and calls `begin`: the devices' contents at that
//! moment, with their own caches written out, are [`CutSource::bases`]; from there on the log is
//! not paused. When the workload is done the recording is taken *before* the unmount.

use std::sync::Arc;

use steadfast_devices::filter::record::RecordLog;
use steadfast_vfs::FileSystem;

use super::Speed;
use crate::explore::CutSource;
use crate::judge::Judge;

/// A workload that knows, when it has run, what it was promised.
pub trait Workload: Send + Sync {
    /// Prepares on `fs` (an empty file system), makes that durable, calls `begin`, and runs. The
    /// moments of its calls are taken from `log`, whose devices stand under `fs`. It uses nothing
    /// but [`steadfast_runtime`] for time and tasks: it runs in either world.
    ///
    /// # Errors
    /// A call that failed, in words.
    fn run(
        &self,
        fs: &Arc<dyn FileSystem>,
        log: &RecordLog,
        begin: &mut dyn FnMut() -> crate::Result<()>,
    ) -> crate::Result<PeerRun>;
}

/// What a run brings beside the recording.
pub struct PeerRun {
    /// Knows what the workload did and was promised.
    pub judge: Arc<dyn Judge>,
    /// How fast it was.
    pub speed: Speed,
    /// A number for what the programs did first, whatever the file system made of it.
    pub programs: u64,
}

/// A recorded run of a workload, ready to be cut.
pub struct RecordedRun {
    /// Devices, requests, judge.
    pub recorded: CutSource,
    /// As in [`PeerRun`].
    pub programs: u64,
    /// How fast it was.
    pub speed: Speed,
}
