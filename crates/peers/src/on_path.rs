//! A file system of the kernel's on devices of this machine.

use std::fs::{File, metadata};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use steadfast_host::{LoopDevice, Mount, MountFolder};

use crate::Result;
use crate::kind::KernelFs;
use crate::tool::new_folder;

/// A file system of the kernel's, made anew on block devices or files of this machine, and mounted.
/// Taken away when dropped.
pub struct PathMount {
    // Let go of in this order.
    mount: Mount,
    folder: MountFolder,
    loops: Vec<LoopDevice>,
}

impl PathMount {
    /// Makes and mounts it: the disk, then the journal's device if it has one. What is on them is
    /// lost. A file is put under a loop device. `mkfs`: more words for its mkfs.
    ///
    /// # Errors
    /// Something is missing, or a tool refused.
    pub fn new(
        fs: KernelFs,
        (mkfs, options): (&str, &str),
        devices: &[&Path],
    ) -> Result<PathMount> {
        fs.available()?;
        let (mut loops, mut paths): (Vec<LoopDevice>, Vec<PathBuf>) = Default::default();
        let mut open = Vec::new();
        for path in devices {
            if metadata(path).is_ok_and(|m| m.file_type().is_block_device()) {
                paths.push(path.to_path_buf());
                continue;
            }
            // Not every file system has files past the page cache.
            let attached = LoopDevice::attach_direct(path);
            let attached = attached.or_else(|_| LoopDevice::attach(path))?;
            // Whoever has it open last, a mkfs or the mount, takes it along if we are killed.
            open.extend(File::open(attached.path()));
            attached.set_autoclear()?;
            paths.push(attached.path().to_path_buf());
            loops.push(attached);
        }
        let devices: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
        let words: Vec<String> = mkfs.split_whitespace().map(str::to_owned).collect();
        fs.make(devices[0], devices.get(1).copied(), &words)?;
        let folder = new_folder()?;
        let mount = fs.mount(&devices, folder.path(), &[options])?;
        Ok(PathMount { mount, folder, loops })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Takes it away now, so that a failure is seen. Nothing may have it open.
    ///
    /// # Errors
    /// It is in use.
    pub fn take_away(self) -> Result<()> {
        self.mount.unmount()?;
        Ok(self.loops.iter().try_for_each(LoopDevice::detach)?)
    }
}
