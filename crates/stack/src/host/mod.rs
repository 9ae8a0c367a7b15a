//! The host: its devices and volumes, and all requests to it.
//!
//! # Invariants
//!
//! 1. One change at a time (`changes`). The lock of the present state (`inner`) is held for moments
//!    only, never while a device is waited for. So status, counters and the tree always answer.
//! 2. A change is recorded (`record`) before it is made. If it fails, the record is reverted.
//! 3. Only the volume writes to its components, also while a device becomes a component or stops
//!    being one (`claim`).

mod assemble;
mod change;
pub(crate) mod claim;
mod create;
mod devices;
pub mod kernel;
mod labels;
mod legs;
pub mod mounts;
mod resync;
mod status;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steadfast_block::{BlockDevice, BlockError};
use steadfast_host::LoopDevice;
use steadfast_runtime::{Nanos, now};
use steadfast_volume::{Mirror, Volume, VolumeError};

use crate::config::HostConfig;
use crate::endpoint::Endpoint;
use crate::protocol::{Answer, Refusal, RefusalKind, Request};
use crate::record::{Records, StateFile};

/// Result of what was asked.
pub type Result<T> = std::result::Result<T, Refusal>;

pub(crate) type Device = Arc<dyn BlockDevice>;

/// What a host is started with.
pub struct Options {
    /// The configuration file, which need not be there.
    pub config: PathBuf,
    /// Says what a device without a label holds that must not be overwritten unasked: a file
    /// system, a partition table, another volume manager's. The host itself knows none.
    pub occupant: fn(&Device) -> Option<String>,
    /// Wipes its signatures from a device that is overwritten by force; says what failed.
    pub forget: fn(&Device) -> std::result::Result<(), String>,
    /// Mounts file systems.
    pub mounter: Box<dyn mounts::Mounter>,
}

/// A change was made and could not be written down.
const NOT_KEPT: &str = "it was done, but is not kept: the next start finds the labels otherwise \
                        than this file, and says so";

/// One process that keeps devices and volumes assembled.
pub struct Host {
    options: Options,
    file: StateFile,
    inner: Mutex<HostState>,
    /// Held while something is changed. Taken before `inner`.
    changes: Mutex<()>,
    started: Nanos,
    /// Where the next endpoint's number comes from.
    numbers: AtomicU64,
    /// What is becoming a component, or was one until now.
    pub(crate) claim: claim::Names,
    /// What labels say, for the status.
    labels: Arc<labels::Labels>,
    ended: AtomicBool,
    /// Nothing is done any more.
    end: Condvar,
    stopping: Mutex<bool>,
}

#[derive(Default)]
pub(crate) struct HostState {
    pub records: Records,
    pub devices: BTreeMap<String, DeviceSlot>,
    pub volumes: BTreeMap<String, VolumeSlot>,
    /// Numbers of aliases, for the tree.
    pub aliases: BTreeMap<String, u64>,
    /// The host is stopping: no file can be opened any more.
    pub stopping: bool,
    /// Where the tree is mounted.
    pub tree: Option<PathBuf>,
    /// The kernel's block devices, by the name of what is under them.
    pub kernel: BTreeMap<String, Arc<LoopDevice>>,
    /// File systems that are mounted, or should be, by name.
    pub mounts: BTreeMap<String, mounts::MountRecord>,
}

/// A device or RAM disk, as far as it is there.
#[derive(Default)]
pub(crate) struct DeviceSlot {
    pub endpoint: Option<Arc<Endpoint>>,
    /// Why it is not there.
    pub problem: Option<String>,
}

/// A volume, as far as it is assembled.
#[derive(Default)]
pub(crate) struct VolumeSlot {
    pub volume: Option<Volume>,
    pub endpoint: Option<Arc<Endpoint>>,
    pub problem: Option<String>,
    pub resync: Arc<resync::Work>,
}

