//! A file system at a folder of this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use steadfast_fuse::{MountError, Mounted, Options, Unmounter};

use crate::error::{Error, Result};
use crate::fs::FileSystem;

/// How long a mount is waited for that somebody still looks at.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

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
    unmounter: Unmounter,
    path: PathBuf,
    /// A fault in the file system's code was caught: what is in memory cannot be trusted.
    down: Arc<AtomicBool>,
    thread: Option<JoinHandle<steadfast_fuse::Result<bool>>>,
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
        let mounted = Mounted::new(Arc::clone(self.vfs()), folder.as_ref(), options)?;
        let (unmounter, down) = (mounted.unmounter(), mounted.down());
        let path = mounted.mountpoint().to_path_buf();
        let thread = std::thread::Builder::new().name("fuse".into());
        match thread.spawn(move || mounted.serve()) {
            Ok(thread) => {
                Ok(MountPoint { fs: Some(self), unmounter, path, down, thread: Some(thread) })
            }
            Err(source) => {
                // OK to ignore: why there is no thread says more.
                let _ = unmounter.unmount_lazily();
                Err(Error::Host { path, source })
            }
        }
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
    /// # Errors
    /// Busy: files of it are in use; it is taken out of the tree of names, and works on for them.
    /// A fault was caught in the file system's code: the next mount recovers what was synced.
    pub fn unmount(mut self) -> Result<FileSystem> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.unmounter.unmount() {
                Ok(()) => break,
                Err(MountError::Busy { .. }) if Instant::now() < until => std::thread::sleep(PAUSE),
                // What is left of it goes with `self`.
                Err(e) => return Err(e.into()),
            }
        }
        if let Some(Ok(served)) = self.thread.take().map(JoinHandle::join) {
            served?;
        }
        let fault = self.down.load(Ordering::Acquire);
        match self.fs.take() {
            Some(fs) if !fault => Ok(fs),
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
        let Some(thread) = self.thread.take() else { return };
        // Nobody is left to get the error.
        let unmounted = self.unmounter.unmount().or_else(|_| self.unmounter.unmount_lazily());
        if unmounted.is_ok() && !thread.is_finished() {
            // Whoever still has files open is served as long as he has them.
            let until = Instant::now() + PATIENCE;
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
        }
        if self.down.load(Ordering::Acquire) {
            self.fs.as_ref().inspect(|fs| fs.abandon());
        }
    }
}
