//! Why mounting or unmounting failed.

use std::io;
use std::path::PathBuf;

/// Result of mounting and unmounting.
pub type Result<T> = std::result::Result<T, MountError>;

impl MountError {
    /// Whether somebody uses what was to be taken away.
    pub fn is_busy(&self) -> bool {
        matches!(self, MountError::Busy { .. } | MountError::Held { .. })
    }
}

/// Why mounting or unmounting failed.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The mount point cannot be used.
    #[error("mount point {}: {why}", path.display())]
    MountPoint {
        /// The path given.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Only root may ask for an option.
    #[error("{}: only root may mount with the option {option}: leave it out", path.display())]
    OnlyRoot {
        /// The mount point.
        path: PathBuf,
        /// The option's word.
        option: &'static str,
    },
    /// The kernel or fusermount3 refused; the source says why.
    #[error("mounting at {} failed", path.display())]
    Mount {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Somebody uses files of it.
    #[error("{} is in use: close the files and leave the folders in it first", path.display())]
    Busy {
        /// The mount point.
        path: PathBuf,
    },
    /// It is unmounted here, and lives on elsewhere.
    #[error(
        "{} is unmounted here but still held, and {why}: end the mount namespace (a container, a \
         service) that has a copy of it, or unmount it there", path.display()
    )]
    Held {
        /// The mount point.
        path: PathBuf,
        /// Why it could not be cut off.
        why: String,
    },
    /// Something else was mounted at the same place later.
    #[error("{by} is mounted over {}: unmount that first", path.display())]
    Covered {
        /// The mount point.
        path: PathBuf,
        /// What lies over it.
        by: String,
    },
    /// Unmounting failed.
    #[error("unmounting {} failed: {why}", path.display())]
    Unmount {
        /// The mount point.
        path: PathBuf,
        /// In words.
        why: String,
    },
    /// The connection to the kernel broke; the source says how.
    #[error("serving {} ended", path.display())]
    Connection {
        /// The mount point.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
