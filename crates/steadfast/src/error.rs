//! What went wrong, with which path or device, and the number that a system call would have given.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use steadfast_block::BlockError;
use steadfast_devices::source::OpenError;
use steadfast_ext4::Ext4Error;
use steadfast_setup::SetupError;
use steadfast_tar::TarError;
use steadfast_vfs::FsError;
use steadfast_vfs::path::shown;

/// Result of everything here that can fail.
///
/// ```
/// fn length(fs: &steadfast::FileSystem) -> steadfast::Result<u64> {
///     Ok(fs.metadata("/file")?.len())
/// }
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Why something failed. It becomes a [`std::io::Error`] of the right kind, so `?` works in
/// functions that return [`io::Result`](std::io::Result), and [`Error::of`] finds it there again.
///
/// ```
/// use steadfast::{Error, Image};
///
/// let fs = Image::in_memory(16 << 20).mount()?;
/// let error = fs.read("/no/file").unwrap_err();
/// assert_eq!(error.to_string(), "read /no/file: no such file or directory");
/// assert_eq!(error.errno(), 2);
/// let error = std::io::Error::from(error);
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// assert_eq!(Error::of(&error).map(Error::errno), Some(2));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation on a path of the file system.
    #[error("{operation} {}: {source}", shown(bytes(path)))]
    Path {
        /// The operation: the method's name.
        operation: &'static str,
        /// The path; of an operation on two, both.
        path: PathBuf,
        /// What the file system says.
        source: FsError,
    },
    /// Making, mounting or unmounting the file system on a device.
    #[error("{doing} {}: {source}", shown(device.as_bytes()))]
    FileSystem {
        /// What was done, as in "mounting".
        doing: &'static str,
        /// The device's name: the path of an image file.
        device: String,
        /// What is wrong with it, and what to do.
        source: Ext4Error,
    },
    /// An image file or a device cannot be opened or made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An object of a tree that must not be used as it is, or that could not be copied whole.
    #[error("{}: {what}", shown(bytes(path)))]
    Object {
        /// Its path, of the file system or of this machine.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A tar archive cannot be read or written.
    #[error(transparent)]
    Archive(TarError),
    /// What was asked for cannot be; nothing was changed.
    #[error("{what}")]
    Refused {
        /// What is wrong, and what to do.
        what: String,
    },
    /// A device failed, or refused.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A folder of this machine, or a file in it.
    #[error("{}: {source}", shown(bytes(path)))]
    Host {
        /// Its path.
        path: PathBuf,
        /// What the machine says.
        source: io::Error,
    },
    /// The kernel's FUSE.
    #[cfg(feature = "fuse")]
    #[error(transparent)]
    Mount(#[from] steadfast_fuse::MountError),
}

impl Error {
    /// The error number that a system call would return.
    ///
    /// ```
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// assert_eq!(fs.create_dir("/lost+found").unwrap_err().errno(), 17); // EEXIST
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn errno(&self) -> i32 {
        use rustix::io::Errno;
        let of_io = |e: &io::Error| e.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
        match self {
            Error::Path { source, .. } => source.errno(),
            Error::FileSystem { source: Ext4Error::Refused { .. }, .. } | Error::Refused { .. } => {
                Errno::INVAL.raw_os_error()
            }
            Error::FileSystem { source, .. } => FsError::from(source.clone()).errno(),
            Error::Open(OpenError::System { source, .. }) => of_io(source),
            Error::Open(OpenError::Busy { .. }) => Errno::BUSY.raw_os_error(),
            Error::Open(_) => Errno::INVAL.raw_os_error(),
            Error::Archive(TarError::Io(source)) => of_io(source),
            Error::Archive(_) => Errno::INVAL.raw_os_error(),
            Error::Block(_) | Error::Object { .. } => Errno::IO.raw_os_error(),
            Error::Host { source, .. } => of_io(source),
            #[cfg(feature = "fuse")]
            Error::Mount(e) => match e {
                steadfast_fuse::MountError::Busy { .. } => Errno::BUSY.raw_os_error(),
                steadfast_fuse::MountError::Mount { source, .. } => of_io(source),
                steadfast_fuse::MountError::OnlyRoot { .. } => Errno::PERM.raw_os_error(),
                steadfast_fuse::MountError::MountPoint { .. } => Errno::INVAL.raw_os_error(),
                _ => Errno::IO.raw_os_error(),
            },
        }
    }

    /// The kind that [`errno`](Self::errno) has as an [`io::Error`].
    ///
    /// ```
    /// use std::io::ErrorKind;
    ///
    /// let fs = steadfast::Image::in_memory(16 << 20).mount()?;
    /// assert_eq!(fs.remove_dir("/none").unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn kind(&self) -> io::ErrorKind {
        io::Error::from_raw_os_error(self.errno()).kind()
    }

    /// The error of ours that an [`io::Error`] was made from.
    ///
    /// ```
    /// use std::io::Read;
    /// use steadfast::{Error, Image};
    ///
    /// let fs = Image::in_memory(16 << 20).mount()?;
    /// let error = fs.open("/lost+found")?.read(&mut [0]).unwrap_err();
    /// assert_eq!(Error::of(&error).map(Error::errno), Some(21)); // EISDIR
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn of(error: &io::Error) -> Option<&Error> {
        error.get_ref()?.downcast_ref()
    }

    /// An operation on a path failed.
    pub(crate) fn at(operation: &'static str, path: &Path) -> impl FnOnce(FsError) -> Error {
        move |source| Error::Path { operation, path: path.to_path_buf(), source }
    }

    /// An operation from one path to another failed.
    pub(crate) fn between(
        operation: &'static str,
        from: &Path,
        to: &Path,
    ) -> impl FnOnce(FsError) -> Error {
        let mut path = from.as_os_str().to_owned();
        path.push(" -> ");
        path.push(to);
        move |source| Error::Path { operation, path: path.into(), source }
    }
}

/// The bytes of a path.
pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

impl From<SetupError> for Error {
    fn from(error: SetupError) -> Error {
        match error {
            SetupError::Open(error) => error.into(),
            SetupError::Block(error) => error.into(),
            error => Error::Refused { what: error.to_string() },
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}
