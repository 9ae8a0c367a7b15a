//! How to mount.

use std::time::Duration;

use rustix::mount::MountFlags;
use smart_default::SmartDefault;
use steadfast_fuse_lowlevel::TransportChoice;

/// How a file system is mounted. The default is a writable mount for its owner.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct Options {
    /// What the mount table shows as its source: a path, usually. Commas are replaced.
    #[default("steadfast".into())]
    pub source: String,
    /// The kernel refuses changes.
    pub read_only: bool,
    /// Other users may use it, within its permissions. Otherwise only who mounted it.
    pub allow_other: bool,
    /// The kernel asks nobody whether who uses it may do so: who mounted it can do everything, as
    /// root could. Not together with `allow_other`.
    pub fake_root: bool,
    /// What the table of mounts says of times of access, which are the file system's own affair.
    pub access_times: KernelTimes,
    /// Device nodes work. Only root may ask for it.
    pub dev: bool,
    /// Set-id bits work. Only root may ask for it.
    pub suid: bool,
    /// Programs of it cannot be run.
    pub no_exec: bool,
    /// Symbolic links of it are read, and not followed. Only root may ask for it: fusermount3 does
    /// not know it.
    pub no_symlinks: bool,
    /// Every write is durable when it returns, as if all files were opened with O_SYNC. Whether
    /// names are too is the file system's affair: `sync_names` of its mount options.
    pub sync: bool,
    /// Requests answered at the same time; at least 1.
    #[default(16)]
    pub threads: usize,
    /// Bytes of one write request, 4 KiB to 1 MiB; also what each thread's buffer grows to.
    #[default(1 << 20)]
    pub max_write: u32,
    /// What carries the requests: io_uring where it can be had, else /dev/fuse.
    pub transport: TransportChoice,
    /// Bytes of memory that the requests over io_uring may have at most.
    #[default(256 << 20)]
    pub buffers: u64,
    /// The kernel collects writes in its page cache. They are then not ours until it writes them:
    /// a power cut, a transaction point and the commit timer do not know of them. Faster for small
    /// writes; fsync still covers them.
    pub writeback_cache: bool,
    /// The kernel reads ahead of who reads in order. Without, it asks for the pages that somebody
    /// wants and for no others.
    #[default(true)]
    pub read_ahead: bool,
    /// All files are opened past the kernel's page cache, O_DIRECT or not: for files that change
    /// without its knowledge. They cannot be mapped as shared (mmap(2)) by kernels before 6.6.
    pub uncached: bool,
    /// Asynchronous direct I/O (libaio) is answered while it goes on, else when it is submitted.
    /// Only where nobody reads the same file through the kernel's page cache: what such a reader
    /// brings in while a write is under way stays there, old (seen with Linux 6.18, which forgets
    /// pages of the range when the write begins, and at its end only if it is synchronous).
    pub async_direct_io: bool,
    /// How long the kernel remembers a name. Zero where names are not compared byte by byte.
    #[default(FOREVER)]
    pub entry_timeout: Duration,
    /// How long the kernel remembers attributes.
    #[default(FOREVER)]
    pub attr_timeout: Duration,
    /// How long the kernel remembers that a name is not there.
    #[default(FOREVER)]
    pub negative_timeout: Duration,
}

/// Times of access as the kernel's table of mounts names them (mount(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KernelTimes {
    /// `MS_NOATIME`.
    Never,
    /// `MS_RELATIME`.
    #[default]
    Relative,
    /// `MS_STRICTATIME`.
    Always,
}

impl KernelTimes {
    /// The flag of mount(2).
    pub fn flag(self) -> MountFlags {
        match self {
            KernelTimes::Never => MountFlags::NOATIME,
            KernelTimes::Relative => MountFlags::RELATIME,
            KernelTimes::Always => MountFlags::STRICTATIME,
        }
    }
}

/// As good as for ever (a hundred years): nobody else changes the file system.
pub(crate) const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
