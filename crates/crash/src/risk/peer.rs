//! What stands beside Steadfast's own file system: the kernel's, on the same device, under the
//! same workload and the same cuts.
//!
//! A peer lives in real time and is not built anew inside a simulation, so it is not an
//! [`explore::Machine`](crate::explore::Machine). Whoever implements it:
//!
//! 1. [`Peer::record`] builds the device that [`PeerSpec::disk`] describes, puts
//!    [`PeerSpec::old_contents`] on it, records it ([`RecordLog`]) with the log paused, makes the
//!    file system (without discarding: what was there before must stay, so that a stale block is
//!    seen), mounts it, and hands the mount and the log to the workload. The workload prepares,
//!    syncs, and calls `begin`: the device's contents at that moment, with its own cache written
//!    out, are [`Recorded::bases`]; from there on the log is not paused. When the workload is done
//!    the recording is taken *before* the unmount.
//! 2. [`Peer::recover`] is a reboot with `contents`: the file system's own recovery as a machine
//!    without manual repair does it (`e2fsck -p` for ext2, the mount itself for the others), then
//!    the mount, then the judge looks at it. [`Cut::recovery`] is the time of all that until it is
//!    mounted. After the unmount the file system's own check reads the device, changing nothing;
//!    what it finds goes to [`Cut::damage`]. A refused mount, or a repair that must be done by hand,
//!    is [`Cut::manual_repair`]; what a repair had to mend that a journal would have kept is damage
//!    too.

use std::sync::Arc;

use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_devices::model::ModelParams;
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

/// A file system of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerKind {
    /// ext2, no journal (mounted by the ext4 driver where there is no other).
    Ext2,
    /// ext3.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl PeerKind {
    /// All of them.
    pub const ALL: [PeerKind; 5] =
        [PeerKind::Ext2, PeerKind::Ext3, PeerKind::Ext4, PeerKind::Xfs, PeerKind::Btrfs];

    /// As `mount -t` and `mkfs.NAME` call it.
    pub fn name(self) -> &'static str {
        match self {
            PeerKind::Ext2 => "ext2",
            PeerKind::Ext3 => "ext3",
            PeerKind::Ext4 => "ext4",
            PeerKind::Xfs => "xfs",
            PeerKind::Btrfs => "btrfs",
        }
    }

    /// The one that is called so.
    pub fn of(name: &str) -> Option<PeerKind> {
        PeerKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A variant of the kernel's.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerSpec {
    /// The file system.
    pub kind: PeerKind,
    /// Further words for its mkfs, separated by spaces.
    pub mkfs: String,
    /// Mount options, separated by commas.
    pub mount: String,
    /// The device under it. In real time a model takes, at the least, the time it would take.
    pub disk: ModelParams,
    /// What is on the device before the file system is made, of the device's size.
    pub old_contents: Store,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_name() {
        for kind in PeerKind::ALL {
            assert_eq!(PeerKind::of(kind.name()), Some(kind));
        }
        assert_eq!(PeerKind::of("zfs"), None);
    }
}
