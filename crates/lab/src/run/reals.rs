//! What the runs in real time beside the kernel's file systems brought.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use steadfast_crash::explore::CutSource;
use steadfast_crash::risk::{FilesRun, Speed};
use steadfast_peers::{Peer, PeerRecording};

use crate::Result;
use crate::results::{FailureRow, MachineLoad};
use crate::scenario::Variant;

/// The simulated machine's page cache: so much more than the workload's files that only their age
/// makes dirty pages be written.
pub(super) const MEMORY: u64 = 512 << 20;
/// What the runs in real time of a variant brought.
pub(super) enum Real {
    /// A file system of the kernel: its speeds, and the run that is to be cut, unless that failed.
    Kernel(Vec<Speed>, Option<(Peer, Box<RecordedFiles>)>),
    /// Ours.
    Ours {
        /// In this process.
        in_process: Vec<Speed>,
        /// By system calls.
        mounted: Vec<Speed>,
        /// The run that is to be cut, where it is one by system calls, unless that failed.
        cut: Option<Box<RecordedFiles>>,
    },
    /// This machine cannot run it, and why.
    LeftOut(String),
}

/// Whether all could be taken away after a run whose results are there.
pub(super) type TakenAway = Result<()>;

/// What the runs in real time brought, by variant; each is taken once.
#[derive(Default)]
pub(super) struct Reals {
    pub by_variant: Mutex<BTreeMap<String, Real>>,
    /// What else the machine did meanwhile.
    pub load: Option<MachineLoad>,
    /// What failed while others brought results.
    pub failures: Vec<FailureRow>,
    /// What is to be said of the runs, each once.
    pub notes: BTreeSet<String>,
}

impl Reals {
    pub fn take(&self, variant: &Variant) -> Option<Real> {
        self.by_variant.lock().unwrap_or_else(PoisonError::into_inner).remove(&variant.name)
    }
}

/// A recorded run, ready to be cut.
pub(super) struct RecordedFiles {
    pub recorded: CutSource,
    pub speed: Speed,
    pub programs: u64,
}

impl From<PeerRecording<FilesRun>> for RecordedFiles {
    fn from((bases, recording, ran): PeerRecording<FilesRun>) -> RecordedFiles {
        let FilesRun { history, speed, programs } = ran;
        let recorded = CutSource { bases, recording, judge: Arc::new(history) };
        RecordedFiles { recorded, speed, programs }
    }
}
