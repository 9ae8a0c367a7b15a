//! Why a file-system operation failed.

use linux_raw_sys::errno as linux;
#[cfg(target_os = "linux")]
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
    /// ENAMETOOLONG, of the target of a symbolic link.
    #[error("target of a symbolic link too long: at most {most} bytes")]
    TargetTooLong {
        /// The most that it can have here, in bytes.
        most: u64,
    },
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
    /// EBUSY: says what is in use.
    #[error("busy: {what}")]
    Busy {
        /// What is in use.
        what: &'static str,
    },
    /// ENODATA: no such extended attribute.
    #[error("no such extended attribute")]
    NoData,
    /// ERANGE: does not fit.
    #[error("out of range: {what}")]
    Range {
        /// What does not fit.
        what: &'static str,
    },
    /// E2BIG: longer than any may be.
    #[error("too long: {what}")]
    TooBig {
        /// What is too long.
        what: &'static str,
    },
    /// ENXIO: nothing there (SEEK_DATA beyond the last data).
    #[error("no such address")]
    NoAddress,
    /// ETXTBSY.
    #[error("text file busy")]
    TextBusy,
    /// EXDEV: says what the two do not share (a file system, a project).
    #[error("invalid cross-device link: {what}")]
    CrossDevice {
        /// What the two do not share.
        what: &'static str,
    },
    /// EDQUOT.
    #[error("disk quota exceeded")]
    QuotaExceeded,
    /// ENOKEY: encrypted, and there is no key.
    #[error("required key not available")]
    NoKey,
    /// ESTALE: the inode is gone.
    #[error("stale file handle")]
    Stale,
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
    /// The error number that a system call of Linux would return (asm-generic/errno.h), whatever
    /// system this is.
    pub fn errno(&self) -> i32 {
        let e = match self {
            FsError::NotFound => linux::ENOENT,
            FsError::Exists => linux::EEXIST,
            FsError::NotDirectory => linux::ENOTDIR,
            FsError::IsDirectory => linux::EISDIR,
            FsError::NotEmpty => linux::ENOTEMPTY,
            FsError::NoSpace { .. } => linux::ENOSPC,
            FsError::NameTooLong | FsError::TargetTooLong { .. } => linux::ENAMETOOLONG,
            FsError::Invalid { .. } => linux::EINVAL,
            FsError::FileTooLarge => linux::EFBIG,
            FsError::TooManyLinks => linux::EMLINK,
            FsError::NotPermitted { .. } => linux::EPERM,
            FsError::AccessDenied => linux::EACCES,
            FsError::BadHandle => linux::EBADF,
            FsError::Loop => linux::ELOOP,
            FsError::ReadOnly { .. } => linux::EROFS,
            FsError::Busy { .. } => linux::EBUSY,
            FsError::NoData => linux::ENODATA,
            FsError::Range { .. } => linux::ERANGE,
            FsError::TooBig { .. } => linux::E2BIG,
            FsError::NoAddress => linux::ENXIO,
            FsError::TextBusy => linux::ETXTBSY,
            FsError::CrossDevice { .. } => linux::EXDEV,
            FsError::QuotaExceeded => linux::EDQUOT,
            FsError::NoKey => linux::ENOKEY,
            FsError::Stale => linux::ESTALE,
            FsError::Unsupported { .. } => linux::EOPNOTSUPP,
            FsError::Corrupt { .. } => linux::EUCLEAN,
            FsError::Io { .. } => linux::EIO,
            FsError::Host { errno } => return *errno,
        };
        // OK to cast: they are small.
        e as i32
    }
}

#[cfg(target_os = "linux")]
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
            Errno::NODATA => FsError::NoData,
            Errno::NXIO => FsError::NoAddress,
            Errno::TXTBSY => FsError::TextBusy,
            Errno::DQUOT => FsError::QuotaExceeded,
            Errno::NOKEY => FsError::NoKey,
            Errno::STALE => FsError::Stale,
            e => FsError::Host { errno: e.raw_os_error() },
        }
    }
}
