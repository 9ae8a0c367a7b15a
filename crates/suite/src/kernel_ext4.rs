//! The kernel's ext4 in any of the set-ups that it is measured in, made anew each time.

use std::path::{Path, PathBuf};
use std::process::Command;

use steadfast_host::Folder;

use crate::target::kernel::{LoopDevice, Zram};
use crate::target::{LIMIT, umount};
use crate::{Result, SuiteError, run, run_ok};

/// What it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackingDevice {
    /// A zram disk of so many bytes.
    Zram(u64),
    /// A loop device over this file.
    Loop(PathBuf),
    /// The same, past the page cache of the machine.
    DirectLoop(PathBuf),
}

/// How it is made and mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelExt4Setup {
    /// The device.
    pub on: BackingDevice,
    /// With fast commits.
    pub fast_commit: bool,
    /// Bytes of a zram disk with the journal; none: it is inside.
    pub journal: Option<u64>,
    /// Mount options, comma-separated.
    pub options: String,
}

/// A mounted one. Unmounted and gone when dropped, whatever happened; a loop device's file stays.
#[derive(Debug)]
pub struct KernelExt4 {
    folder: Folder,
    mounted: bool,
    device: Device,
    _journal: Option<Zram>,
}

#[derive(Debug)]
enum Device {
    Zram(Zram),
    Loop(LoopDevice),
}

impl Device {
    fn path(&self) -> PathBuf {
        match self {
            Device::Zram(zram) => zram.path(),
            Device::Loop(device) => device.path().into(),
        }
    }
}

impl KernelExt4 {
    /// Makes it and mounts it.
    ///
    /// # Errors
    /// What a program of the system said.
    pub fn new(kernel: &KernelExt4Setup) -> Result<KernelExt4> {
        let place = std::env::temp_dir();
        let folder = Folder::new_in(&place, "sfs-").map_err(SuiteError::host(&place))?;
        let device = match &kernel.on {
            BackingDevice::Zram(bytes) => Device::Zram(Zram::new(*bytes)?),
            BackingDevice::Loop(file) => Device::Loop(LoopDevice::new(file)?),
            BackingDevice::DirectLoop(file) => Device::Loop(LoopDevice::direct(file)?),
        };
        let journal = kernel.journal.map(Zram::new).transpose()?;
        let mut mke2fs = Command::new("mke2fs");
        mke2fs.args(["-F", "-q", "-t", "ext4", "-b", "4096"]);
        mke2fs.args(["-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        if kernel.fast_commit {
            mke2fs.args(["-O", "fast_commit"]);
        }
        if let Some(journal) = &journal {
            let mut made = Command::new("mke2fs");
            made.args(["-F", "-q", "-b", "4096", "-O", "journal_dev"]);
            run_ok(LIMIT, made.arg(journal.path()))?;
            mke2fs.args(["-J", &format!("device={}", journal.path().display())]);
        }
        run_ok(LIMIT, mke2fs.arg(device.path()))?;
        let mut ext4 = KernelExt4 { folder, mounted: false, device, _journal: journal };
        let mut mount = Command::new("mount");
        mount.args(["-t", "ext4", "-o", &kernel.options]).arg(ext4.device.path());
        run_ok(LIMIT, mount.arg(ext4.mountpoint()))?;
        ext4.mounted = true;
        Ok(ext4)
    }

    /// Where it is mounted.
    pub fn mountpoint(&self) -> &Path {
        self.folder.path()
    }

    /// Unmounts it and gives its devices back.
    ///
    /// # Errors
    /// If it stays busy.
    pub fn unmount(mut self) -> Result<()> {
        umount(self.mountpoint())?;
        self.mounted = false;
        Ok(())
    }
}

impl Drop for KernelExt4 {
    fn drop(&mut self) {
        if self.mounted && umount(self.mountpoint()).is_err() {
            // Nobody is left to report to; the mount must not stay.
            let _ = run(LIMIT, Command::new("umount").arg("-l").arg(self.mountpoint()));
        }
    }
}
