//! `get`: out of an image.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use steadfast_vfs::path::resolve;
use steadfast_vfs::{FileSystem, FileType, HostFs};

use super::copy::{Copy, End};
use super::failures::Failures;
use super::names::{last, shown};
use super::walk::Side;
use crate::Outcome;

/// How to copy.
pub struct Way<'w> {
    /// Folders with all they hold.
    pub recursive: bool,
    /// The first failure ends it.
    pub strict: bool,
    /// The files of the host that the image and its journal are.
    pub image: &'w [&'w Path],
}

/// Copies a file (or with `recursive` a tree) out of the image; if the host path is an existing
/// directory, under it with the file's own name.
pub fn get(fs: &dyn FileSystem, from: &[u8], host: &Path, way: &Way<'_>) -> Result<Outcome> {
    let attr = resolve(fs, from, true).with_context(|| shown(from))?;
    if attr.kind == FileType::Directory && !way.recursive {
        bail!("{}: is a directory; use -r to copy it with all it holds", shown(from));
    }
    let (folder, name, path) = target(host, last(from), attr.kind)?;
    let to = HostFs::open(&folder).with_context(|| folder.display().to_string())?;
    let image = numbers(&to, way.image);
    let mut failures = Failures::new(way.strict);
    let root = to.root();
    let from = End { fs, side: Side::Image, path: from.to_vec(), image: Vec::new() };
    let to = End { fs: &to, side: Side::Host, path, image };
    let done = Copy::new(from, to, &mut failures)
        .and_then(|mut copy| copy.run(&attr, root, name.as_deref()));
    failures.end(done, "the rest is copied")
}

/// The numbers that these files have as files of `host`.
pub fn numbers(host: &HostFs, files: &[&Path]) -> Vec<steadfast_vfs::Ino> {
    let number = |file: &&Path| file.metadata().ok().map(|m| host.number_of(m.dev(), m.ino()));
    files.iter().filter_map(number).collect()
}

/// The folder to work in, the name to make there (none: the folder itself is filled), and what
/// that is called. The way to the folder is the caller's own: links in it are followed. The name
/// is not.
fn target(
    host: &Path,
    name: Option<&[u8]>,
    kind: FileType,
) -> Result<(std::path::PathBuf, Option<Vec<u8>>, Vec<u8>)> {
    let path = host.as_os_str().as_bytes();
    if host.is_dir() {
        let path = match name {
            Some(name) => host.join(OsStr::from_bytes(name)),
            None => host.to_path_buf(),
        };
        if name.is_none() && kind != FileType::Directory {
            bail!("{}: is a directory", host.display());
        }
        let path = path.into_os_string().as_bytes().to_vec();
        return Ok((host.to_path_buf(), name.map(<[u8]>::to_vec), path));
    }
    let (Some(name), Some(parent)) = (host.file_name(), host.parent()) else {
        bail!("{}: no such folder", host.display());
    };
    let here = parent.as_os_str().is_empty();
    let parent = if here { Path::new(".") } else { parent };
    Ok((parent.to_path_buf(), Some(name.as_bytes().to_vec()), path.to_vec()))
}
