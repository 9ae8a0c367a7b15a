//! The kernel's file systems under the corpus of this module.

use std::sync::Arc;

use steadfast_crash::explore::System;
use steadfast_crash::{CrashError, Result};
use steadfast_devices::model::Model;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_peers::{KernelFs, Peer, PeerError};
use steadfast_vfs::HostFs;

use super::run::{play, set_up};
use super::{CorpusRun, Subject, Workload};

/// A file system of the kernel's, on a RAM disk of ours with a volatile cache.
pub struct InCorpus {
    peer: Peer,
    formatted: Vec<Store>,
}

impl InCorpus {
    /// Makes the file system once: each workload begins with a copy.
    ///
    /// # Errors
    /// Something is missing, or a tool refused.
    pub fn new(fs: KernelFs) -> Result<InCorpus, PeerError> {
        let bytes = fs.least_bytes().max(16 << 20);
        let build = move || {
            let ram = Ram::new("disk", bytes).persistent().with_volatile_cache();
            Ok(vec![Arc::new(ram) as Arc<dyn Model>])
        };
        let peer = Peer {
            fs,
            // Looking is not to be a change.
            mount_options: "noatime".into(),
            mkfs_words: Vec::new(),
            build: Arc::new(build),
            lying_caches: Vec::new(),
        };
        let formatted = peer.formatted()?;
        Ok(InCorpus { peer, formatted })
    }
}

impl Subject for InCorpus {
    fn name(&self) -> String {
        format!("kernel-{}", self.peer.fs.name())
    }

    fn record(&self, workload: &Workload) -> Result<CorpusRun> {
        let running = self.peer.resume(self.formatted.clone()).map_err(CrashError::host)?;
        let (bases, trace) = {
            let fs = HostFs::open(running.path()).map_err(CrashError::host)?;
            set_up(&fs, workload)?;
            let bases = running.begin().map_err(CrashError::host)?;
            (bases, play(&fs, running.log(), workload)?)
        };
        let (recording, taken_away) = running.end();
        taken_away.map_err(CrashError::host)?;
        Ok(CorpusRun::new(bases, recording, trace))
    }

    fn system(&self) -> &dyn System {
        &self.peer
    }
}
