//! Block devices of the kernel over the tree's files: loop devices with direct I/O.

use std::path::{Path, PathBuf};

use steadfast_host::LoopDevice;

use super::{Host, Result};
use crate::protocol::{Answer, Kind, Refusal};

impl Host {
    pub(super) fn attach_kernel(&self, name: &str) -> Result<Answer> {
        let _one = self.one_change();
        let (name, file) = {
            let inner = self.lock();
            let name = inner.endpoint(name)?.name().to_owned();
            if let Some(device) = inner.kernel.get(&name) {
                let what = format!("is {} already", device.name());
                return Err(Refusal::about(Kind::Refused, &name, what));
            }
            inner.check_unused(&name)?;
            let Some(tree) = &inner.tree else {
                let what = "the host has no tree of files: start it with --tree";
                return Err(Refusal::about(Kind::Refused, &name, what));
            };
            (name.clone(), tree.join("dsk").join(&name))
        };
        // Without the lock: it opens the file, which we answer.
        let device = LoopDevice::attach_direct(&file).map_err(|e| {
            let what = format!("no block device could be made: {e}");
            Refusal::about(Kind::Failed, &name, what)
        })?;
        let path = device.name().to_owned();
        tracing::info!("{name}: is {path} of the kernel");
        self.lock().kernel.insert(name, device);
        Ok(Answer { kernel: Some(path), ..Answer::default() })
    }

    pub(super) fn detach_kernel(&self, name: &str) -> Result<Answer> {
        let _one = self.one_change();
        let (name, device) = {
            let mut inner = self.lock();
            let name = inner.records.resolved(name).to_owned();
            let Some(device) = inner.kernel.get(&name) else {
                let what = "is no block device of the kernel";
                return Err(Refusal::about(Kind::NotFound, &name, what));
            };
            if let Some(what) = user_of(device.path()) {
                let what = format!("{} is {what}", device.name());
                return Err(Refusal::about(Kind::Busy, &name, what));
            }
            let device = inner.kernel.remove(&name);
            (name, device)
        };
        let path = device.as_ref().map(|d| d.name().to_owned());
        if let Some(device) = device {
            device.detach().map_err(|e| Refusal::about(Kind::Busy, &name, e))?;
        }
        Ok(Answer { kernel: path, ..Answer::default() })
    }

    /// Takes the kernel's block devices away, at the end: what is still mounted loses its disk, and
    /// is told so. While the tree is still served: what the kernel has to write is written.
    pub fn let_kernel_go(&self) {
        let devices = std::mem::take(&mut self.lock().kernel);
        for (name, device) in devices {
            let path = device.name().to_owned();
            if let Some(what) = user_of(device.path()) {
                tracing::error!("{name}: {path} is {what}, and its volume ends: unmount it first");
            }
            if let Err(e) = device.flush().and_then(|()| device.detach()) {
                tracing::error!("{name}: {path}: {e}");
            }
        }
    }
}

/// Who uses a block device, as far as the table of mounts says.
fn user_of(device: &Path) -> Option<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let wanted = device.to_str()?;
    table.lines().find_map(|line| {
        let (head, tail) = line.split_once(" - ")?;
        let source = tail.split(' ').nth(1)?;
        let at = head.split(' ').nth(4)?;
        (source == wanted).then(|| format!("mounted at {at}: unmount it first"))
    })
}

/// Detaches loop devices over files of a tree whose process is gone; their paths.
pub fn detach_dead(tree: &Path) -> Vec<PathBuf> {
    let mut detached = Vec::new();
    for entry in std::fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let backing = entry.path().join("loop/backing_file");
        let under = std::fs::read_to_string(backing).unwrap_or_default();
        if Path::new(under.trim()).starts_with(tree) {
            let device = Path::new("/dev").join(entry.file_name());
            let done = std::process::Command::new("losetup").arg("--detach").arg(&device).status();
            if done.is_ok_and(|s| s.success()) {
                detached.push(device);
            }
        }
    }
    detached
}
