//! `steadfast dd`: GNU dd's command line and text, on this machine's files, on images, and on
//! stacks in virtual or real time.

pub mod cli;
mod host;
mod messages;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use steadfast_bench::dd::place::{self, DdPath, DdTarget, NotOpened, OpenResult, Snk, Src, named};
use steadfast_bench::dd::{
    self, DdFailure, Errno, Flags, Job, Operands, Reporter, Tally, WrongOperand,
};
use steadfast_block::BlockDevice;
use steadfast_vfs::{FileSystem, NewNode};

use self::cli::Dd;
use self::messages::{SilentReporter, Stderr};
use super::site::{ImageAccess, Site};
use crate::{CommandEnd, Usage};

/// As dd ends when anything went wrong.
const FAILED: CommandEnd = CommandEnd::Status(1);

/// Runs it.
pub fn run(args: &Dd) -> Result<CommandEnd> {
    let operands = match dd::parse(&args.operands, messages::charset()) {
        Ok(operands) => operands,
        Err(e) => {
            messages::wrong(&e);
            return Ok(FAILED);
        }
    };
    let first = args.first.clone();
    let before = first.iter().map(|line| parsed(line)).collect::<Result<Vec<_>>>()?;
    let is_file = |path: &Option<OsString>| {
        path.as_deref().is_some_and(|p| matches!(named(p), DdPath::File(_)))
    };
    let wants = ImageAccess {
        writes: before.iter().chain([&operands]).any(|o| is_file(&o.output)),
        noatime: operands.iflags.contains(Flags::NOATIME),
        data_bytes: None,
    };
    let done = args.site.at(wants, move |site| {
        self::before(site, &first)?;
        let tally = Arc::new(Tally::default());
        let reporter = Stderr::default();
        operands.warnings.iter().for_each(|w| reporter.says(w));
        let simulated = steadfast_runtime::is_simulated();
        let status = operands.status;
        messages::on_signals(
            Arc::clone(&tally),
            status,
            reporter.clone(),
            simulated,
            site.rescue(),
        )?;
        match copy(site, &operands, &tally, &reporter)? {
            Ok(()) => Ok(CommandEnd::Good),
            Err(DdFailure) => Ok(FAILED),
        }
    });
    messages::end_as_signalled();
    done
}

/// Says of an option that is none what GNU dd says, and how it ends then. `None`: it is another
/// mistake.
pub fn misread(e: &clap::Error, words: &[OsString]) -> Option<CommandEnd> {
    let Some(ContextValue::String(name)) = e.get(ContextKind::InvalidArg) else { return None };
    let what = match (e.kind(), name.strip_prefix("--")) {
        (ErrorKind::TooManyValues, Some(_)) => format!("option '{name}' doesn't allow an argument"),
        (ErrorKind::UnknownArgument, None) => format!("invalid option -- '{}'", &name[1..]),
        (ErrorKind::UnknownArgument, Some(_)) => {
            let word = words.iter().map(|word| word.to_string_lossy());
            let whole = word.into_iter().find(|word| word.starts_with(name.as_str()));
            format!("unrecognized option '{}'", whole.unwrap_or_default())
        }
        _ => return None,
    };
    messages::wrong(&WrongOperand { lines: vec![what], point_to_help: true });
    Some(FAILED)
}

/// The operands of a run before.
fn parsed(line: &str) -> Result<Operands> {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let wrong = |e: WrongOperand| Usage(format!("--first '{line}': {e}"));
    Ok(dd::parse(&words, messages::charset()).map_err(wrong)?)
}

/// Runs what is to be done before, without a word; nothing stays in the page cache.
pub fn before(site: &Site, lines: &[String]) -> Result<()> {
    for line in lines {
        if let Err(DdFailure) = copy(site, &parsed(line)?, &Arc::default(), &SilentReporter)? {
            usage!("--first '{line}': it failed");
        }
    }
    if lines.is_empty() { Ok(()) } else { site.unmount() }
}

/// Opens both ends and copies.
fn copy(
    site: &Site,
    operands: &Operands,
    tally: &Arc<Tally>,
    reporter: &dyn Reporter,
) -> Result<Result<(), DdFailure>> {
    if !site.is_here() && place::is_disk_and_file(operands) {
        usage!("device:@disk holds the files: copy them in two steps, through host:PATH");
    }
    let not_opened = |what: &str| {
        reporter.says(what);
        Ok(Err(DdFailure))
    };
    let mut source = match source(site, operands)? {
        Ok(source) => place::charged(site, source, operands),
        Err(what) => return not_opened(&what.to_string()),
    };
    let (mut sink, whole) = match sink(site, operands, reporter)? {
        Ok(opened) => opened,
        Err(what) => return not_opened(&what.to_string()),
    };
    if operands.iflags.contains(Flags::DIRECTORY) && operands.input.is_none() && !site.is_here() {
        return not_opened(
            &NotOpened::Flags { name: "standard input", errno: Errno::NOTDIR }.to_string(),
        );
    }
    let job =
        Job { operands, source: &mut *source, sink: &mut *sink, tally, reporter, failed: !whole };
    Ok(dd::run(job))
}

/// The path of this machine that an operand names, if it names one.
fn on_host(path: &OsStr) -> Option<&Path> {
    match named(path) {
        DdPath::Host(path) => Some(Path::new(path)),
        _ => None,
    }
}

/// What a path means there.
fn named_at<'a>(site: &Site, path: &'a OsStr) -> DdPath<'a> {
    if site.is_here() { DdPath::Host(path) } else { named(path) }
}

impl DdTarget for Site {
    type Error = anyhow::Error;

    fn fs(&self) -> Result<Arc<dyn FileSystem>> {
        Site::fs(self)
    }

    fn device(&self, name: &str) -> Result<Arc<dyn BlockDevice>> {
        Site::device(self, name)
    }

    fn host_source(&self, path: &OsStr, o: &Operands) -> Result<OpenResult<Src>> {
        Ok(host::input(Some(path), o.iflags).map(|end| Box::new(end) as Src))
    }

    fn host_sink(
        &self,
        path: &OsStr,
        o: &Operands,
        reporter: &dyn Reporter,
    ) -> Result<OpenResult<(Snk, bool)>> {
        Ok(host::open_output(path, o, &|text| reporter.says(text)).map(boxed))
    }

    fn record_cost(&self, of_device: bool) -> Duration {
        Site::record_cost(self, of_device)
    }

    fn new_node(&self) -> NewNode {
        NewNode {
            mode: 0o666,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            umask: umask(),
        }
    }
}

fn boxed((end, whole): (host::HostEnd, bool)) -> (Snk, bool) {
    (Box::new(end), whole)
}

fn source(site: &Site, o: &Operands) -> Result<OpenResult<Src>> {
    site.refuse_own_image(o.input.as_deref().and_then(on_host))?;
    match o.input.as_deref() {
        Some(path) => place::source(site, named_at(site, path), o),
        None => Ok(host::input(None, o.iflags).map(|end| Box::new(end) as Src)),
    }
}

/// The sink, and whether all went well with it.
fn sink(site: &Site, o: &Operands, reporter: &dyn Reporter) -> Result<OpenResult<(Snk, bool)>> {
    site.refuse_own_image(o.output.as_deref().and_then(on_host))?;
    match o.output.as_deref() {
        Some(path) => place::sink(site, named_at(site, path), o, reporter),
        None => Ok(host::output(o, &|text| reporter.says(text)).map(boxed)),
    }
}

/// The process's umask, which can only be seen by setting it.
fn umask() -> u16 {
    let mask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(mask);
    mask.bits() as u16
}
