//! Trees of files: `ls`, `cat`, `put`, `get`, `rm`, with the library's [`steadfast::tree`].

mod ls;

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Error, Result, bail};
use rustix::io::Errno;
use steadfast::FileSystem;
use steadfast::tree::{Options, Report};
use steadfast_vfs::path::shown;

use super::image::to_anyhow;
use super::whole_file;
use crate::cli::{Get, GetTarget, Owners, Put, PutSource};
use crate::{CommandEnd, source_date, terminal};

pub use ls::ls;

/// Refuses what is not there before an image is touched.
pub fn check_source(source: &PutSource<'_>) -> Result<()> {
    match source {
        PutSource::Host(host, _) if host.symlink_metadata().is_err() => {
            usage!("{}: no such file", host.display())
        }
        PutSource::Tar(file, _) if !is_stream(file) && file.is_dir() => {
            usage!("{}: is a directory; put -r copies one", file.display())
        }
        PutSource::Tar(file, _) if !is_stream(file) && file.metadata().is_err() => {
            usage!("{}: no such file", file.display())
        }
        PutSource::Host(..) | PutSource::Tar(..) => Ok(()),
    }
}

/// Whether it is the standard input or output.
fn is_stream(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Copies a host file, a tree or an archive into the image.
pub fn put(fs: &FileSystem, source: &PutSource<'_>, args: &Put) -> Result<CommandEnd> {
    let files = args.image.files();
    let options = copying(args.recursive, &args.owners, &files);
    let options = match source_date::newest()? {
        Some(newest) => options.newest(newest).by_name(true),
        None => options,
    };
    match source {
        PutSource::Host(host, to) => {
            let shown = host.display().to_string();
            let copy = |options: Options<'_>| options.copy_in(fs, host, to);
            let source = (shown.as_str(), host.as_os_str().as_encoded_bytes());
            copied(args.recursive, args.strict, source, options, copy)
        }
        PutSource::Tar(file, to) => {
            let options = options.whiteouts(args.whiteouts.into());
            let name = file.display().to_string();
            let done = if is_stream(file) {
                let input = std::io::stdin().lock();
                with_reports(options, args.strict, UNPACKED, |o| o.unpack(fs, input, to))
            } else {
                let input = File::open(file).with_context(|| name.clone())?;
                let input = BufReader::with_capacity(PART, input);
                with_reports(options, args.strict, UNPACKED, |o| o.unpack(fs, input, to))
            };
            done.map_err(|e| of_archive(e, &name))
        }
    }
}

/// Copies a file or a tree out of the image, or into an archive.
pub fn get(
    fs: &FileSystem,
    target: &GetTarget<'_>,
    args: &Get,
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let files = args.image.image.files();
    match target {
        GetTarget::Host(from, host) => {
            let options = copying(args.recursive, &args.owners, &files);
            let copy = |options: Options<'_>| options.copy_out(fs, from, host);
            let name = shown(from.as_bytes());
            copied(args.recursive, args.strict, (&name, from.as_bytes()), options, copy)
        }
        GetTarget::Tar(from, file) => {
            let newest = source_date::newest()?;
            let pack = |output: &mut dyn Write| {
                let options = copying(args.recursive, &args.owners, &files);
                let options = match newest {
                    Some(newest) => options.newest(newest),
                    None => options,
                };
                with_reports(options, args.strict, PACKED, |o| o.pack(fs, from, output))
            };
            let name = file.display().to_string();
            if is_stream(file) {
                return pack(out).map_err(|e| of_archive(e, &name));
            }
            let end = Cell::new(CommandEnd::Good);
            let written = whole_file::write_by(file, |place| {
                end.set(pack(&mut BufWriter::with_capacity(PART, File::create(place)?))?);
                Ok(())
            });
            written.map(|()| end.get()).map_err(|e| match e.downcast::<steadfast::Error>() {
                Ok(e) => of_archive(e, &name),
                Err(e) => Error::new(e).context(name),
            })
        }
    }
}

/// Bytes that are read or written of an archive at a time.
const PART: usize = 1 << 20;
const UNPACKED: &str = "the rest is unpacked";
const PACKED: &str = "the rest is packed";

/// An error, and the archive's name where it is about that.
fn of_archive(e: steadfast::Error, name: &str) -> Error {
    let is_of_archive = matches!(e, steadfast::Error::Archive(_));
    let e = to_anyhow(e);
    if is_of_archive { e.context(name.to_owned()) } else { e }
}

/// How something is copied.
fn copying(recursive: bool, owners: &Owners, image: &[&Path]) -> Options<'static> {
    let options = Options::new().recursive(recursive).owners(owners.map());
    image.iter().fold(options, |options, file| options.exclude(*file))
}

fn copied<'o>(
    recursive: bool,
    strict: bool,
    (shown, source): (&str, &[u8]),
    options: Options<'o>,
    copy: impl FnOnce(Options<'_>) -> steadfast::Result<Report>,
) -> Result<CommandEnd> {
    let done = with_reports(options, strict, "the rest is copied", copy);
    match &done {
        Err(steadfast::Error::Path { path, .. })
            if !recursive
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
