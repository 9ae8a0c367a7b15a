//! Trees of files: `ls`, `cat`, `put`, `get`, `rm`, with the library's [`steadfast::tree`].

mod ls;

use std::cell::Cell;
use std::io::Write;
use std::path::Path;

use anyhow::{Error, Result, bail};
use rustix::io::Errno;
use steadfast::FileSystem;
use steadfast::tree::{Options, Report};
use steadfast_vfs::path::shown;

use super::image::to_anyhow;
use crate::{CommandEnd, terminal};

pub use ls::ls;

/// How to copy.
pub struct CopyMode<'w> {
    /// Folders with all they hold.
    pub recursive: bool,
    /// The first failure ends it.
    pub strict: bool,
    /// The files of the host that the image and its journal are.
    pub image: &'w [&'w Path],
}

/// Copies a host file (or with `recursive` a tree) into the image.
pub fn put(fs: &FileSystem, host: &Path, to: &str, way: &CopyMode<'_>) -> Result<CommandEnd> {
    let shown = host.display().to_string();
    let copy = |options: Options<'_>| options.copy_in(fs, host, to);
    copied(way, (&shown, host.as_os_str().as_encoded_bytes()), copy)
}

/// Copies a file (or with `recursive` a tree) out of the image.
pub fn get(fs: &FileSystem, from: &str, host: &Path, way: &CopyMode<'_>) -> Result<CommandEnd> {
    let copy = |options: Options<'_>| options.copy_out(fs, from, host);
    copied(way, (&shown(from.as_bytes()), from.as_bytes()), copy)
}

fn copied(
    way: &CopyMode<'_>,
    (shown, source): (&str, &[u8]),
    copy: impl FnOnce(Options<'_>) -> steadfast::Result<Report>,
) -> Result<CommandEnd> {
    let mut options = Options::new().recursive(way.recursive);
    for file in way.image {
        options = options.exclude(*file);
    }
    let done = with_reports(options, way.strict, "the rest is copied", copy);
    match &done {
        Err(steadfast::Error::Path { path, .. })
            if !way.recursive
                && is(&done, Errno::ISDIR)
                && path.as_os_str().as_encoded_bytes() == source =>
        {
            bail!("{shown}: is a directory; use -r to copy it with all it holds")
        }
        _ => done.map_err(to_anyhow),
    }
}

/// Removes a file, or with `recursive` a whole tree.
pub fn rm(fs: &FileSystem, path: &str, recursive: bool) -> Result<CommandEnd> {
    let options = Options::new().recursive(recursive);
    let done = with_reports(options, false, "the rest is removed", |o| o.remove(fs, path));
    if !recursive && is(&done, Errno::ISDIR) {
        let path = shown(path.as_bytes());
        bail!("{path}: is a directory; use -r to remove it with all it holds");
    }
    let read_only = is(&done, Errno::ROFS);
    done.map_err(|e| match read_only {
        true => to_anyhow(e).context("nothing more is removed"),
        false => to_anyhow(e),
    })
}

fn is(done: &steadfast::Result<CommandEnd>, errno: Errno) -> bool {
    done.as_ref().is_err_and(|e| e.errno() == errno.raw_os_error())
}

/// Does something with a tree; prints failures as they come, then what is not kept, and how many
/// have failed.
fn with_reports(
    options: Options<'_>,
    strict: bool,
    rest: &str,
    work: impl FnOnce(Options<'_>) -> steadfast::Result<Report>,
) -> steadfast::Result<CommandEnd> {
    let failures = Cell::new(0_u64);
    let failed = |e: steadfast::Error| {
        failures.set(failures.get() + 1);
        terminal::error(&to_anyhow(e));
    };
    let options = options.on_note(|note| terminal::note(&format!("note: {note}")));
    let done = work(if strict { options } else { options.on_failure(failed) });
    Ok(outcome_of(failures.get(), rest)).and_then(|outcome| done.map(|_| outcome))
}

/// Says how many objects have failed.
fn outcome_of(failures: u64, rest: &str) -> CommandEnd {
    if failures > 1 {
        terminal::note(&format!("{failures} failures; {rest}"));
    }
    if failures == 0 { CommandEnd::Good } else { CommandEnd::Problem }
}

/// Writes a file's contents to `out`.
pub fn cat(fs: &FileSystem, path: &str, out: &mut dyn Write) -> Result<()> {
    fs.read_to_writer(path, out).map(drop).map_err(|e| match e.downcast::<steadfast::Error>() {
        Ok(e) => to_anyhow(e),
        Err(e) => Error::new(e).context(shown(path.as_bytes())),
    })
}
