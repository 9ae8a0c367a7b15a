//! A run on the kernel's own file system, on a recorded device of ours; and its recovery.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow};
use steadfast_crash::program::{Recovered, Recovers, Run, Tree};
use steadfast_devices::model::Model;
use steadfast_devices::store::Store;
use steadfast_peers::{KernelFs, Peer, PeerError};
use steadfast_vfs::HostFs;

use super::own::{Left, run_setup};
use super::program::{self, Acknowledged, Watch};
use super::setup::Setup;
use crate::Usage;

/// The kernel's file system, as a peer.
pub fn peer(setup: &Setup, fs: KernelFs) -> Result<Peer, Usage> {
    let disk = setup.disk.params(setup.size);
    if !disk.takes_time() {
        let no_model = "--device ram is for Steadfast's own file systems: take ssd, hdd or emmc";
        return Err(Usage(no_model.into()));
    }
    let card = setup.journal.params();
    let build = move || {
        let made = |e: steadfast_devices::model::ModelError| e.to_string();
        let mut models: Vec<Arc<dyn Model>> = vec![disk.build("disk").map_err(made)?];
        if let Some(card) = &card {
            models.push(card.build("journal").map_err(made)?);
        }
        Ok(models)
    };
    Ok(Peer {
        fs,
        mount_options: setup.options.clone(),
        mkfs_words: Vec::new(),
        build: Arc::new(build),
    })
}

/// What a person has to provide or to ask otherwise is a wrong use.
fn to_anyhow(e: PeerError) -> anyhow::Error {
    match e {
        PeerError::NotRoot
        | PeerError::NoProgram { .. }
        | PeerError::NoKernel { .. }
        | PeerError::TooSmall { .. }
        | PeerError::NoExternalJournal { .. } => Usage(e.to_string()).into(),
        other => anyhow!(other),
    }
}

/// Runs the program and records it.
pub fn record(
    setup: &Setup,
    fs: KernelFs,
    prepare: Option<&str>,
    watch: &mut Watch<'_>,
) -> Result<Left> {
    let running = peer(setup, fs)?.start(None).map_err(to_anyhow)?;
    if let Some(command) = prepare {
        run_setup(command, running.path())?;
    }
    let bases = running.begin().map_err(to_anyhow)?;
    let lines = Acknowledged::new(running.log());
    let ended = program::run(running.path(), &lines, watch)?;
    let tree = tree_of(running.path());
    let recording = running.end().map_err(to_anyhow)?;
    let run = Run::new(setup.about(), bases, recording, lines.lines(), Vec::new());
    Ok(Left { run, tree, ended })
}

fn tree_of(folder: &Path) -> Result<Tree, String> {
    let fs = HostFs::open(folder).map_err(|e| format!("the mounted folder: {e}"))?;
    Tree::read(&fs)
}

/// Recovery by the kernel: its mount, and the check of the file system.
pub struct ByKernel {
    /// How it is mounted.
    pub peer: Peer,
    /// Held while a state is mounted: XFS and btrfs refuse two mounts of one identity.
    pub alone: Mutex<()>,
}

impl Recovers for ByKernel {
    fn recover(&self, contents: Vec<Store>) -> Result<Recovered, String> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tree = Err("the file system was not mounted".to_owned());
        let mut look = |folder: &Path| tree = tree_of(folder);
        let recovery = (self.peer.recover(contents, &mut look))
            .map_err(|e| format!("the host could not recover this state: {e}"))?;
        let mut damage = recovery.damage;
        let tree = match recovery.refused {
            Some(why) => Err(format!("the kernel's mount was refused: {why}")),
            None => tree,
        };
        if recovery.manual_repair && tree.is_ok() {
            damage.push("manual repair is needed: the repairs at boot were not enough".into());
        }
        Ok(Recovered { tree, damage, contents: None })
    }
}
