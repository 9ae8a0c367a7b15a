//! The kernel's ext4 on loop devices.

use std::path::Path;
use std::process::Command;

use super::{LIMIT, Paths, umount};
use crate::Result;
use crate::program::{run, run_ok};

/// A loop device over a file; detached when dropped.
#[derive(Debug)]
pub(super) struct LoopDevice {
    path: String,
}

impl LoopDevice {
    pub(super) fn new(file: &Path) -> Result<LoopDevice> {
        let mut losetup = Command::new("losetup");
        let path = run_ok(LIMIT, losetup.args(["--find", "--show"]).arg(file))?;
        Ok(LoopDevice { path: path.trim().to_owned() })
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Nobody is left to be told; a busy device goes when its last user does.
        let _ = run(LIMIT, Command::new("losetup").args(["-d", &self.path]));
    }
}

/// The loop devices under a mount.
#[derive(Debug)]
pub(super) struct Loops {
    _image: LoopDevice,
    _journal: Option<LoopDevice>,
}

pub(super) fn mount(paths: &Paths<'_>, options: &str) -> Result<Loops> {
    let image = LoopDevice::new(paths.image)?;
    let journal = paths.journal.map(LoopDevice::new).transpose()?;
    let mut options: Vec<String> = options.split(',').map(str::to_owned).collect();
    options.retain(|o| !o.is_empty());
    if let Some(journal) = &journal {
        options.push(format!("journal_path={}", journal.path()));
    }
    let mut mount = Command::new("mount");
    mount.args(["-t", "ext4"]);
    if !options.is_empty() {
        mount.args(["-o", &options.join(",")]);
    }
    run_ok(LIMIT, mount.arg(image.path()).arg(paths.mountpoint))?;
    Ok(Loops { _image: image, _journal: journal })
}

impl Loops {
    pub(super) fn unmount(self, mountpoint: &Path) -> Result<()> {
        umount(mountpoint)
    }
}
