//! Mounts inside the host: the same as those of `steadfast mount`, in its process.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use anyhow::Result;
use steadfast_block::BlockDevice;
use steadfast_ext4_tune::JournalDevice;
use steadfast_fuse::{is_dead, unmount_lazily};
use steadfast_host::mounts;
use steadfast_stack::protocol::RefusalKind::{Busy, Failed};
use steadfast_stack::protocol::{Refusal, RefusalKind};
use steadfast_stack::{MountedFs, Mounter, ToMount};

use crate::commands::journal_device::open_journal;
use crate::commands::volume::open::refuse_member;
use crate::mount::options;
use crate::mount::serve::{MountSource, PendingMount, check_place};
use crate::mount::served::ServedMount;
use crate::{Unsupported, Usage};

/// Mounts ext2, ext3 and ext4.
pub struct Ext4Mounts {
    /// Where control sockets are.
    pub folder: PathBuf,
    /// The host's log, if it is a file.
    pub log: Option<PathBuf>,
}

/// A mount that is served by a thread of the host.
struct ThreadMount(Arc<ServedMount>);

impl Mounter for Ext4Mounts {
    fn mount(&self, what: &ToMount) -> Result<Arc<dyn MountedFs>, Refusal> {
        self.begin(what).map_err(refused)
    }
}

impl Ext4Mounts {
    fn begin(&self, what: &ToMount) -> Result<Arc<dyn MountedFs>> {
        let mut wanted = options::parse(std::slice::from_ref(&what.options))?;
        if wanted.remount || !wanted.journals.is_empty() {
            usage!("options of a mount of the host: not remount, and the journal is `journal`");
        }
        take_dead_away(&what.at, &what.source)?;
        refuse_member(&what.device)?;
        let read_only = wanted.ext4.read_only;
        let journal = match (&what.journal, &what.journal_path) {
            (Some(device), _) => {
                let device = Arc::clone(device);
                Some(JournalDevice { device, number: 0, accept_volatile: true })
            }
            (None, Some(path)) => Some(open_journal(path, read_only, true)?),
            (None, None) => None,
        };
        let device: Arc<dyn BlockDevice> = Arc::clone(&what.device);
        // By this name a host finds what it has left, should it be killed while it tries to mount.
        wanted.fuse.source.clone_from(&what.source);
        let claim = check_place(&what.at, &wanted, &self.folder)?;
        let opened = MountSource::on(device, journal, &what.source, &mut wanted)?;
        for note in &opened.notes {
            tracing::warn!("{note}");
        }
        let log = self.log.clone();
        let begun = PendingMount::new(opened, &what.at, wanted, log, &self.folder, true)?;
        drop(claim);
        let served = Arc::clone(&begun.served);
        if let Some(note) = served.recovery() {
            tracing::warn!("{note}");
        }
        let serve = move || {
            if let Err(e) = begun.serve() {
                tracing::error!("{e:#}");
            }
        };
        std::thread::Builder::new().name("mount".into()).spawn(serve)?;
        Ok(Arc::new(ThreadMount(served)))
    }
}

impl MountedFs for ThreadMount {
    fn unmount(&self, cut_off: bool) -> Result<(), Refusal> {
        self.0.unmount(cut_off).map_err(|e| match self.0.has_ended() {
            true => Failed.because(format!("{e:#}")),
            false => Busy.because(format!("{e:#}")),
        })
    }

    fn check_unused(&self) -> Result<(), Refusal> {
        let unused = self.0.unmounter.check_unused();
        unused.map_err(|e| Busy.because(e.to_string()))
    }

    fn options(&self) -> String {
        let now = self.0.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        now.in_force().join(",")
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}

/// A host that was killed leaves its mounts, which nobody serves. Only one of this very source is
/// taken away: another one is somebody else's.
fn take_dead_away(at: &Path, source: &str) -> Result<()> {
    if !is_dead(at) {
        return Ok(());
    }
    // The path cannot be looked at; its entry in the table can.
    let table = mounts::seen_by("self")?;
    let whole = std::path::absolute(at)?;
    let last = table.into_iter().rfind(|mount| mount.at == whole);
    match last {
        Some(mount) if mount.is_ours() && mount.source == source => {
            tracing::warn!("{}: was mounted by a host that was killed", at.display());
            Ok(unmount_lazily(at)?)
        }
        other => {
            let whose = other.map(|mount| mount.source).unwrap_or_default();
            let at = at.display();
            usage!("{at}: a dead mount of {whose} is there, not of this host: unmount it");
        }
    }
}

fn refused(error: anyhow::Error) -> Refusal {
    let kind = match () {
        () if error.downcast_ref::<Usage>().is_some() => RefusalKind::Refused,
        () if error.downcast_ref::<Unsupported>().is_some() => RefusalKind::Unsupported,
        () => RefusalKind::Failed,
    };
    kind.because(format!("{error:#}"))
}
