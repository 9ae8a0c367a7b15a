//! A mount: made, served, taken away.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen,
};
use steadfast_fuse_lowlevel::{Access as Served, Config, Session, Transport};
use steadfast_vfs::FileSystem;

use crate::bridge::{Bridge, OpenInodes, serve, session};
use crate::connection;
use crate::error::{MountError, Result};
use crate::fusermount;
use crate::invalidator::Invalidator;
use crate::options::Options;
use crate::read_ahead;
use steadfast_host::mounts::{self, MountPath};

/// Where the kernel's FUSE is.
const DEVICE: &str = "/dev/fuse";
/// How the table of mounts calls our mounts.
const KIND: &str = "fuse.steadfast";

/// A file system at its mount point.
pub struct FuseMount {
    session: Session<Bridge>,
    mountpoint: PathBuf,
    device: Option<String>,
    /// Held for as long as it is served.
    connection: Arc<OwnedFd>,
    opened: Arc<OpenInodes>,
    down: Arc<AtomicBool>,
}

/// Takes a mount away, from any thread.
#[derive(Debug, Clone)]
pub struct Unmounter {
    mountpoint: PathBuf,
    device: Option<String>,
    /// Gone when nobody serves it any more: then the kernel has to find that out.
    connection: Weak<OwnedFd>,
}

/// What the kernel reads ahead of a sequential reader. Its own 128 KiB are meant for disks; here
/// each request has to come to us and back.
const READ_AHEAD_KIB: u32 = 512;

impl FuseMount {
    /// Mounts `fs` at `mountpoint`, a directory. Nothing is answered before
    /// [`serve`](Self::serve).
    ///
    /// # Errors
    /// The mount point is not a directory, or a dead mount; FUSE is not there or not allowed; an
    /// option that only root may ask for.
    pub fn new(fs: Arc<dyn FileSystem>, mountpoint: &Path, options: &Options) -> Result<FuseMount> {
        let mountpoint = usable(mountpoint)?;
        let bridge = Bridge::new(fs, options.clone());
        let (down, opened) = (Arc::clone(&bridge.down), Arc::clone(&bridge.opened));
        let failed = |source| MountError::Mount { path: mountpoint.clone(), source };
        let connection = connect(&mountpoint, options)?;
        let device = device_of(&connection, &mountpoint);
        let failed = |e| {
            // The first error says more than what comes of taking it away again.
            let _ = Unmounter::alone(&mountpoint, device.clone()).unmount_lazily();
            failed(e)
        };
        let session = session(bridge, connection, config(options)).map_err(&failed)?;
        let connection = Arc::new(session.connection().map_err(failed)?);
        if let Some(device) = device.as_ref().filter(|_| options.read_ahead)
            && let Err(e) = read_ahead::set(device, READ_AHEAD_KIB)
        {
            tracing::debug!("the kernel keeps its own read-ahead: {e}");
        }
        Ok(FuseMount { session, mountpoint, device, connection, opened, down })
    }

    /// Whether [`new`](Self::new) could mount there: it is tried, with nobody behind it. For who
    /// has to do something first that is not to be done in vain. Of who has the right to mount
    /// nothing is seen; otherwise it is mounted and taken away at once, and a process that is
    /// killed meanwhile leaves a dead mount.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn check(mountpoint: &Path, options: &Options) -> Result<()> {
        let mountpoint = usable(mountpoint)?;
        if (rustix::process::geteuid().is_root() || may_mount()) && unattached().is_ok() {
            return Ok(());
        }
        let connection = connect(&mountpoint, options)?;
        let device = device_of(&connection, &mountpoint);
        // With the connection it has ended everywhere, also where other namespaces have a copy.
        drop(connection);
        Unmounter::alone(&mountpoint, device).unmount_lazily()
    }

    /// Where it is mounted: absolute, without symbolic links.
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Its device number, `major:minor`, which distinguishes it from all other mounts. `None`:
    /// /proc does not say.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// What carries its requests.
    pub fn transport(&self) -> &Transport {
        self.session.transport()
    }

    /// Takes it away again.
    pub fn unmounter(&self) -> Unmounter {
        Unmounter {
            mountpoint: self.mountpoint.clone(),
            device: self.device.clone(),
            connection: Arc::downgrade(&self.connection),
        }
    }

    /// Notifies the kernel of changes.
    pub fn invalidator(&self) -> Invalidator {
        Invalidator::of(&self.session, &self.opened)
    }

    /// Set once a fault in the file system's code was caught. It must then not be unmounted as if
    /// all were well: what is in memory cannot be trusted.
    pub fn down(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.down)
    }

    /// Answers the kernel until the mount is gone. True: all is well; false: a fault was caught.
    /// The file system itself is still to be unmounted.
    ///
    /// # Errors
    /// The connection to the kernel broke.
    pub fn serve(self) -> Result<bool> {
        let FuseMount { session, mountpoint, down, connection, .. } = self;
        match serve(session) {
            // The connection ended as a request was read.
            Err(e) if is_abort(&e) && connection::has_ended(&*connection).unwrap_or(false) => {}
            served => {
                served.map_err(|source| MountError::Connection { path: mountpoint, source })?;
            }
        }
        Ok(!down.load(Ordering::Acquire))
    }
}

