//! [`HostFs`]: a folder of the running machine as a [`FileSystem`](crate::FileSystem).
//!
//! It is what `steadfast iozone` measures when it is pointed at an ordinary folder, and what the
//! image commands copy from and to. Open flags mean what they mean to open(2): `DIRECT` is
//! O_DIRECT with aligned buffers, `SYNC` and `DSYNC` are O_SYNC and O_DSYNC.
//!
//! # Invariants
//!
//! 1. No operation leaves the folder: a path walk is an openat2(2) beneath it that follows no link,
//!    or, on kernels without it, an openat(2) with O_NOFOLLOW for each name. Names contain no '/',
//!    and ".." is answered from our own table.
//! 2. An [`Ino`] means one inode: before each use, device and inode number found by the walk are
//!    compared with the recorded ones. After a rename or replacement by another process the result
//!    is [`FsError::NotFound`], never another file.
//! 3. No lock is held over a system call.
//!
//! Why paths (parent, name) and not an open descriptor for each inode: a tree walk meets more
//! inodes than a process may have open files.

mod attr;
mod buffer;
mod handles;
mod nodes;
mod ops;
mod space;
mod xattrs;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Statx};
use rustix::io::Errno;

use self::handles::HostHandles;
use self::nodes::{HostInode, Nodes};
use crate::{FsError, Ino, Result};

/// A folder of the running machine.
pub struct HostFs {
    root: Arc<OwnedFd>,
    /// Guards the table of inodes; held for look-ups only.
    nodes: Mutex<Nodes>,
    handles: HostHandles,
}

/// A name in an open folder: where an inode is.
struct HostName {
    dir: Arc<OwnedFd>,
    name: Vec<u8>,
}

/// Flags of a step of a walk: just the place, following nothing.
const STEP: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Longest path in one call, with its NUL.
const PATH_MAX: usize = 4096;

impl HostFs {
    /// Opens the folder at `path`. Fails if it is not a folder or may not be searched.
    pub fn open(path: impl AsRef<Path>) -> Result<HostFs> {
        HostFs::open_by(path.as_ref(), OFlags::empty())
    }

    /// The same, where the last name must not be a symbolic link: [`FsError::NotDirectory`]. A path
    /// that ends in '/' names what the link leads to.
    pub fn open_itself(path: impl AsRef<Path>) -> Result<HostFs> {
        HostFs::open_by(path.as_ref(), OFlags::NOFOLLOW).map_err(|e| match e {
            FsError::Loop => FsError::NotDirectory,
            e => e,
        })
    }

