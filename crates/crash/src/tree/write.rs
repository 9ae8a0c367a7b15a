//! Writing a tree into a folder of the host.
//!
//! Nobody else may change what is written while it is: each folder is the caller's alone until all
//! is there, each file is changed where it is open, and no link is followed.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, openat};
use rustix::io::Errno;
use steadfast_vfs::{Attr, FileType};

use super::{Node, Tree, shown};

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What only the caller may enter.
const PRIVATE: Mode = Mode::RWXU;

/// A folder that is being filled.
struct Target {
    top: OwnedFd,
    /// The names that were made in it.
    made: Vec<Vec<u8>>,
    /// The folder that was used last, and its path.
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl Tree {
    /// Refuses a path that leads out of the folder that the tree is written to.
    pub(crate) fn check_inside(&self, path: &[u8]) -> io::Result<()> {
        match self.stays_inside(path) {
            true => Ok(()),
            false => {
                let what = format!("{}: what it is in is no directory", shown(path));
                Err(io::Error::new(io::ErrorKind::InvalidData, what))
            }
        }
    }

    /// Whether a path stays in the folder that the tree is written to: each name is one, and all
    /// but the last are directories. A damaged directory may have a name twice, as a directory and
    /// as a symbolic link.
    fn stays_inside(&self, path: &[u8]) -> bool {
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let is_directory = |end: usize| {
            self.get(&path[..end]).is_some_and(|node| node.attr.kind == FileType::Directory)
        };
        path.split(|byte| *byte == b'/').all(is_name) && ends.into_iter().all(is_directory)
    }

    /// Writes the tree into `folder`, as [`write_into`](Self::write_into) does.
    ///
    /// # Errors
    /// As there.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.write_into(rustix::fs::open(folder, flags, Mode::empty())?)
    }

    /// Writes the tree into a folder that is open for reading, is the caller's own and is empty:
    /// hard and symbolic links, permissions, holes; owners where that is allowed. Device nodes and
    /// sockets are left out. Only the caller may enter the folder until all is there, and after a
    /// failure, which removes again what was made.
    ///
    /// # Errors
    /// What the host reports, with the path; a path that leads out of the folder; a folder that is
    /// not empty, which stays as it is.
    pub fn write_into(&self, folder: impl AsFd) -> io::Result<()> {
        let top = File::from(folder.as_fd().try_clone_to_owned()?);
        let permissions = top.metadata()?.permissions();
        // Before anything is changed: somebody may have put another folder in its place.
        if !is_empty(&top)? {
            return Err(Errno::NOTEMPTY.into());
        }
        top.set_permissions(Permissions::from_mode(PRIVATE.bits()))?;
        // From now on nobody else can make anything there.
        if !is_empty(&top)? {
            top.set_permissions(permissions)?;
            return Err(Errno::NOTEMPTY.into());
        }
        let mut target = Target { top: top.try_clone()?.into(), made: Vec::new(), last: None };
        let filled = self.fill(&mut target);
        if filled.is_err() {
            target.remove_made();
        }
        filled?;
        top.set_permissions(permissions)
    }

    fn fill(&self, target: &mut Target) -> io::Result<()> {
        let mut directories = Vec::new();
        for (path, node) in &self.nodes {
            self.check_inside(path)?;
            target.write(path, node).map_err(|e| at(path, &e))?;
            if node.attr.kind == FileType::Directory {
                directories.push((path, &node.attr));
            }
        }
        // At last, from the bottom up: others may change them from then on, or nobody.
        for (path, attr) in directories.into_iter().rev() {
            let folder = target.open(path, OFlags::RDONLY).map(File::from);
            folder.and_then(|folder| settle(&folder, attr)).map_err(|e| at(path, &e))?;
        }
        Ok(())
    }
}

fn at(path: &[u8], e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", shown(path)))
}

