//! Mounts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::program::{ToolError, run};
use crate::{Folder, LoopDevice};

/// A file system mounted by the kernel, with the loop devices under it and the folder it is on, as
/// far as they were made for it. Unmounted when dropped.
#[derive(Debug)]
pub struct Mount {
    // Let go of in this order.
    mounted: MountGuard,
    devices: Vec<LoopDevice>,
    _folder: Option<Folder>,
}

impl Mount {
    /// Mounts the ext4 file system of a block device on a folder; `options` as for mount(8).
    ///
    /// # Errors
    /// What `mount` says.
    pub fn of_device(device: &Path, at: &Path, options: &str) -> Result<Mount, ToolError> {
        Mount::of("ext4", device, at, options)
    }

    /// Mounts the file system of a block device on a folder; its kind as in /proc/filesystems.
    ///
    /// # Errors
    /// What `mount` says.
    pub fn of(kind: &str, device: &Path, at: &Path, options: &str) -> Result<Mount, ToolError> {
        let mounted = MountGuard::new(kind, device, at, options)?;
        Ok(Mount { mounted, devices: Vec::new(), _folder: None })
    }

    /// Mounts an image, with its external journal if it has one, on a folder.
    ///
    /// The devices are writable also for a read-only mount: it replays the journal then, as one of
    /// a disk does.
    ///
    /// # Errors
    /// What `losetup` and `mount` say.
    pub fn of_image_at(
        image: &Path,
        journal: Option<&Path>,
        at: &Path,
        options: &str,
    ) -> Result<Mount, ToolError> {
        let mut devices = vec![LoopDevice::attach(image)?];
        let mut options = options.trim_matches(',').to_owned();
        if let Some(journal) = journal {
            let journal = LoopDevice::attach(journal)?;
            let separator = if options.is_empty() { "" } else { "," };
            options += &format!("{separator}journal_path={}", journal.name());
            devices.push(journal);
        }
        let mounted = MountGuard::new("ext4", devices[0].path(), at, &options)?;
        Ok(Mount { mounted, devices, _folder: None })
    }

    /// As [`of_image_at`](Self::of_image_at), on a new folder that goes with the mount.
    ///
    /// # Errors
    /// As there.
    pub fn of_image(
        image: &Path,
        journal: Option<&Path>,
        options: &str,
    ) -> Result<Mount, ToolError> {
        let folder = Folder::new("steadfast-mount-").map_err(|e| ToolError {
            command: "mkdir".to_owned(),
            said: format!("no folder to mount on: {e}"),
        })?;
        let mount = Mount::of_image_at(image, journal, folder.path(), options)?;
        Ok(Mount { _folder: Some(folder), ..mount })
    }

    /// Takes over what a server of its own (fuse2fs) has mounted on the folder.
    pub fn adopt(folder: TempDir) -> Mount {
        let folder = Folder::of(folder);
        let mounted = MountGuard { at: folder.path().to_owned(), mounted: true };
        Mount { mounted, devices: Vec::new(), _folder: Some(folder) }
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mounted.at
    }

    /// Unmounts and detaches now, so that a failure is seen. Nothing in it may be open.
    ///
    /// # Errors
    /// It stays busy; then it is unmounted lazily, if possible.
    pub fn unmount(mut self) -> Result<(), ToolError> {
        self.mounted.unmount()?;
        self.devices.drain(..).try_for_each(|device| device.detach())
    }
}

/// The mount alone.
#[derive(Debug)]
struct MountGuard {
    at: PathBuf,
    mounted: bool,
}

impl MountGuard {
    fn new(kind: &str, device: &Path, at: &Path, options: &str) -> Result<MountGuard, ToolError> {
        let flags: &[&OsStr] =
            if options.is_empty() { &[] } else { &["-o".as_ref(), options.as_ref()] };
        let what: [&OsStr; 4] = ["-t".as_ref(), kind.as_ref(), device.as_ref(), at.as_ref()];
        run("mount", &[flags, &what].concat())?;
        Ok(MountGuard { at: at.to_owned(), mounted: true })
    }

    fn unmount(&mut self) -> Result<(), ToolError> {
        if !std::mem::take(&mut self.mounted) {
            return Ok(());
        }
        let mut outcome = Ok(String::new());
        let gone = crate::retry(|| {
            outcome = run("umount", &[&self.at]);
            outcome.is_ok()
        });
        if gone {
            return Ok(());
        }
        // The name is to be free again.
        let _ = run("umount", &["--lazy".as_ref(), self.at.as_os_str()]);
        outcome.map(drop)
    }
}

impl Drop for MountGuard {
    fn drop(&mut self) {
        // A failure cannot be reported here: callers that need it unmount explicitly.
        let _ = self.unmount();
    }
}
