//! A mounted ext4 image: by the kernel, by `steadfast mount`, or by fuse2fs.

mod fuse2fs;
pub(crate) mod kernel;
pub(crate) mod steadfast;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use steadfast_host::Folder;

use crate::program::{run, run_ok};
use crate::{Result, SuiteError};

/// Longest that mounting, unmounting or a check may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Who serves the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetKind {
    /// The kernel, on a loop device.
    Kernel,
    /// The kernel on a zram disk, with fast commits: as fast as it can be.
    KernelZram,
    /// `steadfast mount`; the path of the binary.
    Steadfast(PathBuf),
    /// fuse2fs of the path.
    Fuse2fs,
    /// A FUSE server that answers at once and keeps names and sizes in memory: the limit of what is
    /// behind that transport. The path of the program, and what carries its requests.
    Empty(PathBuf, EmptyTransport),
}

/// What carries the requests of a server that answers at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyTransport {
    /// FUSE io_uring.
    Uring,
    /// /dev/fuse.
    Fuse,
}

impl TargetKind {
    /// A short name, as the list of known differences has it.
    pub fn name(&self) -> &'static str {
        match self {
            TargetKind::Kernel => "kernel",
            TargetKind::KernelZram => "kernel on zram",
            TargetKind::Steadfast(_) => "steadfast",
            TargetKind::Fuse2fs => "fuse2fs",
            TargetKind::Empty(_, EmptyTransport::Uring) => "empty, io_uring",
            TargetKind::Empty(_, EmptyTransport::Fuse) => "empty, /dev/fuse",
        }
    }

    /// Calls, as [`crate::stress::Report`] names them, that cannot be had there: of the modes of
    /// fallocate the kernel lets FUSE have allocating, punching and zeroing only.
    pub fn cannot(&self) -> &'static [&'static str] {
        match self {
            TargetKind::Kernel | TargetKind::KernelZram => &[],
            TargetKind::Steadfast(_) | TargetKind::Fuse2fs | TargetKind::Empty(..) => {
                &["collapse", "insert"]
            }
        }
    }
}

/// Where the journal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journal {
    /// In the file system.
    Internal,
    /// On a device (image file) of its own.
    External,
}

/// What to make and how to mount it.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Bytes of the image.
    pub size: u64,
    /// Further arguments of mke2fs, such as `-b 1024`.
    pub mke2fs: Vec<String>,
    /// Mount options, comma-separated; words that all kinds know.
    pub options: String,
    /// Where the journal is.
    pub journal: Journal,
    /// The folder for the image; none: the host's folder for temporary files.
    pub folder: Option<PathBuf>,
}

impl Setup {
    /// mke2fs's defaults, no mount options, journal inside.
    pub fn new(size: u64) -> Setup {
        Setup {
            size,
            mke2fs: Vec::new(),
            options: String::new(),
            journal: Journal::Internal,
            folder: None,
        }
    }
}

/// An image and where it is mounted. Unmounted and gone when dropped, whatever happened.
#[derive(Debug)]
pub struct Target {
    kind: TargetKind,
    options: String,
    zram: Option<kernel::Zram>,
    // Dropped last: the image and the mount point are in it.
    folder: Folder,
    external: bool,
    server: Option<MountServer>,
}

/// What serves the mount.
#[derive(Debug)]
enum MountServer {
    Kernel(kernel::Loops),
    /// The kernel, on a device that the target keeps.
    KernelDevice,
    Steadfast(steadfast::Daemon),
    Fuse2fs(fuse2fs::Fuse2fsDaemon),
}

/// The paths of an image that is to be mounted.
pub(crate) struct ImagePaths<'a> {
    pub image: &'a Path,
    pub journal: Option<&'a Path>,
    pub mountpoint: &'a Path,
}

impl Target {
    /// Makes an image and mounts it.
    pub fn new(kind: TargetKind, setup: &Setup) -> Result<Target> {
        let mut target = Target::unmounted(kind, setup)?;
        target.mount()?;
        Ok(target)
    }

