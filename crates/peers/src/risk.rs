//! The kernel's file systems under the workload and the judge of [`steadfast_crash::risk`].

use std::sync::Arc;

use steadfast_crash::explore::{CutSource, System};
use steadfast_crash::risk::{RecordedRun, Workload};
use steadfast_crash::{CrashError, Result};
use steadfast_devices::model::ModelParams;
use steadfast_devices::store::Store;
use steadfast_vfs::{FileSystem, HostFs};

use crate::{KernelFs, Peer, PeerError};

/// A file system of the kernel's, on which device.
#[derive(Debug, Clone, PartialEq)]
pub struct PeerSpec {
    /// Which.
    pub kind: KernelFs,
    /// Further words for its mkfs, separated by spaces.
    pub mkfs: String,
    /// Mount options, separated by commas.
    pub mount: String,
    /// The device under it. In real time a model takes, at the least, the time it would take.
    pub disk: ModelParams,
    /// The device of an external journal, if it has one.
    pub journal: Option<ModelParams>,
    /// What is on the device before the file system is made, of the device's size.
    pub old_contents: Store,
}

/// A variant of the kernel's that runs the risk workload and is judged as ours is.
pub struct RiskVariant {
    peer: Peer,
    old_contents: Store,
}

impl RiskVariant {
    /// The variant that is described. Nothing is built yet.
    pub fn new(spec: &PeerSpec) -> RiskVariant {
        let devices = [("disk", Some(spec.disk.clone())), ("journal", spec.journal.clone())];
        let build = move || {
            let there = devices.iter().filter_map(|(name, params)| Some((name, params.as_ref()?)));
            let built = there.map(|(name, params)| params.build(name));
            built.collect()
        };
        let peer = Peer {
            fs: spec.kind,
            mount_options: spec.mount.clone(),
            mkfs_words: spec.mkfs.split_whitespace().map(str::to_owned).collect(),
            build: Arc::new(build),
        };
        RiskVariant { peer, old_contents: spec.old_contents.clone() }
    }
}

impl RiskVariant {
    /// Runs the workload with the devices recorded. Whether all could be taken away afterwards is
    /// beside what it brought.
    ///
    /// # Errors
    /// What could not be built, mounted or run.
    pub fn record(
        &self,
        workload: &dyn Workload,
    ) -> Result<(RecordedRun, std::result::Result<(), PeerError>)> {
        let contents = Some(vec![self.old_contents.snapshot()]);
        let running = self.peer.start(contents).map_err(CrashError::host)?;
        let mut bases = Vec::new();
        let ran = {
            let fs: Arc<dyn FileSystem> =
                Arc::new(HostFs::open(running.path()).map_err(CrashError::host)?);
            let mut begin = || {
                bases = running.begin().map_err(CrashError::host)?;
                Ok(())
            };
            workload.run(&fs, running.log(), &mut begin)?
        };
        let (recording, taken_away) = running.end();
        let recorded = CutSource { bases, recording, judge: ran.judge };
        let ran = RecordedRun { recorded, speed: ran.speed, programs: ran.programs };
        Ok((ran, taken_away))
    }

    /// What recovers what a cut has left.
    pub fn system(&self) -> &dyn System {
        &self.peer
    }
}
