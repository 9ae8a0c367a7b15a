//! From where to where a copy goes: one end is a folder of the host, the other one a file system.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use steadfast_vfs::path::{parent_and_name, resolve};
use steadfast_vfs::{Attr, FileSystem as Vfs, FileType, FsError, HostFs, Ino};

use super::Side;
use super::copy::{Copy, End};
use super::failures::TreeFailures;
use super::names::{joined, last};
use super::owners::Changes;
use crate::error::{Error, Result};
use crate::fs::FileSystem;

/// Of a target.
const LINK: &str = "is a symbolic link to a folder, which is not followed: end the path with '/' \
                    to copy into the folder that it leads to";

/// Both ends of a copy.
pub(super) struct Ends<'e> {
    fs: &'e FileSystem,
    host: HostFs,
    inwards: bool,
    /// What the top is called at either end, for messages.
    from: Vec<u8>,
    to: Vec<u8>,
    /// What is copied.
    attr: Attr,
    /// The folder to work in, and the name to make there; none: the folder itself is filled.
    dir: Ino,
    name: Option<Vec<u8>>,
}

impl Ends<'_> {
    /// Copies; files of the host that are excluded are neither copied nor replaced.
    pub fn copy(
        &self,
        exclude: &[PathBuf],
        changes: &Changes,
        failures: &mut TreeFailures<'_>,
    ) -> Result<()> {
        let inner = End {
            fs: &**self.fs.vfs(),
            side: self.fs.side(),
            path: if self.inwards { self.to.clone() } else { self.from.clone() },
            image: Vec::new(),
        };
        let outer = End {
            fs: &self.host,
            side: Side::Host,
            path: if self.inwards { self.from.clone() } else { self.to.clone() },
            image: numbers(&self.host, exclude),
        };
        let (from, to) = if self.inwards { (outer, inner) } else { (inner, outer) };
        Copy::new(from, to, changes, failures)?.run(&self.attr, self.dir, self.name.as_deref())
    }
}

/// The numbers that these files have as files of `host`.
fn numbers(host: &HostFs, files: &[PathBuf]) -> Vec<Ino> {
    let number = |file: &PathBuf| file.metadata().ok().map(|m| host.number_of(m.dev(), m.ino()));
    files.iter().filter_map(number).collect()
}

/// From what is in the host's folder `host`, and the folder's own attributes, to the folder `to`.
pub(super) fn contents_inwards<'e>(fs: &'e FileSystem, host: &Path, to: &[u8]) -> Result<Ends<'e>> {
    let at_host = || Error::at("copy_in", host);
    let source = HostFs::open(host).map_err(at_host())?;
    let attr = source.getattr(source.root()).map_err(at_host())?;
    let at_target = Error::at("copy_in", Path::new(OsStr::from_bytes(to)));
    let into = resolve(&**fs.vfs(), to, true).map_err(at_target)?;
    let from = host.as_os_str().as_bytes().to_vec();
    let (dir, name, to) = (into.ino, None, to.to_vec());
    Ok(Ends { fs, host: source, inwards: true, from, to, attr, dir, name })
}

/// From the host's file or folder `host` to `to`.
pub(super) fn inwards<'e>(
    fs: &'e FileSystem,
    host: &Path,
    to: &[u8],
    recursive: bool,
) -> Result<Ends<'e>> {
    let at_host = || Error::at("copy_in", host);
    // The way to the file is the caller's own: links in it are followed. The last name is not.
    let (folder, name) = match host.file_name() {
        Some(name) => {
            let parent = host.parent().filter(|p| !p.as_os_str().is_empty());
            (parent.unwrap_or(Path::new(".")), Some(name.as_bytes()))
        }
        None => (host, None),
    };
    let source = HostFs::open(folder).map_err(at_host())?;
    let attr = match name {
        Some(name) => source.lookup(source.root(), name),
        None => source.getattr(source.root()),
    };
    let attr = attr.map_err(at_host())?;
    if attr.kind == FileType::Directory && !recursive {
        return Err(at_host()(FsError::IsDirectory));
    }
    let vfs = &**fs.vfs();
    let into = resolve(vfs, to, true).ok().filter(|a| a.kind == FileType::Directory);
    let path = match (&into, name) {
        (Some(_), Some(name)) => joined(to, name),
        _ => to.to_vec(),
    };
    let (dir, name) = match into {
        Some(into) => (into.ino, name.map(<[u8]>::to_vec)),
        None => {
            let at_target = Error::at("copy_in", Path::new(OsStr::from_bytes(to)));
            let (dir, name) = parent_and_name(vfs, to).map_err(at_target)?;
            (dir, Some(name.to_vec()))
        }
    };
    let from = host.as_os_str().as_bytes().to_vec();
    Ok(Ends { fs, host: source, inwards: true, from, to: path, attr, dir, name })
}

/// From the file or folder `from` to the host's `host`.
pub(super) fn outwards<'e>(
    fs: &'e FileSystem,
    from: &[u8],
    host: &Path,
    recursive: bool,
) -> Result<Ends<'e>> {
    let at_source = || Error::at("copy_out", Path::new(OsStr::from_bytes(from)));
    let attr = resolve(&**fs.vfs(), from, true).map_err(at_source())?;
    if attr.kind == FileType::Directory && !recursive {
        return Err(at_source()(FsError::IsDirectory));
    }
    let (target, name, to) = target(host, last(from), attr.kind)?;
    let dir = target.root();
    Ok(Ends { fs, host: target, inwards: false, from: from.to_vec(), to, attr, dir, name })
}

/// The folder to work in, the name to make there (none: the folder itself is filled), and what
/// that is called. The way to the folder is the caller's own: links in it are followed. The last
/// name is not, unless the path ends in '/', which asks for it: another user may have put a link
/// where the caller had a folder.
fn target(
    host: &Path,
    name: Option<&[u8]>,
    kind: FileType,
) -> Result<(HostFs, Option<Vec<u8>>, Vec<u8>)> {
    let path = host.as_os_str().as_bytes();
    if host.is_dir() {
        let folder = HostFs::open_itself(host).map_err(|e| match (e, host.is_symlink()) {
            (FsError::NotDirectory, true) => {
                Error::Object { path: host.to_owned(), what: LINK.into() }
            }
            (e, _) => Error::at("copy_out", host)(e),
        })?;
        let path = match name {
            Some(name) => host.join(OsStr::from_bytes(name)),
            None => host.to_path_buf(),
        };
        if name.is_none() && kind != FileType::Directory {
            return Err(Error::at("copy_out", host)(FsError::IsDirectory));
        }
        let path = path.into_os_string().as_bytes().to_vec();
        return Ok((folder, name.map(<[u8]>::to_vec), path));
    }
    let (Some(name), Some(parent)) = (host.file_name(), host.parent()) else {
        return Err(Error::Object { path: host.to_owned(), what: "no such folder".into() });
    };
    let here = parent.as_os_str().is_empty();
    let parent = if here { Path::new(".") } else { parent };
    let folder = HostFs::open(parent).map_err(Error::at("copy_out", parent))?;
    Ok((folder, Some(name.as_bytes().to_vec()), path.to_vec()))
}
