//! Where a path leads, found once: a name in an open folder. Whoever exchanges folders or links
//! afterwards changes nothing of it.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, statat, unlinkat};
use rustix::io::Errno;

/// As many links are followed as the kernel follows.
const LINKS: usize = 40;

/// Just the place, following no link.
const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

const OTHER_NAME: &str = "it has another name, and is in a folder that another user may change: \
                          root does not write to it; remove it, or name another file";
const OF_ANOTHER: &str = "it is no file, and is in a folder that another user may change: root \
                          does not wait for that user; remove it, or name another file";

const NOWHERE: &str = "it is a symbolic link that leads nowhere: name what it leads to";

/// What a path leads to.
pub enum Found {
    /// A name in a folder, which need not be there.
    Named(Place),
    /// An open descriptor of this process (`/dev/stdout`, `/dev/fd/3`), open for writing.
    Descriptor(OwnedFd),
    /// What only the kernel's process files lead to, as another process's descriptor.
    Other(OwnedFd),
}

/// A name in an open folder.
pub struct Place {
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
/// What the host reports. As root also: a link that another user may have put there.
pub fn find(path: &Path) -> io::Result<Found> {
    Walk::new(path)?.go()
}

/// The folder that a path leads to; `make`: it, and those that it is in, are made if they are not
/// there.
///
/// # Errors
/// As for [`find`].
pub fn folder(path: &Path, make: bool) -> io::Result<OwnedFd> {
    let mut walk = Walk::new(path)?;
    walk.left.insert(0, b".".to_vec());
    walk.makes = make;
    match walk.go_down()? {
        Some(_) => Err(Errno::NOTDIR.into()),
        None => Ok(walk.at),
    }
}

impl Place {
    /// Where something new would be made, whose name follows no link, as for mkdir(2).
    pub fn of_new(path: &Path) -> io::Result<Place> {
        let name = path.file_name().ok_or(Errno::EXIST)?.to_owned();
        let parent = path.parent().filter(|p| *p != Path::new("")).unwrap_or(Path::new("."));
        Ok(Place { folder: folder(parent, false)?, name })
    }

