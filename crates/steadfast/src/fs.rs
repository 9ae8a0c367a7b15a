//! A mounted file system: the whole of it. What goes by path is in `paths`.

mod paths;
mod points;
mod trees;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_ext4::Ext4;
use steadfast_runtime::is_simulated;
use steadfast_vfs::{FileSystem as Vfs, FsError, HostFs, NewNode, StatFs};

use crate::error::{Error, Result};

/// A mounted file system, used by path with the names of [`std::fs`].
///
/// Paths begin at the root of the file system, with or without a leading '/'; their names may be
/// any bytes. Symbolic links are followed (at most 40) and ".." is understood, but nothing leads
/// out. Its user may do what root may: modes and owners are kept, not enforced.
///
/// Clones are the same mount, for other threads. It ends when the last clone, [`File`] and
/// [`ReadDir`] of it is dropped. To see errors of the unmount, call [`unmount`](Self::unmount).
///
/// [`File`]: crate::File
/// [`ReadDir`]: crate::ReadDir
///
/// ```
/// use steadfast::Image;
///
/// let fs = Image::in_memory(16 << 20).mount()?;
/// fs.create_dir_all("/etc/app")?;
/// fs.write("/etc/app/config", "key = 1\n")?;
/// fs.symlink("app/config", "/etc/link")?;
/// assert_eq!(fs.read_to_string("/etc/link")?, "key = 1\n");
/// fs.unmount()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct FileSystem(Arc<FileSystemCore>);

/// What all handles share.
pub(crate) struct FileSystemCore {
    fs: Arc<dyn Vfs>,
    ext4: Option<Arc<Ext4>>,
    name: String,
    owner: (u32, u32),
    /// It is a folder of this machine, whose names the kernel vouches for.
    host: bool,
    /// It was mounted in a simulation, and can be used and unmounted only there.
    simulated: bool,
    /// It is unmounted, or must not be.
    ended: AtomicBool,
}

impl FileSystemCore {
    pub fn new(
        fs: Arc<dyn Vfs>,
        ext4: Option<Arc<Ext4>>,
        name: String,
        owner: (u32, u32),
    ) -> FileSystemCore {
        let (simulated, ended) = (is_simulated(), AtomicBool::new(false));
        FileSystemCore { fs, ext4, name, owner, host: false, simulated, ended }
    }

    /// The file system, for a call.
    ///
    /// # Panics
    /// It was mounted in a simulation, and the caller is a thread of the machine: such a thread
    /// would wait for ever for tasks that only run while the simulation does.
    pub fn fs(&self) -> &Arc<dyn Vfs> {
        assert!(
            !self.simulated || is_simulated(),
            "a thread of std::thread called a file system that runs in a simulation: start \
             threads with steadfast::runtime::spawn instead, or run the program with \
             PowerCut::run_at_folder, where every thread and process can use the files"
        );
        &self.fs
    }

    /// A new object of this mode.
    pub fn node(&self, mode: u32) -> NewNode {
        let (uid, gid) = self.owner;
        // OK to cast: no more bits than these have a meaning.
        NewNode { mode: (mode & 0o7777) as u16, uid, gid, umask: 0 }
    }

    /// Whether its files can be used and let go here and now. A simulation that has ended has
    /// nobody left to write, and one that is torn down by a panic must not be waited in.
    pub fn usable(&self) -> bool {
        let here = self.simulated == is_simulated();
        let torn_down = self.simulated && std::thread::panicking();
        here && !torn_down
    }

    fn end(&self) -> Result<()> {
        if self.ended.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let Some(ext4) = &self.ext4 else { return Ok(()) };
        ext4.unmount().map_err(|source| Error::FileSystem {
            doing: "unmounting",
            device: self.name.clone(),
            source,
        })
    }
}

impl Drop for FileSystemCore {
    fn drop(&mut self) {
        if self.usable() {
            // Nobody is left to get the error: `FileSystem::unmount` is for those who ask.
            let _ = self.end();
        }
    }
}

impl FileSystem {
    pub(crate) fn of(mounted: FileSystemCore) -> FileSystem {
        FileSystem(Arc::new(mounted))
    }

    pub(crate) fn mounted(&self) -> &Arc<FileSystemCore> {
        &self.0
    }

