//! Where a path leads, found once: a name in an open folder. Whoever exchanges folders or links
//! afterwards changes nothing of it.
//!
//! Root follows a symbolic link only where nobody else can put one, or exchange it; an ordinary
//! user not another's in a folder where all may make names.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, openat, openat2, statat, unlinkat,
};
use rustix::io::Errno;

/// As many links are followed as the kernel follows.
const LINKS: usize = 40;

/// Just the place, following no link.
const LOOK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

const NOWHERE: &str = "it is a symbolic link that leads nowhere: name what it leads to";

/// What a path leads to.
pub enum PathMeaning {
    /// A name in a folder, which need not be there.
    Named(FolderName),
    /// An open descriptor of this process (`/dev/stdout`, `/dev/fd/3`), open for writing.
    Descriptor(OwnedFd),
    /// What only the kernel's process files lead to, as another process's descriptor.
    Other(OwnedFd),
}

/// A name in an open folder.
pub struct FolderName {
    folder: OwnedFd,
    name: OsString,
}

/// Which file it is, whatever it is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity(u64, u64);

impl Identity {
    /// Of an open file.
    pub fn of(file: &impl AsFd) -> io::Result<Identity> {
        Ok(Identity::in_stat(&rustix::fs::fstat(file)?))
    }

    fn in_stat(stat: &Stat) -> Identity {
        Identity(stat.st_dev, stat.st_ino)
    }

    /// Of a file that was looked at.
    pub fn in_metadata(file: &Metadata) -> Identity {
        Identity(file.dev(), file.ino())
    }
}

/// Where a path leads, links followed.
///
/// # Errors
/// What the host reports. As root also: a link that another user may put there, or exchange.
pub fn find(path: &Path) -> io::Result<PathMeaning> {
    let mut path = path.to_owned();
    for _ in 0..=LINKS {
        match open_folder(FolderName::folder_of(&path)?) {
            Ok(folder) => {
                let place =
                    FolderName { folder, name: path.file_name().unwrap_or_default().into() };
                if is_of_processes(&place.folder)? {
                    return place.of_process();
                }
                if !place.is_link() {
                    return Ok(PathMeaning::Named(place));
                }
            }
            Err(Errno::LOOP) => {}
            Err(e) => return Err(e.into()),
        }
        path = follow_first_link(&path)?;
    }
    Err(Errno::LOOP.into())
}

/// The folder that a path leads to; `make`: it, and those that it is in, are made if they are not
/// there.
///
/// # Errors
/// As for [`find`].
pub fn folder(path: &Path, make: bool) -> io::Result<OwnedFd> {
    let mut path = path.to_owned();
    for _ in 0..=LINKS {
        match open_folder(&path) {
            Err(Errno::LOOP) => path = follow_first_link(&path)?,
            Err(Errno::NOENT) if make => {
                let place = FolderName::in_folder(&path, true)?;
                let mode = Mode::from_raw_mode(0o777);
                let made = rustix::fs::mkdirat(&place.folder, &place.name, mode);
                // Another program may have made it.
                made.or_else(|e| if e == Errno::EXIST { Ok(()) } else { Err(e) })?;
            }
            opened => return Ok(opened?),
        }
    }
    Err(Errno::LOOP.into())
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// Opens a folder; as root no link is followed to it ([`Errno::LOOP`]).
fn open_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    match is_root() {
        true => openat2(CWD, path, FOLDER, Mode::empty(), ResolveFlags::NO_SYMLINKS),
        false => rustix::fs::open(path, FOLDER, Mode::empty()),
    }
}

/// The path behind the first link of a path; the path itself, if it has none any more.
fn follow_first_link(path: &Path) -> io::Result<PathBuf> {
    let mut folder = PathBuf::new();
    let mut names = path.components();
    while let Some(name) = names.next() {
        let next = folder.join(name);
        if let Ok(target) = std::fs::read_link(&next) {
            only_ours(&folder, &next)?;
            let (target, rest) = (folder.join(target), names.as_path());
            // An empty path would add a slash.
            let is_last = rest.as_os_str().is_empty();
            return Ok(if is_last { target } else { target.join(rest) });
        }
        folder = next;
    }
    Ok(path.to_owned())
}

