//! A file system at a folder of this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_fuse::{FuseMount, Options, Serving};

use crate::error::{Error, Result};
use crate::fs::FileSystem;

/// A file system that every program of this machine sees at a folder, served by threads of this
/// one. Dropping it takes it away, also while its files are in use; errors are lost then.
///
/// ```no_run
/// use steadfast::Image;
///
/// let fs = Image::open("disk.img").mount()?;
/// let mounted = fs.mount_at("/mnt")?;
/// std::fs::write("/mnt/file", "by a system call")?;
/// let fs = mounted.unmount()?;
/// assert_eq!(fs.read_to_string("/file")?, "by a system call");
/// fs.unmount()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct MountPoint {
    fs: Option<FileSystem>,
    /// A fault in the file system's code was caught: what is in memory cannot be trusted.
    down: Arc<AtomicBool>,
    /// `None` once it is unmounted.
    serving: Option<Serving>,
    path: PathBuf,
}

impl FileSystem {
    /// Mounts it at a folder by FUSE, for who runs this program; see
    /// [`mount_at_with`](Self::mount_at_with).
    ///
    /// ```no_run
    /// let fs = steadfast::Image::in_memory(64 << 20).mount()?;
    /// let mounted = fs.mount_at("/mnt")?;
    /// std::fs::create_dir("/mnt/folder")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no /dev/fuse, or it is not allowed; the folder is none, or in use.
    pub fn mount_at(self, folder: impl AsRef<Path>) -> Result<MountPoint> {
        let options = Options { source: self.name().to_owned(), ..Options::default() };
        self.mount_at_with(folder, &options)
    }

    /// Mounts it at a folder by FUSE. The value comes back from [`MountPoint::unmount`]: meanwhile
    /// the kernel takes itself for the only one who changes anything, so no clone may.
    ///
    /// ```no_run
    /// use steadfast::{Image, fuse::Options};
    ///
    /// let options = Options { allow_other: true, ..Options::default() };
    /// let mounted = Image::open("disk.img").mount()?.mount_at_with("/mnt", &options)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`mount_at`](Self::mount_at).
    pub fn mount_at_with(self, folder: impl AsRef<Path>, options: &Options) -> Result<MountPoint> {
        let mounted = FuseMount::new(Arc::clone(self.vfs()), folder.as_ref(), options)?;
        let (path, down) = (mounted.mountpoint().to_path_buf(), mounted.down());
        let serving = Some(mounted.serve_beside()?);
        Ok(MountPoint { fs: Some(self), down, serving, path })
    }
}

impl MountPoint {
    /// Where it is: absolute, without symbolic links.
    ///
    /// ```no_run
    /// # let mounted = steadfast::Image::in_memory(64 << 20).mount()?.mount_at("/mnt")?;
    /// std::fs::write(mounted.path().join("file"), "x")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes it away, and gives the file system back, still mounted in this process.
    ///
    /// ```no_run
    /// # let mounted = steadfast::Image::in_memory(64 << 20).mount()?.mount_at("/mnt")?;
    /// mounted.unmount()?.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// Another mount namespace (a container, a service) may have a copy of it. It gets errors from
    /// then on, after it was waited for a moment.
    ///
    /// # Errors
    /// Busy: files of it are in use; it is taken out of the tree of names, and works on for them.
    /// The same where another mount namespace has a copy of it that could not be cut off (as root
    /// it can). A fault was caught in the file system's code: the next mount recovers what was
    /// synced.
    pub fn unmount(mut self) -> Result<FileSystem> {
        // After an error, what is left of it goes with `self`.
        let ended = self.serving.as_mut().map(Serving::unmount).transpose()?;
        self.serving = None;
        match self.fs.take() {
            Some(fs) if ended.is_none_or(|ended| ended.well) => Ok(fs),
            fs => {
                fs.inspect(FileSystem::abandon);
                let what = format!(
                    "{}: was shut down by a fault in the file system's code; the next mount \
                     recovers what was synced",
                    self.path.display()
                );
                Err(Error::Refused { what })
            }
        }
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        // Whoever still has files open is served as long as he has them.
        drop(self.serving.take());
        if self.down.load(Ordering::Acquire) {
            self.fs.as_ref().inspect(|fs| fs.abandon());
        }
    }
}
