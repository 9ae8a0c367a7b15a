//! The host: its devices and volumes, and all requests to it.
//!
//! # Invariants
//!
//! 1. One change at a time. The lock of the present state is held for moments only, never while a
//!    device is waited for. So status, counters and the tree always answer (`registry`).
//! 2. A change is recorded (`record`) before it is made. If it fails, the record is reverted.
//! 3. Only the volume writes to its components, also while a device becomes a component or stops
//!    being one (`claim`).
//!
//! Each part changes what it guards: [`HostDevices`], [`HostVolumes`], [`HostMounts`],
//! [`KernelDevices`]. What they know of each other is in the [`Registry`].

mod assemble;
mod change;
pub(crate) mod claim;
mod configured;
mod create;
mod devices;
pub mod kernel;
mod labels;
mod legs;
pub mod mounts;
pub(crate) mod registry;
mod resync;
mod resync_work;
mod status;
pub(crate) mod volumes;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_runtime::{Nanos, now};

use self::devices::HostDevices;
use self::kernel::KernelDevices;
use self::mounts::HostMounts;
use self::registry::{Registry, failed};
use self::volumes::HostVolumes;
use crate::config::HostConfig;
pub(crate) use crate::endpoint::Device;
use crate::endpoint::Endpoint;
use crate::protocol::RefusalKind::{Busy, Refused};
pub use crate::protocol::Result;
use crate::protocol::{Answer, Request};

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

/// One process that keeps devices and volumes assembled.
pub struct Host {
    /// The configuration file.
    config: PathBuf,
    pub(crate) registry: Arc<Registry>,
    pub(crate) devices: HostDevices,
    volumes: HostVolumes,
    mounts: HostMounts,
    kernel: KernelDevices,
    started: Nanos,
    /// What labels say, for the status.
    labels: Arc<labels::Labels>,
    ended: AtomicBool,
    /// Nothing is done any more.
    end: Condvar,
    stopping: Mutex<bool>,
}

impl Host {
    /// Opens everything that is configured and assembles it. What cannot be is reported in the log
    /// and by the status; the rest goes on.
    ///
    /// # Errors
    /// Another host has the configuration; the state file cannot be read or written.
    pub fn start(options: Options, config: &HostConfig) -> Result<Arc<Host>> {
        let Options { config: path, occupant, forget, mounter } = options;
        let registry = Arc::new(Registry::open(&path)?);
        let devices = HostDevices::new(&registry);
        let host = Arc::new(Host {
            volumes: HostVolumes::new(&registry, &devices, occupant, forget),
            mounts: HostMounts::new(&registry, mounter, &path),
            kernel: KernelDevices::new(&registry),
            config: path,
            registry,
            devices,
            started: now(),
            labels: Arc::default(),
            ended: AtomicBool::new(false),
            end: Condvar::new(),
            stopping: Mutex::new(false),
        });
        host.kernel.detach_left();
        host.open_all(config)?;
        host.start_maintenance();
        Ok(host)
    }

    /// Does what a request asks for.
    ///
    /// # Errors
    /// Says why it was not done.
    pub fn answer(&self, request: Request) -> Result<Answer> {
        if self.ended.load(Ordering::Acquire) {
            return Err(Refused.because("the host is shutting down"));
        }
        match request {
            Request::Status => Ok(Answer { stack: Some(self.status()), ..Answer::default() }),
            Request::Counters => {
                Ok(Answer { counters: Some(self.counters()), ..Answer::default() })
            }
            Request::CreateRamDisk(disk) => self.devices.create_ramdisk(&disk.name, disk.bytes),
            Request::DeleteRamDisk(named) => self.devices.delete_ramdisk(&named.name),
            Request::AddDevice(new) => self.devices.add_device(&new),
            Request::RemoveDevice(named) => self.devices.remove_device(&named.name),
            Request::AddAlias(new) => self.devices.add_alias(&new.name, &new.target),
            Request::RemoveAlias(named) => self.devices.remove_alias(&named.name),
            Request::AttachKernel(named) => self.kernel.attach(&named.name),
            Request::DetachKernel(named) => self.kernel.detach(&named.name),
            Request::Mount(new) => self.mounts.mount(&new),
            Request::Umount(named) => self.mounts.umount(&named.name),
            Request::Sync => self.sync().map(|()| Answer::default()),
            Request::Stop => self.stop(),
            of_volumes => self.volumes.answer(&of_volumes),
        }
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// The error of the first device that failed; all are flushed.
    pub fn sync(&self) -> Result<()> {
        let endpoints = self.registry.lock().endpoints();
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
        let _one = self.registry.one_change();
        {
            let mut inner = self.registry.lock();
            let open = inner.endpoints().into_iter().find(|e| e.open_count() > 0);
            if let Some(open) = open {
                let what = "its file is open; close it first (a loop device: volume \
                            detach-kernel), or end the host by a signal";
                return Err(Busy.about(open.name(), what));
            }
            inner.stopping = true;
        }
        let unmounted = self.mounts.umount_all_or_none();
        unmounted.inspect_err(|_| self.registry.lock().stopping = false)?;
        self.end();
        Ok(Answer::default())
    }

    /// Closes everything: nothing is in doubt after that. Twice does no harm.
    ///
    /// # Errors
    /// The first thing that could not be closed; all are even so.
    pub fn close(&self) -> Result<()> {
        let _one = self.registry.one_change();
        self.ended.store(true, Ordering::Release);
        self.end();
        self.kernel.let_go();
        self.kernel.forget_detached();
        let unmounted = self.mounts.umount_all(true);
        let mut outcome = unmounted.and(self.volumes.close());
        let devices: Vec<Arc<Endpoint>> =
            self.registry.lock().devices.values().filter_map(|d| d.endpoint.clone()).collect();
        for device in devices {
            match device.flush().map_err(|e| failed(device.name(), e)) {
                // What its volume lost by that the volume has said when it was closed, and a mirror
                // goes on without it.
                Err(e) if !device.was_written_as_a_file() => tracing::warn!("{e}"),
                flushed => outcome = outcome.and(flushed),
            }
        }
        let mut inner = self.registry.lock();
        inner.volumes.clear();
        inner.devices.clear();
        outcome
    }

    /// The configuration file.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Mounts the configured file systems; a failure is reported, and the others are mounted.
    pub fn mount_configured(&self, config: &HostConfig) {
        self.mounts.mount_configured(config);
    }

    /// Takes the kernel's block devices away, at the end: what is still mounted loses its disk, and
    /// gets that answer. While the tree is still served: what the kernel has to write is written.
    pub fn let_kernel_go(&self) {
        self.kernel.let_go();
    }

    /// Says where the tree was mounted.
    pub fn tree_is_at(&self, path: &Path) {
        self.registry.lock().tree = Some(path.to_path_buf());
    }

    /// Whether the host is stopping, waiting for that for so long at most.
    fn is_ending_within(&self, time: Duration) -> bool {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.end.wait_timeout_while(stopping, time, |stopping| !*stopping);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