impl Host {
    /// Opens everything that is configured and assembles it. What cannot be is reported in the log
    /// and by the status; the rest goes on.
    ///
    /// # Errors
    /// Another host has the configuration; the state file cannot be read or written.
    pub fn start(options: Options, config: &HostConfig) -> Result<Arc<Host>> {
        let file = StateFile::open(&options.config)?;
        let records = file.read()?;
        let host = Arc::new(Host {
            options,
            file,
            inner: Mutex::new(HostState { records, ..HostState::default() }),
            changes: Mutex::new(()),
            started: now(),
            numbers: AtomicU64::new(1),
            claim: claim::Names::default(),
            labels: Arc::default(),
            ended: AtomicBool::new(false),
            end: Condvar::new(),
            stopping: Mutex::new(false),
        });
        host.detach_left();
        host.open_all(config)?;
        host.start_maintenance();
        Ok(host)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HostState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_change(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Does what a request asks for.
    ///
    /// # Errors
    /// Says why it was not done.
    pub fn answer(self: &Arc<Self>, request: Request) -> Result<Answer> {
        if self.ended.load(Ordering::Acquire) {
            return Err(Refusal::new(RefusalKind::Refused, "the host is shutting down"));
        }
        match request {
            Request::Status => Ok(Answer { stack: Some(self.status()), ..Answer::default() }),
            Request::Counters => {
                Ok(Answer { counters: Some(self.counters()), ..Answer::default() })
            }
            Request::Create(create) => self.create(&create),
            Request::Destroy(destroy) => self.destroy(&destroy),
            Request::Assemble(assemble) => self.reassemble(&assemble),
            Request::Add(new) => self.add(&new),
            Request::Remove(leg) => self.remove(&leg),
            Request::Offline(leg) => self.offline(&leg),
            Request::Online(leg) => self.online(&leg),
            Request::Replace(replace) => self.replace(&replace),
            Request::Resync(resync) => self.resync(&resync),
            Request::CancelResync(named) => self.cancel_resync(&named.name),
            Request::Scrub(scrub) => self.scrub(&scrub),
            Request::Set(set) => self.set(&set),
            Request::Grow(grow) => self.grow(&grow),
            Request::CreateRamDisk(disk) => self.create_ramdisk(&disk.name, disk.bytes),
            Request::DeleteRamDisk(named) => self.delete_ramdisk(&named.name),
            Request::AddDevice(new) => self.add_device(&new),
            Request::RemoveDevice(named) => self.remove_device(&named.name),
            Request::AddAlias(new) => self.add_alias(&new.name, &new.target),
            Request::RemoveAlias(named) => self.remove_alias(&named.name),
            Request::AttachKernel(named) => self.attach_kernel(&named.name),
            Request::DetachKernel(named) => self.detach_kernel(&named.name),
            Request::Mount(new) => self.mount(&new),
            Request::Umount(named) => self.umount(&named.name),
            Request::Sync => self.sync().map(|()| Answer::default()),
            Request::Stop => self.stop(),
        }
    }

    /// What has this name, or an alias of it.
    pub(crate) fn endpoint(&self, name: &str) -> Result<Arc<Endpoint>> {
        self.lock().endpoint(name)
    }

    /// A mirror that is assembled.
    fn mirror(&self, name: &str) -> Result<(String, Mirror)> {
        let inner = self.lock();
        let name = inner.records.resolved(name);
        let Some(assembled) = inner.volumes.get(name) else {
            let what = match inner.devices.contains_key(name) {
                true => {
                    Refusal::about(RefusalKind::Refused, name, "is a device, this is for mirrors")
                }
                false => Refusal::about(RefusalKind::NotFound, name, "there is no such volume"),
            };
            return Err(what);
        };
        let Some(volume) = &assembled.volume else {
            let why = assembled.problem.clone().unwrap_or_default();
            return Err(Refusal::about(
                RefusalKind::Refused,
                name,
                format!("is not assembled: {why}"),
            ));
        };
        let mirror = volume.mirror.clone().ok_or_else(|| {
            let kind = volume.kind.name();
            Refusal::about(RefusalKind::Refused, name, format!("is a {kind}, this is for mirrors"))
        })?;
        Ok((name.to_owned(), mirror))
    }

    /// Remembers what `change` makes of the records. If the disk does not take it nothing is
    /// changed.
    fn remember(&self, change: impl FnOnce(&mut Records)) -> Result<Records> {
        let before = self.lock().records.clone();
        let mut after = before.clone();
        change(&mut after);
        if after != before
            && let Err(e) = self.file.write(&after)
        {
            // The new file may be in place all the same, where only its folder could not be made
            // durable.
            if self.file.read().is_ok_and(|found| found.names_the_same(&after)) {
                self.forget(before);
            }
            return Err(e.with("nothing was changed"));
        }
        self.lock().records = after;
        Ok(before)
    }

    /// The same for what must be done before it is recorded: what is removed. A full disk is
    /// found before anything is done.
    fn remember_after<T>(
        &self,
        change: impl FnOnce(&mut Records),
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut after = self.lock().records.clone();
        change(&mut after);
        let prepared = self.file.prepare(&after).map_err(|e| e.with("nothing was changed"))?;
        let done = match act() {
            Ok(done) => done,
            Err(e) => {
                prepared.discard();
                return Err(e);
            }
        };
        self.lock().records = after;
        prepared.commit().map_err(|e| e.with(NOT_KEPT))?;
        Ok(done)
    }

    /// Restores the previous record, because the change failed.
    fn forget(&self, before: Records) {
        if let Err(e) = self.file.write(&before) {
            tracing::error!("{e}: something is named there that was not made");
        }
        self.lock().records = before;
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// The error of the first device that failed; all are flushed.
    pub fn sync(&self) -> Result<()> {
        let endpoints = self.lock().endpoints();
        let mut outcome = Ok(());
        // Volumes come after what they are made of: the outermost first.
        for endpoint in endpoints.iter().rev() {
            let flushed = endpoint.flush().map_err(|e| failed(endpoint.name(), e));
            outcome = outcome.and(flushed);
        }
        outcome
    }

    /// Waits for a request to stop.
    pub fn wait(&self) {
        let mut stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopping {
            stopping = self.end.wait(stopping).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Has [`wait`](Self::wait) return.
    pub fn end(&self) {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.notify_all();
    }

    fn stop(&self) -> Result<Answer> {
        let _one = self.one_change();
        {
            let mut inner = self.lock();
            let open = inner.endpoints().into_iter().find(|e| e.open_count() > 0);
            if let Some(open) = open {
                let what = "its file is open; close it first (a loop device: volume \
                            detach-kernel), or end the host by a signal";
                return Err(Refusal::about(RefusalKind::Busy, open.name(), what));
            }
            inner.stopping = true;
        }
        if let Err(e) = self.umount_all_or_none() {
            self.lock().stopping = false;
            return Err(e);
        }
        self.end();
        Ok(Answer::default())
    }

    /// Closes everything: nothing is in doubt after that. Twice does no harm.
    ///
    /// # Errors
    /// The first thing that could not be closed; all are even so.
    pub fn close(&self) -> Result<()> {
        let _one = self.one_change();
        self.ended.store(true, Ordering::Release);
        self.end();
        self.let_kernel_go();
        self.forget_detached();
        let unmounted = self.umount_all(true);
        let names: Vec<String> =
            self.lock().records.volumes.iter().rev().map(|v| v.name.clone()).collect();
        let mut outcome = unmounted;
        for name in names {
            let volume = self.lock().volumes.get(&name).and_then(|v| v.volume.clone());
            if let Some(volume) = volume {
                let closed = volume.close().map_err(|e| of_volume(&name, e));
                if let Err(e) = &closed {
                    tracing::error!("{e}; out-of-sync regions are copied at the next start");
                }
                outcome = outcome.and(closed);
            }
        }
        let devices: Vec<Arc<Endpoint>> =
            self.lock().devices.values().filter_map(|d| d.endpoint.clone()).collect();
        for device in devices {
            match device.flush().map_err(|e| failed(device.name(), e)) {
                // What its volume lost by that the volume has said when it was closed, and a mirror
                // goes on without it.
                Err(e) if !device.was_written_as_a_file() => tracing::warn!("{e}"),
                flushed => outcome = outcome.and(flushed),
            }
        }
        let mut inner = self.lock();
        inner.volumes.clear();
        inner.devices.clear();
        outcome
    }

    /// The configuration file.
    pub fn config(&self) -> &Path {
        &self.options.config
    }

    /// Says where the tree was mounted.
    pub fn tree_is_at(&self, path: &Path) {
        self.lock().tree = Some(path.to_path_buf());
    }

    /// Whether the host is stopping, waiting for that for so long at most.
    fn is_ending_within(&self, time: Duration) -> bool {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.end.wait_timeout_while(stopping, time, |stopping| !*stopping);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl HostState {
    /// What has this name, or an alias of it.
    pub fn endpoint(&self, name: &str) -> Result<Arc<Endpoint>> {
        let name = self.records.resolved(name);
        let (endpoint, problem) = match (self.devices.get(name), self.volumes.get(name)) {
            (Some(device), _) => (&device.endpoint, &device.problem),
            (None, Some(volume)) => (&volume.endpoint, &volume.problem),
            (None, None) => {
                return Err(Refusal::about(RefusalKind::NotFound, name, "there is no such device"));
            }
        };
        endpoint.clone().ok_or_else(|| {
            let why = problem.clone().unwrap_or_default();
            Refusal::about(RefusalKind::Refused, name, format!("is not there: {why}"))
        })
    }

    /// Everything that is there: what a volume is made of comes before it.
    pub fn endpoints(&self) -> Vec<Arc<Endpoint>> {
        let devices = self.devices.values().filter_map(|d| d.endpoint.clone());
        let volumes = self.records.volumes.iter();
        let volumes = volumes.filter_map(|v| self.volumes.get(&v.name)?.endpoint.clone());
        devices.chain(volumes).collect()
    }

    /// Refuses what is in use: a component of a volume, open as a file, or under a block device of
    /// the kernel.
    pub fn check_unused(&self, name: &str) -> Result<()> {
        if let Some(user) = self.records.user_of(name) {
            let what = format!("is a component of '{}'", user.name);
            return Err(Refusal::about(RefusalKind::Busy, name, what));
        }
        self.check_closed(name)
    }

    /// The same, whoever it is a component of.
    pub fn check_closed(&self, name: &str) -> Result<()> {
        if let Some(device) = self.kernel_device(name) {
            let what = format!("is {} of the kernel: detach-kernel it first", device.name());
            return Err(Refusal::about(RefusalKind::Busy, name, what));
        }
        self.check_unmounted(name)?;
        match self.endpoint(name) {
            Ok(endpoint) if endpoint.open_count() > 0 => {
                Err(Refusal::about(RefusalKind::Busy, name, "its file is open"))
            }
            _ => Ok(()),
        }
    }
}

/// A device failed.
pub(crate) fn failed(name: &str, error: BlockError) -> Refusal {
    Refusal { about: Some(name.to_owned()), ..Refusal::new(RefusalKind::Failed, error.to_string()) }
}

/// A volume refused, or failed.
pub(crate) fn of_volume(name: &str, error: VolumeError) -> Refusal {
    let kind = match &error {
        VolumeError::Refused(_) | VolumeError::Incomplete(_) => RefusalKind::Refused,
        VolumeError::Newer { .. } | VolumeError::Features { .. } => RefusalKind::Unsupported,
        VolumeError::Io(_) | VolumeError::Corrupt { .. } => RefusalKind::Failed,
    };
    Refusal { about: Some(name.to_owned()), ..Refusal::new(kind, error.to_string()) }
}

/// What a volume said, as the host says it.
pub(super) fn said<T>(name: &str, outcome: std::result::Result<T, VolumeError>) -> Result<T> {
    outcome.map_err(|e| of_volume(name, e))
}