fn is_abort(e: &std::io::Error) -> bool {
    e.raw_os_error() == Some(Errno::CONNABORTED.raw_os_error())
}

steadfast_runtime::debug_fields!(FuseMount: mountpoint);

impl Unmounter {
    /// Of a mount that nobody serves.
    fn alone(mountpoint: &Path, device: Option<String>) -> Unmounter {
        Unmounter { mountpoint: mountpoint.into(), device, connection: Weak::new() }
    }

    /// Where it was mounted: absolute, without symbolic links.
    pub(crate) fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Its device number, `major:minor`. `None`: /proc does not say.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Whether somebody holds the mount, as far as the kernel says: before it is unmounted, and
    /// after that another mount namespace with a copy of it, or who has something of it open.
    pub fn is_held(&self) -> bool {
        let connection = self.connection.upgrade();
        connection.is_some_and(|open| !connection::has_ended(&*open).unwrap_or(false))
    }

    /// Ends the connection to the kernel, whoever holds the mount: another mount namespace with a
    /// copy of it, who has something of it open. They get errors from then on, and it is served
    /// no more. To be called once it is unmounted.
    ///
    /// # Errors
    /// Only root may, and where fusectl is mounted (/sys/fs/fuse/connections) the user whose mount
    /// it is.
    pub fn cut_off(&self) -> Result<()> {
        let Some(connection) = self.connection.upgrade() else { return Ok(()) };
        let device = self.device.as_deref().unwrap_or_default();
        connection::end(&*connection, device).map_err(|e| MountError::Held {
            path: self.mountpoint.clone(),
            why: format!("it could not be cut off ({e})"),
        })
    }

    /// As [`unmount`], where it was mounted.
    ///
    /// # Errors
    /// Busy: files of it are in use; another mount lies over it.
    pub fn unmount(&self) -> Result<()> {
        self.unmount_at(&self.mountpoint)
    }

    /// Whether it could be unmounted now, as far as the kernel says without doing it: to root
    /// only, and not of other namespaces of mounts.
    ///
    /// # Errors
    /// Busy: files of it are in use; another mount lies over it.
    pub fn check_unused(&self) -> Result<()> {
        let path = &self.mountpoint;
        if !self.is_uppermost(path)? {
            return Ok(());
        }
        // A mount that was asked before, and that nobody has touched since, would be unmounted.
        let touched = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        drop(rustix::fs::open(path, touched, Mode::empty()));
        match rustix::mount::unmount(path, UnmountFlags::EXPIRE) {
            Err(Errno::BUSY) => Err(MountError::Busy { path: path.clone() }),
            // Not busy (EAGAIN); or nothing is known, and unmounting says it.
            _ => Ok(()),
        }
    }

    /// As [`unmount`], at one of the places where it can be seen. All is well if it is not there.
    ///
    /// # Errors
    /// Busy: files of it are in use; another mount lies over it.
    pub fn unmount_at(&self, path: &Path) -> Result<()> {
        if self.is_uppermost(path)? { unmount(path) } else { Ok(()) }
    }

    /// As [`unmount_lazily`].
    ///
    /// # Errors
    /// The system refused; another mount lies over it.
    pub fn unmount_lazily(&self) -> Result<()> {
        if self.is_uppermost(&self.mountpoint)? { unmount_lazily(&self.mountpoint) } else { Ok(()) }
    }