    fn open_by(path: &Path, how: OFlags) -> Result<HostFs> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | how;
        let root = Arc::new(rustix::fs::open(path, flags, Mode::empty())?);
        let identity = HostInode::of(&attr::of_fd(&*root)?);
        let nodes = Mutex::new(Nodes::new(identity));
        Ok(HostFs { root, nodes, handles: HostHandles::new() })
    }

    /// What kind of file system the folder is on, as Linux calls it ("ext4", "tmpfs"), or its
    /// magic number in hexadecimal where we know no name.
    pub fn kind(&self) -> Result<String> {
        buffer::kind_of(&*self.root)
    }

    /// The number here of an inode that stat(2) names by device and inode number.
    pub fn number_of(&self, device: u64, ino: u64) -> Ino {
        self.nodes().number(HostInode::new(device, ino))
    }

    fn nodes(&self) -> std::sync::MutexGuard<'_, Nodes> {
        // The table is changed in single steps, so it is sound even after a panic of another
        // thread.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens (as a place only) the directory `ino`, walking down from the root.
    fn dir(&self, ino: Ino) -> Result<Arc<OwnedFd>> {
        let (names, expected) = self.nodes().path_to(ino)?;
        let mut at = Arc::clone(&self.root);
        let mut names = names.as_slice();
        while !names.is_empty() {
            let (next, rest) = walk(&at, names)?;
            (at, names) = (Arc::new(next), rest);
        }
        if HostInode::of(&attr::of_fd(&*at)?) != expected {
            return Err(FsError::NotFound);
        }
        Ok(at)
    }

    /// Finds a place where `ino` still is, and its attributes. Places where it is no longer are
    /// forgotten.
    fn locate(&self, ino: Ino) -> Result<(HostName, Statx)> {
        if ino == self.nodes().root() {
            let place = HostName { dir: Arc::clone(&self.root), name: b".".to_vec() };
            return attr::of_fd(&*self.root).map(|x| (place, x));
        }
        // Each round forgets a place.
        loop {
            let (Some((parent, name)), expected) = self.nodes().place(ino)? else {
                return Err(FsError::NotFound);
            };
            let found = self.dir(parent).and_then(|dir| {
                let x = attr::at(&*dir, &name)?;
                Ok((dir, x))
            });
            match found {
                Ok((dir, x)) if HostInode::of(&x) == expected => {
                    return Ok((HostName { dir, name }, x));
                }
                Ok(_) | Err(FsError::NotFound | FsError::NotDirectory) => {
                    self.nodes().forget_place(ino, parent, &name);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Attributes of `name` in the open folder `dir` (which is `parent`), recorded.
    fn add_node(&self, dir: &OwnedFd, parent: Ino, name: &[u8]) -> Result<(Ino, Statx)> {
        let x = attr::at(dir, name)?;
        let ino = self.nodes().add_node(HostInode::of(&x), parent, name);
        Ok((ino, x))
    }

    /// Forgets one name of an inode, and the inode when that was its last and nobody has it open.
    fn forget(&self, ino: Ino, parent: Ino, name: &[u8]) {
        let open = self.handles.any_of(ino).is_some();
        let mut nodes = self.nodes();
        nodes.forget_place(ino, parent, name);
        if !open {
            nodes.forget_if_unlinked(ino);
        }
    }
}

/// Goes down from the folder `at`, as many of `names` as one call can take; returns the others.
/// Where the kernel knows openat2(2) it sees to it that the way stays below `at` and meets no
/// symbolic link. Else one name is one step, and O_NOFOLLOW says the same.
fn walk<'n>(at: &OwnedFd, names: &'n [Vec<u8>]) -> Result<(OwnedFd, &'n [Vec<u8>])> {
    let mut path = names[0].clone();
    let mut count = 1;
    for name in &names[1..] {
        if path.len() + 1 + name.len() >= PATH_MAX {
            break;
        }
        path.push(b'/');
        path.extend_from_slice(name);
        count += 1;
    }
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(at, path, STEP, Mode::empty(), beneath) {
        // An old kernel, a filter of system calls, or somebody renames folders on the way.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN) => {
            let next = rustix::fs::openat(at, names[0].as_slice(), STEP, Mode::empty());
            Ok((next.map_err(not_a_directory)?, &names[1..]))
        }
        next => Ok((next.map_err(not_a_directory)?, &names[count..])),
    }
}

/// O_NOFOLLOW with O_DIRECTORY reports a symbolic link as ELOOP or ENOTDIR; both mean that the
/// name is not the directory that we knew.
fn not_a_directory(e: Errno) -> FsError {
    match e {
        Errno::LOOP => FsError::NotDirectory,
        e => e.into(),
    }
}

/// Refuses a name that could leave its directory or that the system would misread.
fn checked(name: &[u8]) -> Result<&[u8]> {
    if name.is_empty() || name.contains(&b'/') || name.contains(&0) {
        return Err(FsError::Invalid { what: "a name is empty or holds '/' or NUL" });
    }
    if name == b"." || name == b".." {
        return Err(FsError::Invalid { what: "the name is \".\" or \"..\"" });
    }
    Ok(name)
}

/// Follow no symbolic link.
const NOFOLLOW: AtFlags = AtFlags::SYMLINK_NOFOLLOW;
