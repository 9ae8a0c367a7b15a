//! The kernel's file systems under the corpus of [`steadfast_crash::corpus`].

use std::path::Path;
use std::sync::Arc;

use steadfast_crash::corpus::{Found, Recorded, Subject, Workload, play, set_up, use_it};
use steadfast_devices::model::Model;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_vfs::HostFs;

use crate::{KernelFs, Peer, PeerError};

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
        };
        let formatted = peer.formatted()?;
        Ok(InCorpus { peer, formatted })
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Subject for InCorpus {
    fn name(&self) -> String {
        format!("kernel-{}", self.peer.fs.name())
    }

    fn record(&self, workload: &Workload) -> Result<Recorded, String> {
        let running = self.peer.resume(self.formatted.clone()).map_err(words)?;
        let (bases, story) = {
            let fs = HostFs::open(running.path()).map_err(words)?;
            set_up(&fs, workload)?;
            let bases = running.begin().map_err(words)?;
            (bases, play(&fs, running.log(), workload)?)
        };
        let recording = running.end().map_err(words)?;
        Ok(Recorded { bases, recording, story })
    }

    fn recover(&self, contents: Vec<Store>) -> Result<Found, String> {
        let mut found = Found::refused("it was not mounted".into());
        let mut used = Ok(());
        let mut look = |mounted: &Path| match HostFs::open(mounted) {
            Ok(fs) => found = Found::look(&fs),
            Err(e) => found = Found::refused(format!("the mounted folder: {e}")),
        };
        let mut then = |mounted: &Path| match HostFs::open(mounted) {
            Ok(fs) => used = use_it(&fs),
            Err(e) => used = Err(format!("the folder, mounted again: {e}")),
        };
        let recovery = self
            .peer
            .recover_and_use(contents, &mut look, Some(&mut then))
            .map_err(|e| format!("the host could not recover this state: {e}"))?;
        found.usable = used;
        found.damage.extend(recovery.damage);
        if let Some(why) = recovery.refused {
            found = Found::refused(format!("the kernel's mount was refused: {why}"));
        } else if recovery.manual_repair {
            found.by_hand = true;
            found
                .damage
                .push("manual repair is needed: the repairs at boot were not enough".into());
        }
        Ok(found)
    }
}
