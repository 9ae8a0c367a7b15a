//! The kernel's ext4 on loop devices.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ImagePaths, LIMIT, umount};
use crate::program::{run, run_ok};
use crate::{Result, SuiteError};

/// A loop device over a file; detached when dropped.
#[derive(Debug)]
pub(crate) struct LoopDevice {
    path: String,
}

impl LoopDevice {
    pub(crate) fn new(file: &Path) -> Result<LoopDevice> {
        LoopDevice::with(&[], file)
    }

    /// Its requests go past the page cache of the machine.
    pub(crate) fn direct(file: &Path) -> Result<LoopDevice> {
        LoopDevice::with(&["--direct-io=on"], file)
    }

    fn with(options: &[&str], file: &Path) -> Result<LoopDevice> {
        let mut losetup = Command::new("losetup");
        let path = run_ok(LIMIT, losetup.args(["--find", "--show"]).args(options).arg(file))?;
        Ok(LoopDevice { path: path.trim().to_owned() })
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Nobody is left to report to; a busy device goes when its last user does.
        let _ = run(LIMIT, Command::new("losetup").args(["-d", &self.path]));
    }
}

/// A disk of the kernel's own compressed memory (zram): nothing between it and the file system.
/// Given back when dropped.
#[derive(Debug)]
pub(crate) struct Zram {
    number: u32,
}

impl Zram {
    pub(crate) fn new(size: u64) -> Result<Zram> {
        let add = Path::new("/sys/class/zram-control/hot_add");
        let answer = std::fs::read_to_string(add).map_err(SuiteError::host(add))?;
        let number = answer.trim().parse().map_err(|_| {
            SuiteError::Target(format!("{} says {answer:?}, which is no number", add.display()))
        })?;
        let zram = Zram { number };
        let disksize = format!("/sys/block/zram{number}/disksize");
        std::fs::write(&disksize, size.to_string()).map_err(SuiteError::host(&disksize))?;
        Ok(zram)
    }

    pub(crate) fn path(&self) -> PathBuf {
        format!("/dev/zram{}", self.number).into()
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // Nobody is left to report to.
        let _ = std::fs::write(format!("/sys/block/zram{}/reset", self.number), "1");
        let _ = std::fs::write("/sys/class/zram-control/hot_remove", self.number.to_string());
    }
}

/// Mounts a block device as it is.
pub(super) fn mount_device(paths: &ImagePaths<'_>, options: &str) -> Result<()> {
    let mut mount = Command::new("mount");
    mount.args(["-t", "ext4"]);
    if !options.is_empty() {
        mount.args(["-o", options]);
    }
    run_ok(LIMIT, mount.arg(paths.image).arg(paths.mountpoint)).map(drop)
}

/// The loop devices under a mount.
#[derive(Debug)]
pub(super) struct Loops {
    _image: LoopDevice,
    _journal: Option<LoopDevice>,
}

pub(super) fn mount(paths: &ImagePaths<'_>, options: &str) -> Result<Loops> {
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
