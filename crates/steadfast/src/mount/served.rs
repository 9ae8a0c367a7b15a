//! A mount that is served, and how it ends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use steadfast_devices::filter::Scheduler;
use steadfast_ext4::Ext4;
use steadfast_fuse::{Invalidator, Transport, Unmounter};

use super::options::MountSettings;
use super::{holders, trouble};
use crate::commands::volume;

/// How long open files are waited for when the process is asked to end.
const GRACE: Duration = Duration::from_secs(2);
/// A mount that is served: what its control socket and its signals work on.
pub struct ServedMount {
    /// The file system.
    pub fs: Arc<Ext4>,
    /// What is mounted, for people.
    pub source: String,
    /// The request scheduler before the disk, of a stack that has one.
    pub queue: Option<Arc<Scheduler>>,
    /// Where.
    pub mountpoint: PathBuf,
    /// The mount's device number.
    pub device: Option<String>,
    /// What carries its requests.
    pub transport: Transport,
    /// How it was mounted.
    pub wanted: MountSettings,
    /// The same as remounts have changed it.
    pub in_force: Mutex<MountSettings>,
    /// The log, if it is a file.
    pub log: Option<PathBuf>,
    /// When it was mounted.
    pub since: Instant,
    /// Takes it away.
    pub unmounter: Unmounter,
    /// Notifies the kernel of changes that did not come through it.
    pub invalidator: Invalidator,
    /// The kernel keeps writers away (`-o remount,ro`).
    pub kept_read_only: AtomicBool,
    /// What goes wrong in the background.
    pub errors: Arc<trouble::Failures>,
    /// A fault in our code was caught.
    pub down: Arc<AtomicBool>,
    /// The process goes on after it: it is a stack host's.
    pub stays: bool,
    /// The kernel has let go of it, or it was cut off: what is left is to write.
    pub(super) let_go: AtomicBool,
    /// How it ended; guards the unmounting, which is done once.
    pub(super) ended: Mutex<Option<Result<(), String>>>,
    pub(super) has_ended: Condvar,
}

impl ServedMount {
    /// Writes everything and lets the devices go; the first caller does it, others wait for it.
    pub fn finish(&self) -> Result<(), String> {
        self.let_go.store(true, Ordering::Release);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.is_none() {
            let unmounted = self.unmount_file_system();
            *ended = Some(unmounted.and(self.close_volume()));
            self.has_ended.notify_all();
        }
        ended.clone().unwrap_or(Ok(()))
    }

    /// The volume that it is on, if it is on one: nothing is in doubt after that.
    fn close_volume(&self) -> Result<(), String> {
        volume::open::close_all().map_err(|error| {
            let why = format!("{}: {error:#}", self.source);
            tracing::error!("{why}");
            why
        })
    }

    /// Whether everything is written, and nobody serves it any more.
    pub fn has_ended(&self) -> bool {
        self.ended.try_lock().is_ok_and(|ended| ended.is_some())
    }

    /// Unmounts it; with `cut_off` also while it is in use, here or in another mount namespace,
    /// which is waited for a moment.
    ///
    /// # Errors
    /// It is in use; not everything could be written.
    pub fn unmount(&self, cut_off: bool) -> Result<()> {
        match self.unmounter.unmount() {
            Err(_) if cut_off => self.unmounter.unmount_lazily()?,
            unmounted => unmounted?,
        }
        if self.let_go_in_time() {
            return self.wait().map_err(|e| anyhow!(e));
        }
        if !cut_off {
            let device = self.device.as_deref().unwrap_or_default();
            let found = holders::of(device, &self.mountpoint, &self.source);
            // On one line: the host's answers are.
            let named = found.iter().map(|holder| holder.to_string().replace("\n ", ""));
            let named = named.collect::<Vec<String>>().join("; ");
            let named = if named.is_empty() { "a copy out of sight" } else { &named };
            let at = self.mountpoint.display();
            bail!("{at} is unmounted here, and held still: {named}; end that and unmount it again");
        }
        self.cut_off().map_err(|e| anyhow!(e))
    }

    /// Whether the kernel lets go of it within [`GRACE`]. The last calls may take longer.
    pub(super) fn let_go_in_time(&self) -> bool {
        let until = Instant::now() + GRACE;
        while !self.let_go.load(Ordering::Acquire) {
            if Instant::now() >= until {
                return !self.unmounter.is_held();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    /// Writes everything, whoever holds the mount: he gets errors from then on.
    pub(super) fn cut_off(&self) -> Result<(), String> {
        let at = self.mountpoint.display();
        tracing::warn!("{at} is still in use, here or in another mount namespace; it is cut off");
        if let Err(e) = self.unmounter.cut_off() {
            tracing::debug!("{e}");
        }
        self.finish()
    }

    /// Waits until it has ended.
    pub fn wait(&self) -> Result<(), String> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(how) = &*ended {
                return how.clone();
            }
            ended = self.has_ended.wait(ended).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What there is to say of an unmount that went well.
    pub fn note(&self) -> Option<String> {
        if self.was_shut_down() {
            let what = "had been shut down; the next mount recovers what was synced before";
            return Some(format!("{}: {what}", self.source));
        }
        let since = self.fs.discarded()?;
        let why = "unmounting went back to the last transaction point and discarded";
        Some(format!("{}: {why} {since}", self.source))
    }

    /// What there is to say of a mount that had something to recover.
    pub fn recovery(&self) -> Option<String> {
        let recovery = self.fs.recovery()?;
        Some(format!("{}: had not been unmounted: {recovery}", self.source))
    }

    /// Whether it was shut down by request, and nothing went wrong before.
    pub fn was_shut_down(&self) -> bool {
        self.fs.was_shut_down() && !self.down.load(Ordering::Acquire)
    }

    fn unmount_file_system(&self) -> Result<(), String> {
        let source = &self.source;
        if self.down.load(Ordering::Acquire) {
            let why = format!(
                "{source}: was shut down by a fault; the next mount recovers what was synced"
            );
            tracing::error!("{why}");
            return Err(why);
        }
        let was_shut_down = self.was_shut_down();
        let because = self.fs.read_only_because();
        let unmounted = self.fs.unmount();
        self.errors.log.finish();
        match unmounted {
            Ok(()) => {
                if let Some(note) = self.note() {
                    tracing::warn!("{note}");
                }
                tracing::info!("{source} unmounted");
                let failed = trouble::last_word(&self.fs, &self.source);
                if let Some(failed) = &failed {
                    tracing::error!("{failed}");
                }
                match because {
                    // As it was asked for: nothing has gone wrong.
                    Some(_) if was_shut_down => Ok(()),
                    Some(why) if !self.wanted.ext4.read_only => {
                        Err(format!("{source}: had become read-only: {why}; check it (e2fsck)"))
                    }
                    _ => failed.map_or(Ok(()), Err),
                }
            }
            Err(e) => {
                let back = self.note().map(|note| format!("; {note}")).unwrap_or_default();
                let failed =
                    trouble::last_word(&self.fs, &self.source).map(|why| format!("; {why}"));
                let failed = failed.unwrap_or_default();
                let why = format!("{source}: not everything could be written: {e}{back}{failed}");
                tracing::error!("{why}");
                Err(why)
            }
        }
    }
}
