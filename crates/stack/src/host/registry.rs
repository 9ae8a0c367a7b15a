//! What has a name: devices and volumes as far as they are there, and what is recorded of them.
//!
//! A change is recorded before it is made. If it fails, the record is reverted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steadfast_block::BlockError;
use steadfast_host::LoopDevice;
use steadfast_volume::{Mirror, Volume, VolumeError};

use super::{Result, claim, mounts, resync_work};
use crate::config::check_name;
use crate::endpoint::Endpoint;
use crate::protocol::RefusalKind::{Busy, Failed, NotFound, Refused, UsedWrongly};
use crate::protocol::{Refusal, RefusalKind};
use crate::record::{Records, StateFile, VolumeRecord};

/// A change was made and could not be written down.
const NOT_KEPT: &str = "it was done, but is not kept: the next start finds the labels otherwise \
                        than this file, and says so";

/// Everything with a name, and its record. One change is made at a time; the present state is
/// locked for moments only, never while a device is waited for.
pub(crate) struct Registry {
    file: StateFile,
    inner: Mutex<HostState>,
    /// Held while something is changed. Taken before `inner`.
    changes: Mutex<()>,
    /// Where the next endpoint's number comes from.
    numbers: AtomicU64,
    /// What is becoming a component, or was one until now.
    pub claim: claim::Names,
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
    pub resync: Arc<resync_work::Work>,
}

impl Registry {
    /// Of what the state file of a configuration says.
    ///
    /// # Errors
    /// Another host has the configuration; the state file cannot be read or written.
    pub fn open(config: &Path) -> Result<Registry> {
        let file = StateFile::open(config)?;
        let records = file.read()?;
        Ok(Registry {
            file,
            inner: Mutex::new(HostState { records, ..HostState::default() }),
            changes: Mutex::new(()),
            numbers: AtomicU64::new(1),
            claim: claim::Names::default(),
        })
    }

    /// The present state.
    pub fn lock(&self) -> MutexGuard<'_, HostState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until it goes nobody else changes anything.
    pub fn one_change(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless somebody changes something now.
    pub fn try_one_change(&self) -> Option<MutexGuard<'_, ()>> {
        self.changes.try_lock().ok()
    }

    /// The next endpoint's number.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// What has this name, or an alias of it.
    pub fn endpoint(&self, name: &str) -> Result<Arc<Endpoint>> {
        self.lock().endpoint(name)
    }

    /// A mirror that is assembled.
    pub fn mirror(&self, name: &str) -> Result<(String, Mirror)> {
        let inner = self.lock();
        let name = inner.records.resolved(name);
        let Some(assembled) = inner.volumes.get(name) else {
            let what = match inner.devices.contains_key(name) {
                true => Refused.about(name, "is a device, this is for mirrors"),
                false => NotFound.about(name, "there is no such volume"),
            };
            return Err(what);
        };
        let Some(volume) = &assembled.volume else {
            let why = assembled.problem.clone().unwrap_or_default();
            return Err(Refused.about(name, format!("is not assembled: {why}")));
        };
        let mirror = volume.mirror.clone().ok_or_else(|| {
            let kind = volume.kind.name();
            Refused.about(name, format!("is a {kind}, this is for mirrors"))
        })?;
        Ok((name.to_owned(), mirror))
    }

    /// Refuses a name that nothing can have, or that something has.
    pub fn check_new_name(&self, name: &str) -> Result<()> {
        check_name(name).map_err(|what| UsedWrongly.because(what.to_string()))?;
        match self.lock().records.what_is(name) {
            Some(what) => {
                Err(Busy.about(name, format!("is the name of {what} already: choose another one")))
            }
            None => Ok(()),
        }
    }

    /// Remembers what `change` makes of the records. If the disk does not take it nothing is
    /// changed.
    pub fn remember(&self, change: impl FnOnce(&mut Records)) -> Result<Records> {
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
    pub fn remember_after<T>(
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
    pub fn forget(&self, before: Records) {
        if let Err(e) = self.file.write(&before) {
            tracing::error!("{e}: something is named there that was not made");
        }
        self.lock().records = before;
    }

    /// The same of one volume's record.
    pub fn change_record(
        &self,
        name: &str,
        change: impl FnOnce(&mut VolumeRecord),
    ) -> Result<Records> {
        self.remember(|records| {
            if let Some(record) = records.volume_mut(name) {
                change(record);
            }
        })
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
                return Err(NotFound.about(name, "there is no such device"));
            }
        };
        endpoint.clone().ok_or_else(|| {
            let why = problem.clone().unwrap_or_default();
            Refused.about(name, format!("is not there: {why}"))
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
            return Err(Busy.about(name, format!("is a component of '{}'", user.name)));
        }
        self.check_closed(name)
    }

    /// The same, whoever it is a component of.
    pub fn check_closed(&self, name: &str) -> Result<()> {
        if let Some(device) = self.kernel_device(name) {
            let what = format!("is {} of the kernel: detach-kernel it first", device.name());
            return Err(Busy.about(name, what));
        }
        self.check_unmounted(name)?;
        match self.endpoint(name) {
            Ok(endpoint) if endpoint.open_count() > 0 => Err(Busy.about(name, "its file is open")),
            _ => Ok(()),
        }
    }
}

/// A device failed.
pub(crate) fn failed(name: &str, error: BlockError) -> Refusal {
    Refusal { about: Some(name.to_owned()), ..Failed.because(error.to_string()) }
}

/// A volume refused, or failed.
pub(crate) fn of_volume(name: &str, error: VolumeError) -> Refusal {
    let kind = match &error {
        VolumeError::Refused(_) | VolumeError::Incomplete(_) => RefusalKind::Refused,
        VolumeError::Newer { .. } | VolumeError::Features { .. } => RefusalKind::Unsupported,
        VolumeError::Io(_) | VolumeError::Corrupt { .. } => RefusalKind::Failed,
    };
    Refusal { about: Some(name.to_owned()), ..kind.because(error.to_string()) }
}

/// What a volume said, as the host says it.
pub(crate) fn said<T>(name: &str, outcome: std::result::Result<T, VolumeError>) -> Result<T> {
    outcome.map_err(|e| of_volume(name, e))
}
