//! Why a variant could not be built or run.

use std::io;
use std::path::PathBuf;

use steadfast_bench::dd::WrongOperand;
use steadfast_bench::hdparm::NoTiming;
use steadfast_bench::iozone::RunError;
use steadfast_block::BlockError;
use steadfast_crash::CrashError;
use steadfast_devices::model::ModelError;
use steadfast_devices::source::file::OpenError;
use steadfast_ext4::Ext4Error;
use steadfast_peers::PeerError;
use steadfast_runtime::SimError;
use steadfast_setup::SetupError;
use steadfast_vfs::FsError;
use steadfast_vfs::options::WrongOption;
use steadfast_volume::VolumeError;

/// What a variant gave, or why it did not.
pub(crate) type Result<T, E = VariantError> = std::result::Result<T, E>;

/// Why a variant could not be built or run.
#[derive(Debug, thiserror::Error)]
pub enum VariantError {
    /// A device failed.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A model cannot be so, or hold that.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A volume cannot be used.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// A trace cannot be read or replayed: its file, and why.
    #[error("{0}")]
    Trace(String),
    /// A job file cannot be read, or its jobs cannot be run: where, and why.
    #[error("{0}")]
    Fio(String),
    /// The stack cannot be opened.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The file system cannot be made, mounted or used.
    #[error(transparent)]
    Ext4(#[from] Ext4Error),
    /// It cannot be unmounted.
    #[error("unmounting: {0}")]
    Unmount(Ext4Error),
    /// A call of the workload failed.
    #[error("{call}: {source}")]
    Call {
        /// What was being done.
        call: String,
        /// Why it failed.
        source: FsError,
    },
    /// A request of the workload failed.
    #[error("{request}: {source}")]
    Request {
        /// What was being done.
        request: &'static str,
        /// Why it failed.
        source: BlockError,
    },
    /// An option of a mount by FUSE cannot be taken.
    #[error(transparent)]
    MountOption(#[from] WrongOption),
    /// A folder of the host's cannot be used as a file system.
    #[error(transparent)]
    Host(#[from] FsError),
    /// The simulation cannot go on.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// IOzone failed.
    #[error(transparent)]
    Iozone(#[from] RunError),
    /// A timing by hdparm failed.
    #[error(transparent)]
    Hdparm(#[from] NoTiming),
    /// dd's operands are none.
    #[error(transparent)]
    Operands(#[from] WrongOperand),
    /// dd failed.
    #[error("dd {line}: {said}")]
    Dd {
        /// Its operands.
        line: String,
        /// What it said.
        said: String,
    },
    /// A scenario is the same on every machine, so it knows no files of this one.
    #[error("a scenario has no files of this machine")]
    NoHost,
    /// A file is shorter than it was written.
    #[error("a file of {bytes} bytes ended at {at}")]
    Short {
        /// As written.
        bytes: u64,
        /// Bytes that were read.
        at: u64,
    },
    /// A read is larger than the disk.
    #[error("the disk has no {0} bytes")]
    DiskTooSmall(u64),
    /// The variant has no command lines of its own.
    #[error("'{0}' has no lines")]
    NoLines(String),
    /// The kernel's devices are those that take time.
    #[error("device '{0}' is no model: it has no time of its own")]
    NoModel(String),
    /// The kernel's file system and a model do not meet in such a run.
    #[error(
        "device '{0}' is a model: with --real the kernel's file systems need a device with a path"
    )]
    NoPath(String),
    /// The workload does more than what a file system can do.
    #[error(
        "the workload needs devices, and {0} is only a mounted file system: run = \"risk\" leaves \
         it out"
    )]
    NeedsDevices(String),
    /// A file system of the kernel's that nobody knows.
    #[error("kernel = '{0}' is unknown")]
    UnknownKernel(String),
    /// The kernel's file system, or a loop device, cannot be had.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// A loop device cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The workload of files, or a kernel's file system under it, failed.
    #[error(transparent)]
    Workload(#[from] CrashError),
    /// It failed on another machine, which has said this.
    #[error("{0}")]
    Elsewhere(String),
    /// A recording cannot be kept.
    #[error("cannot write {}: {source}", path.display())]
    Record {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl VariantError {
    /// Of a call of the file system while something was being done.
    pub(crate) fn call(call: impl Into<String>) -> impl Fn(FsError) -> VariantError {
        let call = call.into();
        move |source| VariantError::Call { call: call.clone(), source }
    }

    /// Of a request to a device.
    pub(crate) fn request(request: &'static str) -> impl Fn(BlockError) -> VariantError {
        move |source| VariantError::Request { request, source }
    }
}