    /// Any file system that has the interface of the layer below, by path. `name` is for messages.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use steadfast::FileSystem;
    /// use steadfast::vfs::HostFs;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let host = HostFs::open(folder.path()).map_err(|e| std::io::Error::other(e))?;
    /// let fs = FileSystem::over(Arc::new(host), "a folder");
    /// fs.write("/file", "x")?;
    /// assert!(folder.path().join("file").exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn over(fs: Arc<dyn Vfs>, name: impl Into<String>) -> FileSystem {
        FileSystem::of(FileSystemCore::new(fs, None, name.into(), (0, 0)))
    }

    /// A folder of this machine with the same calls, which nothing leads out of: to run the same
    /// code there and on an image.
    ///
    /// ```
    /// use steadfast::{FileSystem, Image};
    ///
    /// fn save(fs: &FileSystem) -> steadfast::Result<()> {
    ///     fs.write("/settings", "on")
    /// }
    /// let folder = tempfile::tempdir()?;
    /// save(&FileSystem::host(folder.path())?)?;
    /// save(&Image::in_memory(16 << 20).mount()?)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// It is no folder, or may not be searched.
    pub fn host(folder: impl AsRef<Path>) -> Result<FileSystem> {
        let folder = folder.as_ref();
        let host = HostFs::open(folder).map_err(Error::at("open", folder))?;
        let user = rustix::process::geteuid().as_raw();
        let owner = (user, rustix::process::getegid().as_raw());
        let name = folder.display().to_string();
        let mut mounted = FileSystemCore::new(Arc::new(host), None, name, owner);
        mounted.host = true;
        Ok(FileSystem::of(mounted))
    }

    /// The name of what is mounted, for messages.
    ///
    /// ```
    /// assert_eq!(steadfast::Image::in_memory(16 << 20).mount()?.name(), "memory");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The layer below, for what has no call here: extents, `fallocate`, nodes of devices.
    ///
    /// # Panics
    /// As every call of a file system that runs in a simulation, when the caller does not.
    ///
    /// ```
    /// use steadfast::Image;
    /// use steadfast::vfs::FileSystem;
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", [7; 8192])?;
    /// fs.sync()?;
    /// let (vfs, ino) = (fs.vfs(), fs.metadata("/file")?.ino());
    /// let extents = vfs.extents(steadfast::vfs::Ino(ino), 0, 8192).unwrap();
    /// assert_eq!(extents.iter().map(|e| e.len).sum::<u64>(), 8192);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn vfs(&self) -> &Arc<dyn Vfs> {
        self.0.fs()
    }

    /// The ext4 file system itself, if it is one.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// assert!(fs.ext4().is_some_and(|ext4| ext4.read_only_because().is_none()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn ext4(&self) -> Option<&Arc<Ext4>> {
        self.0.ext4.as_ref()
    }

    /// Makes everything durable.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// fs.write("/file", "x")?;
    /// fs.sync()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// What could not be written.
    pub fn sync(&self) -> Result<()> {
        self.vfs().sync().map_err(Error::at("sync", Path::new(self.name())))
    }

    /// Space and limits, in blocks.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let space = fs.statfs()?;
    /// assert!(space.blocks_free * u64::from(space.block_size) > 8 << 20);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The file system is down.
    pub fn statfs(&self) -> Result<StatFs> {
        self.vfs().statfs().map_err(Error::at("statfs", Path::new(self.name())))
    }

    /// Writes everything to its place and leaves a clean file system; the device is free then.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// let file = fs.create("/file")?;
    /// let error = fs.clone().unmount().unwrap_err();
    /// assert!(error.to_string().contains("still in use"));
    /// drop(file);
    /// fs.unmount()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Busy: a clone, a file or a directory is still in use; the mount then ends with the last of
    /// them. What could not be written; the file system then stays marked as needing recovery.
    pub fn unmount(self) -> Result<()> {
        match Arc::try_unwrap(self.0) {
            Ok(mounted) => mounted.end(),
            Err(shared) => {
                let busy = FsError::Busy { what: "it is still in use: drop what is open first" };
                Err(Error::at("unmount", Path::new(&shared.name))(busy))
            }
        }
    }

    /// Leaves it as it is, as a power cut would: nothing more is written.
    #[cfg(feature = "fuse")]
    pub(crate) fn abandon(&self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

impl std::fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSystem").field("name", &self.0.name).finish_non_exhaustive()
    }
}