/// As root, refuses a link that another user may put there, or whose folder that user may exchange;
/// else only another user's in a folder where all may make names.
fn only_ours(folder: &Path, link: &Path) -> io::Result<()> {
    let mut below = rustix::fs::lstat(link)?;
    let user = below.st_uid;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !is_root() {
        let shared = rustix::fs::stat(folder)?;
        return match is_shared(&shared) && user != shared.st_uid && !is_us(user) {
            true => Err(of_another(user)),
            false => Ok(()),
        };
    }
    // By their names: of those, the uppermost that another user may change has a name that stays.
    for folder in std::path::absolute(folder)?.ancestors() {
        let stat = rustix::fs::lstat(folder)?;
        let stays = keeps_names(&stat) && below.st_uid == 0;
        if takes_names_of_others(&stat) && !stays {
            let name = link.file_name().unwrap_or_default().to_string_lossy();
            let what = format!(
                "{name} is a symbolic link of user {user}, in a folder that other users may \
                 change: root does not follow it; name what it leads to, or run this as that user"
            );
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
        below = stat;
    }
    Ok(())
}

impl FolderName {
    /// Where something new would be made, whose name follows no link, as for mkdir(2).
    pub fn of_new(path: &Path) -> io::Result<FolderName> {
        FolderName::in_folder(path, false)
    }

    fn in_folder(path: &Path, make: bool) -> io::Result<FolderName> {
        let name = path.file_name().ok_or(Errno::EXIST)?.to_owned();
        Ok(FolderName { folder: folder(parent(path), make)?, name })
    }

    /// The folder that the last name of a path is in; an error of the host where there is none.
    fn folder_of(path: &Path) -> io::Result<&Path> {
        let is_folder = path.file_name().is_none() || path.as_os_str().as_bytes().ends_with(b"/");
        if is_folder {
            let opened = rustix::fs::open(path, FOLDER, Mode::empty());
            return Err(opened.err().unwrap_or(Errno::ISDIR).into());
        }
        Ok(parent(path))
    }

    /// The same for a file, where a link that leads nowhere is an error that says so.
    pub fn of_new_file(path: &Path) -> io::Result<FolderName> {
        let place = FolderName::of_new(path)?;
        let Some(there) = place.present()? else { return Ok(place) };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&there)?.st_mode);
        match kind == FileType::Symlink && !path.exists() {
            true => Err(io::Error::new(ErrorKind::AlreadyExists, NOWHERE)),
            false => Ok(place),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &OwnedFd {
        &self.folder
    }

    /// The folder alone.
    pub fn into_folder(self) -> OwnedFd {
        self.folder
    }

    /// The name in it.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether this process is root and another user may have put there what has the name.
    pub fn is_anybodys(&self) -> io::Result<bool> {
        is_anybodys(&self.folder)
    }

    /// Whether a file of this user's in the folder was put there by another one than who runs this
    /// process, in a folder where all may make names.
    pub fn is_of_another(&self, user: u32) -> io::Result<bool> {
        let folder = rustix::fs::fstat(&self.folder)?;
        let is_open = is_root() && takes_names_of_others(&folder) || is_shared(&folder);
        Ok(is_open && !is_us(user) && !(is_root() && user == folder.st_uid))
    }

    /// What has the name now, to be looked at; `None`: nothing.
    pub fn present(&self) -> io::Result<Option<OwnedFd>> {
        match openat(&self.folder, &self.name, LOOK, Mode::empty()) {
            Ok(there) => Ok(Some(there)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Whether the name is still that of this file.
    pub fn is_of(&self, file: Identity) -> bool {
        is_of(&self.folder, &self.name, file)
    }

    fn is_link(&self) -> bool {
        let there = statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        there.is_ok_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Symlink)
    }

    /// In a folder of the kernel's process files, whose links lead to what is open, and not to a
    /// path.
    fn of_process(self) -> io::Result<PathMeaning> {
        let here = Identity::of(&self.folder)?;
        let is_own = ["/proc/self/fd", "/proc/thread-self/fd"]
            .into_iter()
            .any(|own| rustix::fs::stat(own).is_ok_and(|own| Identity::in_stat(&own) == here));
        let number = self.name.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit()));
        if let (true, Some(number)) = (is_own, number.and_then(|name| name.parse().ok())) {
            // It has a descriptor itself, which may have this number.
            drop(self.folder);
            return given(number).map(PathMeaning::Descriptor);
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        Ok(PathMeaning::Other(openat(&self.folder, &self.name, flags, Mode::empty())?))
    }

    /// Opens a file to append to it, which is made if it is not there.
    pub fn append(&self) -> io::Result<File> {
        let is_anybodys = is_anybodys(&self.folder)?;
        // Another user's FIFO would make the open wait for its reader.
        let at_once = if is_anybodys { OFlags::NONBLOCK } else { OFlags::empty() };
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
        let flags = flags | at_once | OFlags::CLOEXEC;
        let file = match openat(&self.folder, &self.name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => File::from(file),
            Err(Errno::NXIO) if is_anybodys => return Err(not_alone()),
            Err(e) => return Err(e.into()),
        };
        let about = file.metadata()?;
        match is_anybodys && (!about.is_file() || about.nlink() != 1) {
            true => Err(not_alone()),
            false => Ok(file),
        }
    }

    /// Makes a folder, which is opened.
    pub fn make_folder(&self) -> io::Result<OwnedFd> {
        rustix::fs::mkdirat(&self.folder, &self.name, Mode::from_raw_mode(0o777))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&self.folder, &self.name, flags, Mode::empty())?;
        // Somebody may have put another one in its place.
        let owner = rustix::fs::fstat(&made)?.st_uid;
        let is_ours = owner == rustix::process::geteuid().as_raw();
        is_ours.then_some(made).ok_or_else(replaced)
    }

    /// Removes this file; what took its name meanwhile stays.
    pub fn remove(&self, file: Identity) -> io::Result<()> {
        if self.is_of(file) {
            unlinkat(&self.folder, &self.name, AtFlags::empty())?;
        }
        Ok(())
    }

    /// Removes a folder that was made here, which is empty.
    pub fn remove_folder(&self, made: &OwnedFd) -> io::Result<()> {
        if !self.is_of(Identity::of(made)?) {
            return Err(replaced());
        }
        Ok(unlinkat(&self.folder, &self.name, AtFlags::REMOVEDIR)?)
    }
}

/// Whether a name in a folder is that of this file.
pub fn is_of(folder: &OwnedFd, name: &OsStr, file: Identity) -> bool {
    let there = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
    there.is_ok_and(|there| Identity::in_stat(&there) == file)
}

/// A path to what is open, whoever else renames what in its folder.
pub fn path_of(open: &impl AsRawFd) -> PathBuf {
    format!("/proc/self/fd/{}", open.as_raw_fd()).into()
}

/// Another program changes the names while they are used.
pub fn replaced() -> io::Error {
    io::Error::other("another program replaces it all the time; name a place of your own")
}

/// As root, what may be another user's, or root's own by a name that the other one gave it.
pub fn not_alone() -> io::Error {
    io::Error::other(
        "it is no file, or has another name, an access list or other attributes, and is in a \
         folder that another user may change: root does not write to it; remove it, or name \
         another file",
    )
}

/// What another user has put where all may make names.
pub fn of_another(user: u32) -> io::Error {
    let what = "in a folder where others may put what they like";
    let do_what = "remove it, or name another place";
    let text = format!("it, or a link to it, is user {user}'s, {what}: {do_what}");
    io::Error::new(ErrorKind::PermissionDenied, text)
}

/// Whether this process is root and another user may have put there what is in a folder.
pub fn is_anybodys(folder: &OwnedFd) -> io::Result<bool> {
    Ok(is_root() && takes_names_of_others(&rustix::fs::fstat(folder)?))
}

/// Whether this process may do anything, so that other users would like to choose what it does.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether users other than root may make names in a folder. An access list shows in the rights of
/// the group.
fn takes_names_of_others(folder: &Stat) -> bool {
    let mode = Mode::from_raw_mode(folder.st_mode);
    folder.st_uid != 0 || mode.intersects(Mode::WGRP | Mode::WOTH)
}

/// Whether in a folder of root's nobody changes another's names, as in /tmp.
fn keeps_names(folder: &Stat) -> bool {
    folder.st_uid == 0 && Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX)
}

