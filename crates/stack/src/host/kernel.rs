//! Block devices of the kernel over the tree's files: loop devices with direct I/O.
//!
//! A device that could not be detached stays recorded, so that it is shown and can be detached
//! later. It is recorded with the kernel's disk sequence number, by which the next host identifies
//! it if this one is killed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steadfast_host::mounts::seen_by;
use steadfast_host::{LoopDevice, is_attached};

use super::Result;
use super::registry::{HostState, Registry};
use crate::protocol::Answer;
use crate::protocol::RefusalKind::{Busy, Failed, NotFound, Refused};
use crate::record::KernelRecord;

impl HostState {
    /// The kernel's block device over a file, as long as it is that: others can detach it too.
    pub fn kernel_device(&self, name: &str) -> Option<&Arc<LoopDevice>> {
        self.kernel.get(name).filter(|device| device.is_attached())
    }
}

/// The kernel's block devices of a host.
pub(crate) struct KernelDevices {
    registry: Arc<Registry>,
}

impl KernelDevices {
    pub fn new(registry: &Arc<Registry>) -> KernelDevices {
        KernelDevices { registry: Arc::clone(registry) }
    }

    pub fn attach(&self, name: &str) -> Result<Answer> {
        let _one = self.registry.one_change();
        let (name, file) = {
            let inner = self.registry.lock();
            let name = inner.endpoint(name)?.name().to_owned();
            if let Some(device) = inner.kernel_device(&name) {
                return Err(Refused.about(&name, format!("is {} already", device.name())));
            }
            inner.check_unused(&name)?;
            let Some(tree) = &inner.tree else {
                let what = "the host has no tree of files: start it with --tree";
                return Err(Refused.about(&name, what));
            };
            (name.clone(), tree.join("dsk").join(&name))
        };
        // Without the lock: it opens the file, which we answer.
        let device = LoopDevice::attach_direct(&file).map_err(|e| {
            let what = format!("no block device could be made: {e}");
            Failed.about(&name, what)
        })?;
        if let (Some(sequence), Some(boot)) = (device.sequence(), boot()) {
            let record = KernelRecord { path: device.path().to_path_buf(), sequence, boot };
            // On an error it is dropped, and so detached.
            self.registry.remember(|records| drop(records.kernel.insert(name.clone(), record)))?;
        }
        let path = device.name().to_owned();
        tracing::info!("{name}: is {path} of the kernel");
        self.registry.lock().kernel.insert(name, Arc::new(device));
        Ok(Answer { kernel: Some(path), ..Answer::default() })
    }

    pub fn detach(&self, name: &str) -> Result<Answer> {
        let _one = self.registry.one_change();
        let (name, device) = {
            let inner = self.registry.lock();
            let name = inner.records.resolved(name).to_owned();
            let Some(device) = inner.kernel.get(&name).cloned() else {
                return Err(NotFound.about(&name, "is no block device of the kernel"));
            };
            (name, device)
        };
        let path = device.name().to_owned();
        if let Some(what) = user_of(device.path()).filter(|_| device.is_attached()) {
            return Err(Busy.about(&name, format!("{path} is {what}")));
        }
        if let Err(e) = device.detach() {
            let what = format!("is {path} still ({e}): close it, and ask again");
            return Err(Busy.about(&name, what));
        }
        self.registry.lock().kernel.remove(&name);
        self.forget_detached();
        Ok(Answer { kernel: Some(path), ..Answer::default() })
    }

    /// Takes the kernel's block devices away, at the end: what is still mounted loses its disk, and
    /// gets that answer. While the tree is still served: what the kernel has to write is written.
    pub fn let_go(&self) {
        let devices = std::mem::take(&mut self.registry.lock().kernel);
        for (name, device) in devices {
            let path = device.name().to_owned();
            if let Some(what) = user_of(device.path()).filter(|_| device.is_attached()) {
                tracing::error!("{name}: {path} is {what}, and its volume ends: unmount it first");
            }
            if let Err(e) = device.detach() {
                tracing::error!("{name}: {path}: {e}; the next host looks after it");
            }
        }
    }

    /// Forgets what is attached no more; what is stays, for the next host.
    pub(super) fn forget_detached(&self) {
        let forgotten =
            self.registry.remember(|records| records.kernel.retain(|_, kept| kept.is_there()));
        if let Err(e) = forgotten {
            // OK to go on: it is recognised as gone at the next start.
            tracing::warn!("{e}");
        }
    }

    /// Detaches what a host of this configuration has left that was killed. It is known whatever
    /// became of its tree, also if somebody has unmounted that.
    pub(super) fn detach_left(&self) {
        let left = self.registry.lock().records.kernel.clone();
        for (name, record) in &left {
            let left = || LoopDevice::left(&record.path, record.sequence);
            let Some(device) = record.is_there().then(left).flatten() else { continue };
            let path = device.name();
            if let Some(what) = user_of(device.path()) {
                let was = "was of a host that has ended, and has nothing under it";
                tracing::error!("{name}: {path} is {what}; it {was}");
                // OK to ignore: it was reported.
                let _ = device.set_autoclear();
                continue;
            }
            match device.abandon() {
                Ok(()) => {
                    tracing::warn!("{name}: {path} was of a host that has ended, and is detached");
                }
                Err(e) => tracing::error!("{name}: {path} was of a host that has ended: {e}"),
            }
        }
        if !left.is_empty() {
            self.forget_detached();
        }
    }
}

impl KernelRecord {
    fn is_there(&self) -> bool {
        let same_start = boot().is_some_and(|boot| boot == self.boot);
        same_start && is_attached(&self.path, Some(self.sequence))
    }
}

/// The boot id: sequence numbers start again at each boot.
fn boot() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned())
}

/// Who uses a block device, as far as the table of mounts says.
fn user_of(device: &Path) -> Option<String> {
    let mounts = seen_by("self").unwrap_or_default();
    let mount = mounts.iter().find(|mount| Path::new(&mount.source) == device)?;
    Some(format!("mounted at {}: unmount it first", mount.at.display()))
}

/// Detaches loop devices over files of a tree whose process is gone; their paths. Those of this
/// configuration the host knows by itself; these are others', or of a kernel that has no sequence
/// numbers of disks.
pub fn detach_dead(tree: &Path) -> Vec<PathBuf> {
    let mut detached = Vec::new();
    for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = entry.path().join("loop/backing_file");
        let under = std::fs::read(backing).unwrap_or_default();
        if Path::new(OsStr::from_bytes(under.trim_ascii_end())).starts_with(tree) {
            let device = Path::new("/dev").join(entry.file_name());
            let mut losetup = std::process::Command::new("timeout");
            losetup.args(["-s", "KILL", "30", "losetup", "--detach"]).arg(&device);
            if losetup.status().is_ok_and(|s| s.success()) {
                detached.push(device);
            }
        }
    }
    detached
}