    /// The same for a file, where a link that leads nowhere is an error that says so.
    pub fn of_new_file(path: &Path) -> io::Result<Place> {
        let place = Place::of_new(path)?;
        let Some(there) = place.present()? else { return Ok(place) };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&there)?.st_mode);
        match kind == FileType::Symlink && !path.exists() {
            true => Err(io::Error::new(ErrorKind::AlreadyExists, NOWHERE)),
            false => Ok(place),
        }
    }

    /// A name in a folder that is open.
    pub fn new_in(folder: OwnedFd, name: &str) -> Place {
        Place { folder, name: name.into() }
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

    /// Whether this process is root and the folder is one that another user may change: nothing is
    /// given away there, and nothing is put in another's place.
    pub fn is_exposed(&self) -> io::Result<bool> {
        let folder = rustix::fs::fstat(&self.folder)?;
        let keeps_names = Mode::from_raw_mode(folder.st_mode).contains(Mode::SVTX);
        Ok(is_root() && takes_names_of_others(&folder) && (folder.st_uid != 0 || !keeps_names))
    }

    /// Whether this process is root and another user may have put there what has the name.
    pub fn is_anybodys(&self) -> io::Result<bool> {
        is_anybodys(&self.folder)
    }

    /// What has the name now, to be looked at; `None`: nothing.
    pub fn present(&self) -> io::Result<Option<OwnedFd>> {
        match openat(&self.folder, &self.name, STEP, Mode::empty()) {
            Ok(there) => Ok(Some(there)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Whether the name is still that of this file.
    pub fn is_of(&self, file: Identity) -> bool {
        is_of(&self.folder, &self.name, file)
    }

    /// Makes a file, where nothing has the name; `None`: by now something has it.
    pub fn make(&self) -> io::Result<Option<Made<'_>>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        match openat(&self.folder, &self.name, flags | OFlags::CLOEXEC, mode) {
            Ok(file) => Ok(Some(Made { place: self, file: file.into() })),
            Err(Errno::EXIST) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Opens a file to append to it, which is made if it is not there.
    pub fn append(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
        // Another user's FIFO would make the open wait for its reader.
        let at_once = if self.is_anybodys()? { OFlags::NONBLOCK } else { OFlags::empty() };
        let (flags, mode) = (flags | at_once | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
        let file = match openat(&self.folder, &self.name, flags, mode) {
            Ok(file) => File::from(file),
            Err(Errno::NXIO) => return Err(io::Error::other(OF_ANOTHER)),
            Err(e) => return Err(e.into()),
        };
        self.is_no_other(&file.metadata()?)?;
        if !at_once.is_empty() {
            rustix::fs::fcntl_setfl(&file, rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        }
        Ok(file)
    }

    /// Refuses to write to what is root's by a name that another user gave it, a device for
    /// example, and to what is no file and another user's, who decides how long that takes.
    pub fn is_no_other(&self, file: &Metadata) -> io::Result<()> {
        let what = match file.is_file() {
            false if file.uid() != 0 => OF_ANOTHER,
            // A folder has several names of its own, and is not written.
            _ if file.nlink() != 1 && !file.is_dir() => OTHER_NAME,
            _ => return Ok(()),
        };
        if self.is_anybodys()? { Err(io::Error::other(what)) } else { Ok(()) }
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

/// A file that was made.
pub struct Made<'a> {
    place: &'a Place,
    /// It, open for writing.
    pub file: File,
}

impl Made<'_> {
    /// Removes it again; what took its name meanwhile stays.
    pub fn remove(self) -> io::Result<()> {
        self.place.remove(Identity::of(&self.file)?)
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

/// A path being followed.
struct Walk {
    at: OwnedFd,
    /// The names to come, the next one last.
    left: Vec<Vec<u8>>,
    links: usize,
    /// Whether folders that are not there are made.
    makes: bool,
}

impl Walk {
    fn new(path: &Path) -> io::Result<Walk> {
        // A user may stand in a folder that only others may search.
        let start = if path.has_root() { "/" } else { "." };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let at = rustix::fs::open(start, flags, Mode::empty())?;
        let mut walk = Walk { at, left: Vec::new(), links: 0, makes: false };
        walk.add(path.as_os_str().as_bytes())?;
        Ok(walk)
    }

    /// Goes on with a path: from here, or from the top.
    fn add(&mut self, path: &[u8]) -> io::Result<()> {
        if path.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if path.starts_with(b"/") {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.at = rustix::fs::open("/", flags, Mode::empty())?;
        }
        if path.ends_with(b"/") {
            self.left.push(b".".to_vec());
        }
        let names = path.split(|byte| *byte == b'/').rev().filter(|name| !name.is_empty());
        self.left.extend(names.map(<[u8]>::to_vec));
        Ok(())
    }

    fn go(mut self) -> io::Result<Found> {
        match self.go_down()? {
            None => Err(Errno::ISDIR.into()),
            Some(Last::Name(name)) => {
                Ok(Found::Named(Place { folder: self.at, name: OsString::from_vec(name) }))
            }
            Some(Last::Other(open)) => Ok(Found::Other(open)),
            Some(Last::Descriptor(number)) => {
                // It has a descriptor itself, which may have this number.
                drop(self.at);
                given(number).map(Found::Descriptor)
            }
        }
    }

    /// Goes to the last folder; `None`: the path leads to a folder, and that is where it is.
    fn go_down(&mut self) -> io::Result<Option<Last>> {
        while let Some(name) = self.left.pop() {
            let is_last = self.left.is_empty();
            if name == b"." {
                continue;
            }
            if is_of_processes(&self.at)? {
                match self.process_file(&name)? {
                    Some(last) if is_last => return Ok(Some(last)),
                    Some(_) => return Err(Errno::NOTDIR.into()),
                    None => continue,
                }
            }
            if !is_last || name == b".." {
                match openat(&self.at, &*name, STEP | OFlags::DIRECTORY, Mode::empty()) {
                    Ok(folder) => {
                        self.at = folder;
                        continue;
                    }
                    Err(Errno::NOTDIR | Errno::LOOP) => {}
                    Err(Errno::NOENT) if self.makes => {
                        self.make(name)?;
                        continue;
                    }
                    Err(e) => return Err(e.into()),
                }
            }
            match openat(&self.at, &*name, STEP, Mode::empty()) {
                Ok(there) => {
                    let stat = rustix::fs::fstat(&there)?;
                    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                        self.follow(&name, &there, &stat)?;
                        continue;
                    }
                }
                Err(Errno::NOENT) if is_last => {}
                Err(e) => return Err(e.into()),
            }
            return if is_last { Ok(Some(Last::Name(name))) } else { Err(Errno::NOTDIR.into()) };
        }
        Ok(None)
    }

    /// Makes a folder, to go on into it.
    fn make(&mut self, name: Vec<u8>) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.at, &*name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {}
            // Another program has made it, or it is a link that leads nowhere; so often as links
            // are followed.
            Err(Errno::EXIST) if self.links < LINKS => self.links += 1,
            Err(e) => return Err(e.into()),
        }
        self.left.push(name);
        Ok(())
    }

    fn follow(&mut self, name: &[u8], link: &OwnedFd, stat: &Stat) -> io::Result<()> {
        let of_another = is_root() && stat.st_uid != 0;
        if of_another && takes_names_of_others(&rustix::fs::fstat(&self.at)?) {
            let (name, user) = (String::from_utf8_lossy(name), stat.st_uid);
            let what = format!(
                "{name} is a symbolic link of user {user}, in a folder that other users may \
                 change: root does not follow it; name what it leads to, or run this as that user"
            );
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
        self.links += 1;
        if self.links > LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = rustix::fs::readlinkat(link, "", Vec::new())?;
        self.add(target.as_bytes())
    }

    /// Goes on from a folder of /proc, whose links lead to what is open, and not to a path.
    fn process_file(&mut self, name: &[u8]) -> io::Result<Option<Last>> {
        let here = Identity::of(&self.at)?;
        let is_ours = ["/proc/self/fd", "/proc/thread-self/fd"]
            .into_iter()
            .any(|own| rustix::fs::stat(own).is_ok_and(|own| Identity::in_stat(&own) == here));
        let is_number = name.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(name).ok().filter(|_| is_number);
        let number = number.and_then(|name| name.parse().ok());
        if let (true, true, Some(number)) = (is_ours, self.left.is_empty(), number) {
            return Ok(Some(Last::Descriptor(number)));
        }
        let open = openat(&self.at, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        match FileType::from_raw_mode(rustix::fs::fstat(&open)?.st_mode) {
            FileType::Directory => {
                self.at = open;
                Ok(None)
            }
            _ => Ok(Some(Last::Other(open))),
        }
    }
}

/// What a path ends with.
enum Last {
    Name(Vec<u8>),
    Descriptor(i32),
    Other(OwnedFd),
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
        _ => match duplicate(number) {
            Ok(open) => open,
            // An old kernel, or a filter of system calls: what is there stays by this, too.
            Err(_) => OpenOptions::new().append(true).open(&path)?.into(),
        },
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
