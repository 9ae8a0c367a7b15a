//! `put`: into an image.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use steadfast_vfs::path::{parent_and_name, resolve};
use steadfast_vfs::{FileSystem, FileType, HostFs};

use super::copy::{Copy, End};
use super::failures::Failures;
use super::get::{Way, numbers};
use super::names::{joined, shown};
use super::walk::Side;
use crate::Outcome;

/// Copies a host file (or with `recursive` a tree) into the image as `to`; if `to` is an existing
/// directory, under it with the host file's own name.
pub fn put(fs: &dyn FileSystem, host: &Path, to: &[u8], way: &Way<'_>) -> Result<Outcome> {
    let shown_host = || host.display().to_string();
    // The way to the file is the caller's own: links in it are followed. The last name is not.
    let (folder, name) = match host.file_name() {
        Some(name) => {
            let parent = host.parent().filter(|p| !p.as_os_str().is_empty());
            (parent.unwrap_or(Path::new(".")), Some(name.as_bytes()))
        }
        None => (host, None),
    };
    let source = HostFs::open(folder).with_context(shown_host)?;
    let attr = match name {
        Some(name) => source.lookup(source.root(), name),
        None => source.getattr(source.root()),
    };
    let attr = attr.with_context(shown_host)?;
    if attr.kind == FileType::Directory && !way.recursive {
        bail!("{}: is a directory; use -r to copy it with all it holds", host.display());
    }
    let into = resolve(fs, to, true).ok().filter(|a| a.kind == FileType::Directory);
    let path = match (&into, name) {
        (Some(_), Some(name)) => joined(to, name),
        _ => to.to_vec(),
    };
    let (dir, as_name) = match into {
        Some(into) => (into.ino, name.map(<[u8]>::to_vec)),
        None => {
            let (dir, name) = parent_and_name(fs, to).with_context(|| shown(to))?;
            (dir, Some(name.to_vec()))
        }
    };
    let image = numbers(&source, way.image);
    let mut failures = Failures::new(way.strict);
    let from = host.as_os_str().as_bytes().to_vec();
    let from = End { fs: &source, side: Side::Host, path: from, image };
    let to = End { fs, side: Side::Image, path, image: Vec::new() };
    let done = Copy::new(from, to, &mut failures)
        .and_then(|mut copy| copy.run(&attr, dir, as_name.as_deref()));
    failures.end(done, "the rest is copied")
}