fn is_empty(folder: &File) -> io::Result<bool> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        if !matches!(entry?.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The owner, where that is allowed, and the permissions, which a new owner would clear.
fn settle(file: &File, attr: &Attr) -> io::Result<()> {
    // OK to ignore: only root may give files away; whoever may not has its own files.
    let _ = fchown(file, Some(attr.uid), Some(attr.gid));
    file.set_permissions(Permissions::from_mode(attr.mode.into()))
}

impl Target {
    /// Opens a folder, name by name: a path as a whole may be longer than a call takes.
    fn open(&self, path: &[u8], flags: OFlags) -> io::Result<OwnedFd> {
        let mut folder = openat(&self.top, ".", flags | FOLDER, Mode::empty())?;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            folder = openat(&folder, name, flags | FOLDER, Mode::empty())?;
        }
        Ok(folder)
    }

    /// The folder that a path is in, and its name there.
    fn parent<'p>(&mut self, path: &'p [u8]) -> io::Result<(&OwnedFd, &'p [u8])> {
        let Some(end) = path.iter().rposition(|byte| *byte == b'/') else {
            return Ok((&self.top, path));
        };
        let (folder, name) = (&path[..end], &path[end + 1..]);
        let open = match self.last.take() {
            Some((known, open)) if known == folder => open,
            _ => self.open(folder, OFlags::PATH)?,
        };
        Ok((&self.last.insert((folder.to_vec(), open)).1, name))
    }

    fn write(&mut self, path: &[u8], node: &Node) -> io::Result<()> {
        let kind = node.attr.kind;
        // All names of it: the first one is not there to be linked to.
        if matches!(kind, FileType::CharDevice | FileType::BlockDevice | FileType::Socket) {
            return Ok(());
        }
        let file = self.make(path, node)?;
        if !path.contains(&b'/') {
            self.made.push(path.to_vec());
        }
        if let Some(file) = file {
            for (offset, bytes) in &node.pieces {
                file.write_all_at(bytes, *offset)?;
            }
            file.set_len(node.attr.size)?;
            return settle(&file, &node.attr);
        }
        if kind == FileType::Directory || node.same_as.is_some() {
            return Ok(());
        }
        // The largest number is nobody's, and leaves the owner as it is.
        let number = |id: u32| (id != u32::MAX).then_some(id);
        let uid = number(node.attr.uid).map(Uid::from_raw);
        let gid = number(node.attr.gid).map(Gid::from_raw);
        let (folder, name) = self.parent(path)?;
        // OK to ignore, as for other files.
        let _ = rustix::fs::chownat(folder, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW);
        Ok(())
    }

    /// Makes what has the path; a regular file is open, to be filled.
    fn make(&mut self, path: &[u8], node: &Node) -> io::Result<Option<File>> {
        if let Some(original) = &node.same_as {
            let end = original.iter().rposition(|byte| *byte == b'/');
            let from = self.open(&original[..end.unwrap_or(0)], OFlags::PATH)?;
            let (folder, name) = self.parent(path)?;
            let old = &original[end.map_or(0, |end| end + 1)..];
            rustix::fs::linkat(&from, old, folder, name, AtFlags::empty())?;
            return Ok(None);
        }
        let (folder, name) = self.parent(path)?;
        match node.attr.kind {
            FileType::Directory => rustix::fs::mkdirat(folder, name, PRIVATE)?,
            FileType::Regular => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
                let mode = Mode::RUSR | Mode::WUSR;
                return Ok(Some(openat(folder, name, flags | OFlags::CLOEXEC, mode)?.into()));
            }
            FileType::Symlink => rustix::fs::symlinkat(&*node.target, folder, name)?,
            FileType::Fifo => {
                let mode = Mode::from_raw_mode(node.attr.mode.into());
                rustix::fs::mknodat(folder, name, rustix::fs::FileType::Fifo, mode, 0)?;
            }
            FileType::CharDevice | FileType::BlockDevice | FileType::Socket => {}
        }
        Ok(None)
    }

    /// Removes what was made, after a failure; nothing that anybody else has put there.
    fn remove_made(&self) {
        let top = PathBuf::from(format!("/proc/self/fd/{}", self.top.as_raw_fd()));
        for name in &self.made {
            let path = top.join(OsStr::from_bytes(name));
            // OK to ignore: the first failure is what counts, and the folder stays private.
            let _ = match path.symlink_metadata().is_ok_and(|there| there.is_dir()) {
                true => std::fs::remove_dir_all(path),
                false => std::fs::remove_file(path),
            };
        }
    }
}
