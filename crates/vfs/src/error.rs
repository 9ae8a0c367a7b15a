//! Why a file-system operation failed.

use rustix::io::Errno;

/// Result of a file-system operation.
pub type Result<T> = std::result::Result<T, FsError>;

/// Why an operation failed. [`FsError::errno`] is the one place where it becomes a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    /// ENOENT.
    #[error("no such file or directory")]
    NotFound,
    /// EEXIST.
    #[error("file exists")]
    Exists,
    /// ENOTDIR.
    #[error("not a directory")]
    NotDirectory,
    /// EISDIR.
    #[error("is a directory")]
    IsDirectory,
    /// ENOTEMPTY.
    #[error("directory not empty")]
    NotEmpty,
    /// ENOSPC; says what ran out: blocks, inodes.
    #[error("no space left: {what}")]
    NoSpace {
        /// "blocks" or "inodes".
        what: &'static str,
    },
    /// ENAMETOOLONG.
    #[error("name longer than 255 bytes")]
    NameTooLong,
    /// EINVAL.
    #[error("invalid argument: {what}")]
    Invalid {
        /// What was wrong.
        what: &'static str,
    },
    /// EFBIG.
    #[error("file too large")]
    FileTooLarge,
    /// EMLINK.
    #[error("too many links")]
    TooManyLinks,
    /// EPERM.
    #[error("operation not permitted: {what}")]
    NotPermitted {
        /// What is not permitted.
        what: &'static str,
    },
    /// EACCES.
    #[error("permission denied")]
    AccessDenied,
    /// EBADF.
    #[error("bad file handle")]
    BadHandle,
    /// ELOOP.
    #[error("too many levels of symbolic links")]
    Loop,
    /// EROFS; says why: asked for, or forced by an earlier error.
    #[error("read-only file system: {why}")]
    ReadOnly {
        /// Why it is read-only.
        why: String,
    },
    /// EOPNOTSUPP.
    #[error("not supported: {what}")]
    Unsupported {
        /// Which feature or operation.
        what: String,
    },
    /// EUCLEAN: the bytes on disk make no sense. Says what and where.
    #[error("corrupt file system: {what} ({place})")]
    Corrupt {
        /// What is wrong.
        what: String,
        /// Where: structure and number.
        place: String,
    },
    /// EIO: the device failed.
    #[error("input/output error: {what}")]
    Io {
        /// In words.
        what: String,
    },
    /// An error number of the host that has no variant of its own.
    #[error("{}", std::io::Error::from_raw_os_error(*errno))]
    Host {
        /// The error number.
        errno: i32,
    },
}

impl FsError {
    /// The error number that a system call would return.
    pub fn errno(&self) -> i32 {
        let e = match self {
            FsError::NotFound => Errno::NOENT,
            FsError::Exists => Errno::EXIST,
            FsError::NotDirectory => Errno::NOTDIR,
            FsError::IsDirectory => Errno::ISDIR,
            FsError::NotEmpty => Errno::NOTEMPTY,
            FsError::NoSpace { .. } => Errno::NOSPC,
            FsError::NameTooLong => Errno::NAMETOOLONG,
            FsError::Invalid { .. } => Errno::INVAL,
            FsError::FileTooLarge => Errno::FBIG,
            FsError::TooManyLinks => Errno::MLINK,
            FsError::NotPermitted { .. } => Errno::PERM,
            FsError::AccessDenied => Errno::ACCESS,
            FsError::BadHandle => Errno::BADF,
            FsError::Loop => Errno::LOOP,
            FsError::ReadOnly { .. } => Errno::ROFS,
            FsError::Unsupported { .. } => Errno::OPNOTSUPP,
            FsError::Corrupt { .. } => Errno::UCLEAN,
            FsError::Io { .. } => Errno::IO,
            FsError::Host { errno } => return *errno,
        };
        e.raw_os_error()
    }
}

impl From<Errno> for FsError {
    fn from(e: Errno) -> Self {
        match e {
            Errno::NOENT => FsError::NotFound,
            Errno::EXIST => FsError::Exists,
            Errno::NOTDIR => FsError::NotDirectory,
            Errno::ISDIR => FsError::IsDirectory,
            Errno::NOTEMPTY => FsError::NotEmpty,
            Errno::NOSPC => FsError::NoSpace { what: "on the host" },
            Errno::NAMETOOLONG => FsError::NameTooLong,
            Errno::FBIG => FsError::FileTooLarge,
            Errno::MLINK => FsError::TooManyLinks,
            Errno::ACCESS => FsError::AccessDenied,
            Errno::BADF => FsError::BadHandle,
            Errno::LOOP => FsError::Loop,
            e => FsError::Host { errno: e.raw_os_error() },
        }
    }
}