    /// Whether what would be unmounted at `path` is ours. False: ours is not there.
    fn is_uppermost(&self, path: &Path) -> Result<bool> {
        let (Some(device), Ok(MountPath { mount, .. })) = (&self.device, mounts::at(path)) else {
            // Nothing is known: the system call says what is wrong.
            return Ok(true);
        };
        if mount.at == path && mount.device == *device {
            return Ok(true);
        }
        let below = |m: &mounts::Mount| m.at == path && m.device == *device;
        match mounts::seen_by("self") {
            Ok(table) if table.iter().any(below) => {
                let by = format!("{} ({})", mount.source, mount.kind);
                Err(MountError::Covered { path: path.to_path_buf(), by })
            }
            _ => Ok(false),
        }
    }
}

/// Mounts, as who runs this may; the connection to the kernel.
fn connect(mountpoint: &Path, options: &Options) -> Result<OwnedFd> {
    let failed = |source| MountError::Mount { path: mountpoint.into(), source };
    if !Path::new(DEVICE).metadata().is_ok_and(|m| m.file_type().is_char_device()) {
        return Err(failed(std::io::Error::other(
            "there is no /dev/fuse: load the module (modprobe fuse) and install fuse3; in a \
             container, give it the device (--device /dev/fuse)",
        )));
    }
    let is_root = rustix::process::geteuid().is_root();
    if !is_root
        && may_mount()
        && let Ok(connection) = by_system_call(mountpoint, options)
    {
        return Ok(connection);
    }
    let connection = if is_root {
        by_system_call(mountpoint, options).map_err(explained)
    } else if let Some(option) = fusermount::for_root(options) {
        return Err(MountError::OnlyRoot { path: mountpoint.into(), option });
    } else {
        fusermount::mount(mountpoint, options)
    };
    connection.map_err(failed)
}

/// What the kernel answers root, with what to do about it.
fn explained(e: std::io::Error) -> std::io::Error {
    let what = match Errno::from_io_error(&e) {
        Some(Errno::PERM | Errno::ACCESS) => {
            "root may not mount here: a container needs --device /dev/fuse and --cap-add SYS_ADMIN"
        }
        Some(Errno::NODEV | Errno::NXIO | Errno::NOENT) => {
            "the kernel has no FUSE: load the module (modprobe fuse)"
        }
        _ => return e,
    };
    std::io::Error::new(e.kind(), format!("{e}; {what}"))
}

/// Makes a mount as root that is nowhere: what it may be refused for has been tried then.
fn unattached() -> std::io::Result<()> {
    let device = rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let made = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let number = device.as_raw_fd().to_string();
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let (user, group) = (user.as_raw().to_string(), group.as_raw().to_string());
    for (key, value) in
        [("fd", &*number), ("rootmode", "40000"), ("user_id", &*user), ("group_id", &*group)]
    {
        fsconfig_set_string(&made, key, value)?;
    }
    fsconfig_create(&made)?;
    fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    Ok(())
}

/// Whether somebody who is not root has the right to mount, as a container's first process may.
/// fusermount3 is for all others, and may not be there.
fn may_mount() -> bool {
    let own = rustix::thread::capabilities(None);
    own.is_ok_and(|own| own.effective.contains(rustix::thread::CapabilitySet::SYS_ADMIN))
}

/// Mounts as root; the connection. The library would do it too, but then the table of mounts does
/// not say that it is ours.
fn by_system_call(mountpoint: &Path, options: &Options) -> std::io::Result<OwnedFd> {
    let device = rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let (user, group) = (user.as_raw(), group.as_raw());
    let fd = device.as_raw_fd();
    let mut data = format!("fd={fd},rootmode=40000,user_id={user},group_id={group}");
    if !options.fake_root {
        data.push_str(",default_permissions");
    }
    if options.allow_other {
        data.push_str(",allow_other");
    }
    let mut flags = MountFlags::empty();
    flags.set(MountFlags::NODEV, !options.dev);
    flags.set(MountFlags::NOSUID, !options.suid);
    flags.set(MountFlags::NOEXEC, options.no_exec);
    flags.set(MountFlags::NOSYMFOLLOW, options.no_symlinks);
    flags.set(MountFlags::RDONLY, options.read_only);
    flags |= options.access_times.flag();
    let data = CString::new(data)?;
    let data = Some(data.as_c_str());
    // Who may rename the folder could put a link in its place meanwhile.
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(mountpoint, way, Mode::empty())?;
    let at = format!("/proc/self/fd/{}", folder.as_raw_fd());
    rustix::mount::mount(options.source.as_str(), at, KIND, flags, data)?;
    Ok(device)
}

