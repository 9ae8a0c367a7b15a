//! What can go wrong between us and the host's kernel.

use steadfast_fuse::MountError;
use steadfast_host::ToolError;

/// What a peer gave, or why it did not.
pub(crate) type Result<T, E = PeerError> = std::result::Result<T, E>;

/// Why a peer could not be set up, run or taken away.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// Not the administrator.
    #[error(
        "the kernel's own file systems, and ours by FUSE beside them, are mounted on loop devices, \
         which needs root: run this as root, or leave them out"
    )]
    NotRoot,
    /// A program is not installed.
    #[error("{program} is not installed: apt-get install {package}")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// The Debian package it comes in.
        package: &'static str,
    },
    /// The kernel does not know the file system.
    #[error("this kernel has no {kind} (not in /proc/filesystems, and modprobe did not bring it)")]
    NoKernel {
        /// The file system.
        kind: &'static str,
    },
    /// The device is too small.
    #[error("{kind} needs a device of at least {least} bytes; this one has {got}")]
    TooSmall {
        /// The file system.
        kind: &'static str,
        /// Bytes it needs.
        least: u64,
        /// Bytes there are.
        got: u64,
    },
    /// An external journal with a file system that knows none.
    #[error("{kind} cannot have its journal on another device")]
    NoExternalJournal {
        /// The file system.
        kind: &'static str,
    },
    /// No folder, no thread, no descriptor.
    #[error("the host has no resources left: {why}")]
    Folder {
        /// In words.
        why: String,
    },
    /// A device could not be made.
    #[error("the device: {why}")]
    Device {
        /// In words.
        why: String,
    },
    /// FUSE refused.
    #[error(transparent)]
    Fuse(#[from] MountError),
    /// A tool of the host refused.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// Something goes on writing.
    #[error("the devices did not come to rest in {seconds} s")]
    NoRest {
        /// How long was waited.
        seconds: u64,
    },
}

impl PeerError {
    /// Whether somebody uses what was to be taken away.
    pub fn is_busy(&self) -> bool {
        match self {
            PeerError::Tool(failed) => failed.is_busy(),
            PeerError::Fuse(e) => e.is_busy(),
            _ => false,
        }
    }
}
