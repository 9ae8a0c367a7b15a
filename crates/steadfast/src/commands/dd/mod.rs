//! `steadfast dd`: GNU dd's command line and text, on this machine's files, on images, and on
//! stacks in virtual or real time.

pub mod cli;
mod host;
mod told;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use steadfast_bench::dd::{
    self, DeviceEnd, Errno, Failed, FileSink, FileSource, Flags, Job, Null, Operands, Random, Sink,
    Source, Tally, Teller, WrongOperand, Zeros, always_quoted,
};
use steadfast_vfs::NewNode;

use self::cli::Dd;
use self::told::{Nobody, Stderr};
use super::site::{Site, Wants};
use crate::{Outcome, Usage};

/// As dd ends when anything went wrong.
const FAILED: Outcome = Outcome::Told(1);

/// Runs it.
pub fn run(args: &Dd) -> Result<Outcome> {
    let operands = match dd::parse(&args.operands) {
        Ok(operands) => operands,
        Err(e) => {
            told::wrong(&e);
            return Ok(FAILED);
        }
    };
    let first = args.first.clone();
    let before = first.iter().map(|line| parsed(line)).collect::<Result<Vec<_>>>()?;
    let is_file = |path: &Option<OsString>| {
        path.as_deref().is_some_and(|p| matches!(named(p), Named::File(_)))
    };
    let wants = Wants {
        writes: before.iter().chain([&operands]).any(|o| is_file(&o.output)),
        noatime: operands.iflags.contains(Flags::NOATIME),
    };
    let done = args.site.at(wants, move |site| {
        self::before(site, &first)?;
        let tally = Arc::new(Tally::default());
        let teller = Stderr::default();
        operands.warnings.iter().for_each(|w| teller.says(w));
        let simulated = steadfast_runtime::is_simulated();
        let status = operands.status;
        told::on_signals(Arc::clone(&tally), status, teller.clone(), simulated, site.rescue())?;
        match copy(site, &operands, &tally, &teller)? {
            Ok(()) => Ok(Outcome::Good),
            Err(Failed) => Ok(FAILED),
        }
    });
    told::end_as_signalled();
    done
}

/// The operands of a run before.
fn parsed(line: &str) -> Result<Operands> {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let wrong = |e: WrongOperand| Usage(format!("--first '{line}': {e}"));
    Ok(dd::parse(&words).map_err(wrong)?)
}

/// Runs what is to be done before, without a word; nothing stays in the page cache.
pub fn before(site: &Site, lines: &[String]) -> Result<()> {
    for line in lines {
        if let Err(Failed) = copy(site, &parsed(line)?, &Arc::default(), &Nobody)? {
            return Err(Usage(format!("--first '{line}': it failed")).into());
        }
    }
    if lines.is_empty() { Ok(()) } else { site.unmount() }
}

/// Opens both ends and copies.
fn copy(
    site: &Site,
    operands: &Operands,
    tally: &Arc<Tally>,
    teller: &dyn Teller,
) -> Result<Result<(), Failed>> {
    let not_opened = |what: &str| {
        teller.says(what);
        Ok(Err(Failed))
    };
    let mut source = match source(site, operands)? {
        Ok(source) => source,
        Err(what) => return not_opened(&what),
    };
    let (mut sink, whole) = match sink(site, operands, teller)? {
        Ok(opened) => opened,
        Err(what) => return not_opened(&what),
    };
    if operands.iflags.contains(Flags::DIRECTORY) && operands.input.is_none() && !site.is_here() {
        return not_opened("setting flags for 'standard input': Not a directory");
    }
    let job =
        Job { operands, source: &mut *source, sink: &mut *sink, tally, teller, failed: !whole };
    Ok(dd::run(job))
}

