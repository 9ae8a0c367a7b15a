//! The kernel's file systems under the corpus of this module.

use std::sync::Arc;

use steadfast_crash::explore::System;
use steadfast_crash::{CrashError, Result};
use steadfast_devices::filter::record::Media;
use steadfast_devices::model::Model;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_peers::{KernelFs, Peer, PeerError};
use steadfast_vfs::{FileSystem, HostFs};

use super::run::set_up;
use super::{CorpusRun, Player, Subject, Workload};

/// A file system of the kernel's, on a RAM disk of ours with a volatile cache.
pub struct InCorpus {
    peer: Peer,
    formatted: Vec<Store>,
    media: Media,
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
        Ok(InCorpus { peer, formatted, media: Media::default() })
    }

    /// On a disk of another medium.
    #[must_use]
    pub fn on(mut self, media: Media) -> InCorpus {
        self.media = media;
        self
    }
}

impl Subject for InCorpus {
    fn name(&self) -> String {
        format!("kernel-{}", self.peer.fs.name())
    }

    fn record(&self, workload: &Workload, player: &Player) -> Result<CorpusRun> {
        let running = self.peer.resume(self.formatted.clone()).map_err(CrashError::host)?;
        let (bases, played) = {
            let fs = HostFs::open(running.path()).map_err(CrashError::host)?;
            let fs: Arc<dyn FileSystem> = Arc::new(fs);
            set_up(&*fs, workload)?;
            let bases = running.begin().map_err(CrashError::host)?;
            (bases, player(&fs, running.log(), workload)?)
        };
        let (recording, taken_away) = running.end();
        taken_away.map_err(CrashError::host)?;
        let CorpusRun { recorded, refused } = CorpusRun::new(bases, recording, played);
        Ok(CorpusRun { recorded: recorded.on_media(0, self.media), refused })
    }

    fn system(&self) -> &dyn System {
        &self.peer
    }
}