/// Whether all may make names in a folder, and nobody changes another's, as in /tmp.
fn is_shared(folder: &Stat) -> bool {
    Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX | Mode::WOTH)
}

fn is_us(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw()
}

/// Whether a folder is one of the kernel's process files.
fn is_of_processes(folder: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(folder)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// A descriptor that this process was given: another one of the same open file, so that it goes on
/// where the file was left and what is there stays.
fn given(number: i32) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{number}");
    // Before anything is opened here, which may get this number.
    std::fs::symlink_metadata(&path)?;
    let open = match number {
        0 => io::stdin().as_fd().try_clone_to_owned()?,
        1 => io::stdout().as_fd().try_clone_to_owned()?,
        2 => io::stderr().as_fd().try_clone_to_owned()?,
        _ => duplicate(number)?,
    };
    let flags = rustix::fs::fcntl_getfl(&open)?;
    let may_write = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
    if flags.contains(OFlags::PATH) || !may_write {
        return Err(io::Error::other(format!("descriptor {number} is not open for writing")));
    }
    Ok(open)
}

fn duplicate(number: i32) -> rustix::io::Result<OwnedFd> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let us = pidfd_open(getpid(), PidfdFlags::empty())?;
    pidfd_getfd(us, number, PidfdGetfdFlags::empty())
}