    /// Makes an image and mounts nothing.
    pub fn unmounted(kind: TargetKind, setup: &Setup) -> Result<Target> {
        let place = setup.folder.clone().unwrap_or_else(std::env::temp_dir);
        let folder = Folder::new_in(&place, "sfs-").map_err(SuiteError::host(&place))?;
        // Other users go through it.
        open_to_all(folder.path())?;
        let external = setup.journal == Journal::External;
        let options = setup.options.clone();
        let zram = match kind {
            TargetKind::KernelZram if external => {
                return Err(SuiteError::Target("a zram disk has its journal on it".into()));
            }
            TargetKind::KernelZram => Some(kernel::Zram::new(setup.size)?),
            _ => None,
        };
        let target = Target { kind, options, zram, folder, external, server: None };
        let make = |path: PathBuf| std::fs::create_dir(&path).map_err(SuiteError::host(path));
        make(target.mountpoint())?;
        let file = |path: &Path, size| {
            let file = std::fs::File::create(path).map_err(SuiteError::host(path))?;
            file.set_len(size).map_err(SuiteError::host(path))
        };
        if target.zram.is_none() {
            file(&target.image(), setup.size)?;
        }
        let mut mke2fs = Command::new("mke2fs");
        mke2fs.args(["-F", "-q", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0"]);
        if target.zram.is_some() {
            mke2fs.args(["-O", "fast_commit"]);
        }
        if let Some(journal) = target.journal() {
            let size = (setup.size / 16).clamp(4 << 20, 128 << 20);
            file(&journal, size)?;
            let mut made = Command::new("mke2fs");
            made.args(["-F", "-q", "-b", "4096", "-O", "journal_dev"]);
            run_ok(LIMIT, made.arg(&journal))?;
            mke2fs.args(["-b", "4096"]);
            // mke2fs takes only a device here.
            let device = kernel::LoopDevice::new(&journal)?;
            mke2fs.args(["-J", &format!("device={}", device.path())]);
            run_ok(LIMIT, mke2fs.args(&setup.mke2fs).arg(target.image()))?;
            // Closing the device writes out what mke2fs wrote to it only if nobody else has it
            // open, and whoever looks for a free loop device opens them all.
            run_ok(LIMIT, Command::new("blockdev").args(["--flushbufs", device.path()]))?;
        } else {
            run_ok(LIMIT, mke2fs.args(&setup.mke2fs).arg(target.image()))?;
        }
        Ok(target)
    }

    /// Who serves it.
    pub fn kind(&self) -> &TargetKind {
        &self.kind
    }

    /// The image file, or the device that holds it.
    pub fn image(&self) -> PathBuf {
        match &self.zram {
            Some(zram) => zram.path(),
            None => self.folder.path().join("image"),
        }
    }

    /// The image file of the external journal.
    pub fn journal(&self) -> Option<PathBuf> {
        self.external.then(|| self.folder.path().join("journal"))
    }

    /// Where it is mounted, when it is.
    pub fn mountpoint(&self) -> PathBuf {
        self.folder.path().join("m")
    }

    /// Mounts it; nothing to do if it is mounted.
    pub fn mount(&mut self) -> Result<()> {
        if self.server.is_some() {
            return Ok(());
        }
        let (image, journal, mountpoint) = (self.image(), self.journal(), self.mountpoint());
        let paths =
            ImagePaths { image: &image, journal: journal.as_deref(), mountpoint: &mountpoint };
        let server = match &self.kind {
            TargetKind::Kernel => MountServer::Kernel(kernel::mount(&paths, &self.options)?),
            TargetKind::KernelZram => {
                kernel::mount_device(&paths, &self.options)?;
                MountServer::KernelDevice
            }
            TargetKind::Steadfast(binary) => {
                let log = image.with_extension("log");
                MountServer::Steadfast(steadfast::mount(binary, &paths, &self.options, &log)?)
            }
            TargetKind::Fuse2fs => MountServer::Fuse2fs(fuse2fs::mount(&paths, &self.options)?),
            TargetKind::Empty(program, transport) => {
                let log = image.with_extension("log");
                MountServer::Steadfast(steadfast::empty(program, *transport, &mountpoint, &log)?)
            }
        };
        self.server = Some(server);
        Ok(())
    }

    /// Unmounts it and waits until everything is in the image.
    pub fn unmount(&mut self) -> Result<()> {
        let Some(server) = self.server.take() else { return Ok(()) };
        let mountpoint = self.mountpoint();
        match server {
            MountServer::Kernel(loops) => loops.unmount(&mountpoint),
            MountServer::KernelDevice => umount(&mountpoint),
            MountServer::Steadfast(daemon) => daemon.unmount(&mountpoint),
            MountServer::Fuse2fs(daemon) => daemon.unmount(&mountpoint),
        }
    }

    /// Unmounts and mounts again. What a server keeps in memory stays mounted.
    pub fn remount(&mut self) -> Result<()> {
        if matches!(self.kind, TargetKind::Empty(..)) {
            return Ok(());
        }
        self.unmount()?;
        self.mount()
    }

    /// Kills the daemon, as with `kill -9`: what waits for it then fails. The kernel has none.
    pub(crate) fn kill_daemon(&self) {
        let pid = match &self.server {
            Some(MountServer::Steadfast(daemon)) => daemon.pid(),
            Some(MountServer::Fuse2fs(daemon)) => daemon.pid(),
            Some(MountServer::Kernel(_) | MountServer::KernelDevice) | None => return,
        };
        if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
            // It is our child and not waited for yet, so the number is still its own.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    /// CPU time that the daemon has used so far; none for the kernel, whose work is its callers'.
    pub(crate) fn daemon_cpu(&self) -> Option<Duration> {
        match self.server.as_ref()? {
            MountServer::Kernel(_) | MountServer::KernelDevice => None,
            MountServer::Steadfast(daemon) => daemon.cpu(),
            MountServer::Fuse2fs(daemon) => daemon.cpu(),
        }
    }

    /// What `e2fsck -fn` has to say of the unmounted image: none if nothing.
    pub fn check(&self) -> Result<Option<String>> {
        let mut e2fsck = Command::new("e2fsck");
        e2fsck.arg("-fn");
        let device = self.journal().map(|j| kernel::LoopDevice::new(&j)).transpose()?;
        if let Some(device) = &device {
            e2fsck.args(["-j", device.path()]);
        }
        let (status, output) = run(LIMIT, e2fsck.arg(self.image()))?;
        Ok((!status.success()).then(|| format!("e2fsck -fn: {status}\n{output}")))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.unmount().is_err() {
            // Nobody is left to report to; the mount must not stay.
            let _ = run(LIMIT, Command::new("umount").arg("-l").arg(self.mountpoint()));
        }
    }
}

fn open_to_all(folder: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder, mode).map_err(SuiteError::host(folder))
}

/// `umount`, again while something that another thread has just started holds on to it.
pub(crate) fn umount(mountpoint: &Path) -> Result<()> {
    let mut last = String::new();
    for _ in 0..100 {
        let (status, output) = run(LIMIT, Command::new("umount").arg(mountpoint))?;
        if status.success() {
            return Ok(());
        }
        last = output;
        std::thread::sleep(Duration::from_millis(30));
    }
    Err(SuiteError::Target(format!("cannot unmount {}: {last}", mountpoint.display())))
}

/// Whether a mount point has something mounted on it.
fn is_mounted(mountpoint: &Path) -> bool {
    let parent = mountpoint.parent().unwrap_or(mountpoint);
    let device = |p: &Path| rustix::fs::stat(p).map(|s| s.st_dev);
    device(mountpoint).is_ok_and(|d| device(parent).is_ok_and(|p| p != d))
}

/// User and system time of a process, of all its threads.
fn cpu_of(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; the fields begin after its closing parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let per_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(ticks * 1000 / per_second.max(1)))
}
