//! What stands beside Steadfast's own file system: the kernel's, on the same device, under the
//! same workload and the same cuts.
//!
//! A peer lives in real time and is not built anew inside a simulation, so it is not an
//! [`explore::Machine`](crate::explore::Machine). Whoever implements it:
//!
//! 1. [`Peer::record`] builds its device, puts what a used one holds on it, records it
//!    ([`RecordLog`]) with the log paused, makes the file system (without discarding: what was
//!    there before must stay, so that a stale block is seen), mounts it, and hands the mount and
//!    the log to the workload. The workload prepares, syncs, and calls `begin`: the device's
//!    contents at that moment, with its own cache written out, are [`Recorded::bases`]; from there
//!    on the log is not paused. When the workload is done the recording is taken *before* the
//!    unmount.
//! 2. [`Peer::recover`] is a reboot with `contents`: the file system's own recovery as a machine
//!    without manual repair does it (`e2fsck -p` for ext2, the mount itself for the others), then
//!    the mount, then the judge looks at it. [`Cut::recovery`] is the time of all that until it is
//!    mounted. After the unmount the file system's own check reads the device, changing nothing;
//!    what it finds goes to [`Cut::damage`]. A refused mount, or a repair by hand, is
//!    [`Cut::manual_repair`]; what a repair had to mend that a journal would have kept is damage
//!    too.

use std::sync::Arc;

use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_devices::store::Store;
use steadfast_vfs::FileSystem;

use super::Speed;
use crate::explore::Recorded;
use crate::figures::Cut;
use crate::judge::Judge;

/// A variant that runs a workload, and recovers from what a power cut has left of it.
pub trait Peer: Send + Sync {
    /// Runs the workload with the device recorded; see the module's text.
    ///
    /// # Errors
    /// What could not be built, mounted or run, in words.
    fn record(&self, workload: &dyn Workload) -> Result<RecordedRun, String>;

    /// Recovers from `contents`, one for each recorded device, and judges what is there. A refused
    /// mount is in the cut, not an error.
    fn recover(&self, contents: Vec<Store>, judge: &dyn Judge, at: Moment) -> Cut;
}

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
        begin: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<Ran, String>;
}

/// What a run brings beside the recording.
pub struct Ran {
    /// Knows what the workload did and was promised.
    pub judge: Arc<dyn Judge>,
    /// How fast it was.
    pub speed: Speed,
}

/// A recorded run of a workload, ready to be cut.
pub struct RecordedRun {
    /// Devices, requests, judge.
    pub recorded: Recorded,
    /// How fast it was.
    pub speed: Speed,
}