fn config(options: &Options) -> Config {
    let threads = options.threads.max(1);
    // Each thread opens the device anew, which an ordinary user may not be allowed to: without,
    // the threads share one connection.
    let may_open = || rustix::fs::access(DEVICE, Access::READ_OK | Access::WRITE_OK).is_ok();
    let owner = Served::Owner(rustix::process::geteuid().as_raw());
    Config {
        access: if options.allow_other { Served::All } else { owner },
        threads,
        clone_device: threads > 1 && may_open() && has_room(threads),
        transport: options.transport,
        buffers: options.buffers,
    }
}

/// Descriptors that are left to others than the threads.
const OTHERS: u64 = 16;

/// Whether each thread can have a descriptor of its own: it is opened once the mount is there.
fn has_room(threads: usize) -> bool {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
    limit.is_none_or(|limit| limit >= open + threads as u64 + OTHERS)
}

/// The device number of what was just mounted at a path.
fn device_of(connection: &OwnedFd, mountpoint: &Path) -> Option<String> {
    let uppermost = || mounts::at(mountpoint).ok()?.mounted().map(|m| m.device.clone());
    connection::device(connection).or_else(uppermost)
}

/// The mount point, checked: a directory without a mount of ours, alive or not. One over the
/// other would leave the lower one out of reach.
fn usable(path: &Path) -> Result<PathBuf> {
    let bad = |why: String| MountError::MountPoint { path: path.into(), why };
    let place = mounts::at(path).ok();
    let there = place.as_ref().and_then(MountPath::mounted).filter(|m| m.is_ours());
    if let Some(there) = there
        && !is_dead(path)
    {
        let source = &there.source;
        return Err(bad(format!(
            "{source} is mounted there; take it away first (steadfast umount), or choose another \
             folder"
        )));
    }
    match path.metadata() {
        Ok(m) if m.is_dir() => {}
        Ok(_) => return Err(bad("is not a directory".into())),
        Err(e) if e.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
            return Err(bad(
                "an earlier mount is still here, but its process is gone; take it away first \
                 (steadfast umount)"
                    .into(),
            ));
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(bad("is not there; make it first (mkdir)".into()));
        }
        Err(e) => return Err(bad(e.to_string())),
    }
    path.canonicalize().map_err(|e| bad(e.to_string()))
}

/// Whether the process of the mount at `path` is gone.
pub fn is_dead(path: &Path) -> bool {
    let gone = Some(Errno::NOTCONN.raw_os_error());
    path.metadata().is_err_and(|e| e.raw_os_error() == gone)
}

/// Unmounts what is at `mountpoint`, by fusermount3 where the system call is not allowed.
///
/// # Errors
/// Busy: files of it are in use.
pub fn unmount(mountpoint: &Path) -> Result<()> {
    take_away(mountpoint, UnmountFlags::empty(), &["-u"])
}

/// Takes the mount out of the tree of names; what is in use works on until it is closed.
///
/// # Errors
/// The system refused.
pub fn unmount_lazily(mountpoint: &Path) -> Result<()> {
    take_away(mountpoint, UnmountFlags::DETACH, &["-u", "-z"])
}

fn take_away(mountpoint: &Path, flags: UnmountFlags, by_hand: &[&str]) -> Result<()> {
    let path = || mountpoint.to_path_buf();
    match rustix::mount::unmount(mountpoint, flags) {
        Ok(()) => return Ok(()),
        Err(Errno::BUSY) => return Err(MountError::Busy { path: path() }),
        Err(Errno::PERM) => {}
        Err(e) => return Err(MountError::Unmount { path: path(), why: e.to_string() }),
    }
    let out = fusermount::unmount(by_hand, mountpoint);
    let out = out.map_err(|e| MountError::Unmount { path: path(), why: e.to_string() })?;
    let said = String::from_utf8_lossy(&out.stderr);
    if out.status.success() {
        Ok(())
    } else if said.contains("busy") {
        Err(MountError::Busy { path: path() })
    } else {
        Err(MountError::Unmount { path: path(), why: said.trim().to_owned() })
    }
}