/// What a path means elsewhere than on this machine.
enum Named<'a> {
    Host(&'a OsStr),
    Device(&'a str),
    Zero,
    Null,
    Random,
    File(&'a [u8]),
}

fn named(path: &OsStr) -> Named<'_> {
    let bytes = path.as_bytes();
    if let Some(host) = bytes.strip_prefix(b"host:") {
        return Named::Host(OsStr::from_bytes(host));
    }
    if let Some(name) = path.to_str().and_then(|p| p.strip_prefix("device:")) {
        return Named::Device(name);
    }
    match bytes {
        b"/dev/zero" => Named::Zero,
        b"/dev/null" => Named::Null,
        b"/dev/urandom" | b"/dev/random" => Named::Random,
        path => Named::File(path),
    }
}

/// The path of this machine that a path means elsewhere, if it means one.
fn on_host(path: &OsStr) -> Option<&Path> {
    match named(path) {
        Named::Host(path) => Some(Path::new(path)),
        _ => None,
    }
}

/// What could be opened, or why not in dd's words.
type Opened<T> = std::result::Result<T, String>;

fn failed_to_open(path: &[u8], e: Errno) -> String {
    format!("failed to open {}: {e}", always_quoted(path))
}

/// What a path means there.
fn named_at<'a>(site: &Site, path: &'a OsStr) -> Named<'a> {
    if site.is_here() { Named::Host(path) } else { named(path) }
}

fn source(site: &Site, o: &Operands) -> Result<Opened<Box<dyn Source>>> {
    let host = |path| host::input(path, o.iflags).map(|end| Box::new(end) as Box<dyn Source>);
    site.refuse_own_image(o.input.as_deref().and_then(on_host))?;
    let Some(path) = o.input.as_deref() else { return Ok(host(None)) };
    Ok(match named_at(site, path) {
        Named::Host(path) => host(Some(path)),
        Named::Device(name) => Ok(Box::new(DeviceEnd::new(site.device(name)?, o.iflags))),
        Named::Zero => Ok(Box::new(Zeros)),
        Named::Null => Ok(Box::new(Null)),
        Named::Random => Ok(Box::new(Random::default())),
        Named::File(name) => match FileSource::open(site.fs()?, name, o.iflags) {
            Ok(source) => Ok(Box::new(source)),
            Err(e) => Err(failed_to_open(name, e)),
        },
    })
}

/// The sink, and whether all went well with it.
fn sink(site: &Site, o: &Operands, teller: &dyn Teller) -> Result<Opened<(Box<dyn Sink>, bool)>> {
    site.refuse_own_image(o.output.as_deref().and_then(on_host))?;
    let says = |text: &str| teller.says(text);
    let boxed = |(end, whole): (host::HostEnd, bool)| (Box::new(end) as Box<dyn Sink>, whole);
    let Some(path) = o.output.as_deref() else { return Ok(host::output(o, &says).map(boxed)) };
    Ok(match named_at(site, path) {
        Named::Host(path) => host::open_output(path, o, &says).map(boxed),
        Named::Device(name) => {
            Ok((Box::new(DeviceEnd::new(site.device(name)?, o.oflags)) as _, true))
        }
        // As the kernel's devices are: /dev/zero takes all, /dev/urandom too.
        Named::Zero | Named::Null | Named::Random => Ok((Box::new(Null) as _, true)),
        Named::File(name) => file_sink(site, name, o, teller)?,
    })
}

fn file_sink(
    site: &Site,
    name: &[u8],
    o: &Operands,
    teller: &dyn Teller,
) -> Result<Opened<(Box<dyn Sink>, bool)>> {
    if o.seek_offset().is_none() && o.truncates() {
        return Ok(Err(format!(
            "offset too large: cannot truncate to a length of seek={} ({}-byte) blocks",
            o.seek_blocks, o.obs
        )));
    }
    let new = NewNode {
        mode: 0o666,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        umask: umask(),
    };
    let mut sink = match FileSink::open(site.fs()?, name, o, new) {
        Ok(sink) => sink,
        Err(e) => return Ok(Err(failed_to_open(name, e))),
    };
    let cut = match o.seek_offset().filter(|_| o.seeks() && o.truncates()) {
        Some(size) => sink.truncate(size).map_err(|e| (size, e)),
        None => Ok(()),
    };
    if let Err((size, e)) = &cut {
        let name = always_quoted(name);
        teller.says(&format!("failed to truncate to {size} bytes in output file {name}: {e}"));
    }
    Ok(Ok((Box::new(sink), cut.is_ok())))
}

/// The process's umask, which can only be seen by setting it.
fn umask() -> u16 {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    mask.bits() as u16
}
