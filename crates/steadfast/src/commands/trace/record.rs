//! `steadfast trace record`: the folder is mounted over itself, and what passes through is noted.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use steadfast_fuse::{FuseMount, MountError, Options, Serving};
use steadfast_trace::TraceError;
use steadfast_trace::format::{FORMAT, NameForm, TraceHeader, TraceOrigin, Trip, VERSION};
use steadfast_trace::record::{RecordedFs, RecordingSummary};
use steadfast_trace::replay::{TraceFile, TraceSource};
use steadfast_vfs::{FileSystem, HostFs};

use super::cli::TraceRecord;
use super::elsewhere::OutsideFiles;
use crate::commands::crash::stops;
use crate::commands::lab::outputs::Output;
use crate::commands::whole_file::stream::StreamFile;
use crate::{CommandEnd, Usage, terminal};

/// How the table of mounts calls it.
pub const RECORDING: &str = "trace-record";
/// How often the program is looked after.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a program is waited for that was asked to end.
const GRACE: Duration = Duration::from_secs(10);
/// How long a program has to end by a signal that came to both, before it is asked by us.
const MOMENT: Duration = Duration::from_millis(200);
/// Requests that are answered at the same time.
const THREADS: usize = 4;
/// Of the files elsewhere so many are named.
const NAMED: usize = 5;

/// Records, and ends as the program does.
pub fn run(args: &TraceRecord) -> Result<CommandEnd> {
    let folder = folder_of(args)?;
    Output::tried("-o", &args.output)?;
    is_replaceable(&args.output)?;
    let (name, arguments) = args.program.split_first().context("no program")?;
    let program = found(name)?;
    // Found before the folder is covered: what is written there passes through no mount.
    let written = StreamFile::at(&args.output).map_err(|e| refused(&args.output, e))?;
    let host = HostFs::open(&folder).map_err(|e| refused(&folder, e))?;
    let recorded = RecordedFs::new(Arc::new(host), Box::new(written), header(args));
    let recorded = Arc::new(recorded.map_err(|e| refused(&folder, e))?);
    let stops = stops::on_signals("stopping the program; what was recorded is kept")?;
    let served = Arc::clone(&recorded) as Arc<dyn FileSystem>;
    let mounted = FuseMount::new(served, &folder, &options(args));
    // Status 1 is for what was found: this is not.
    let mounted = mounted.map_err(|e| {
        Usage(format!("nothing was recorded: {}", terminal::with_causes(&e.into())))
    })?;
    let mut serving = mounted.serve_beside()?;
    let probed = recorded.probe(&folder).map_err(anyhow::Error::from);
    let ran = probed.and_then(|trip| {
        recorded.begin(Some(trip.clone()));
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(&folder);
        let child = command.spawn().map_err(|e| Usage(format!("{name}: {e}")))?;
        let elsewhere = OutsideFiles::look(child.id(), &folder);
        let ended = wait(child, (&recorded, &args.output), &stops);
        Ok((trip, ended, elsewhere.end()))
    });
    let at = recorded.time();
    let left = unmount(&mut serving, &stops);
    let (trip, (status, interrupted), elsewhere) = ran?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    let whole = recorded.end(at, code, interrupted);
    left?;
    stops::end_with_signals();
    // A program's own failure counts more than ours.
    let end = match code.and_then(|code| u8::try_from(code).ok()) {
        Some(0) if whole.is_err() => CommandEnd::Status(2),
        Some(0) => CommandEnd::Good,
        Some(code) => CommandEnd::Status(code),
        None => CommandEnd::Problem,
    };
    match whole {
        Ok(whole) => report(args, &whole, &trip, &elsewhere),
        Err(e) => terminal::error(&unwritten(&args.output, &e, code)),
    }
    Ok(end)
}

/// The program has ended, and not all that it did is in the trace.
fn unwritten(output: &Path, e: &TraceError, code: Option<i32>) -> anyhow::Error {
    let (output, code) = (output.display(), code.unwrap_or(1));
    anyhow!(
        "cannot write {output}: {e}; the recording ends there, and the program has run to its end \
         (status {code}): make room, or name a file elsewhere (-o), and record it again; \
         `steadfast trace show {output}` shows what was written before"
    )
}

/// Whether a recording's mount is there, and its process is gone: the kernel may go on telling the
/// attributes of the folder, and asks for this.
pub fn is_killed(folder: &Path) -> bool {
    rustix::fs::statfs(folder).err() == Some(Errno::NOTCONN)
}

fn folder_of(args: &TraceRecord) -> Result<PathBuf, Usage> {
    let given = args.folder.as_deref().unwrap_or(Path::new("."));
    if is_killed(given) {
        usage!(
            "{0}: an earlier recording was killed and has left its mount; the files below are \
             intact: take the mount away (steadfast umount {0})",
            given.display()
        );
    }
    let folder = given.canonicalize().map_err(|e| Usage(format!("{}: {e}", given.display())))?;
    if !folder.is_dir() {
        usage!("{}: is no folder", given.display());
    }
    if folder.parent().is_none() {
        usage!("/: everything is below it; name a folder (--folder)");
    }
    Ok(folder)
}

/// Only a trace, or nothing, is lost under the name of a new one.
fn is_replaceable(output: &Path) -> Result<(), Usage> {
    let holds_something = output.metadata().is_ok_and(|file| file.is_file() && file.len() > 0);
    let there = TraceFile { path: output.to_owned(), partial: true };
    match there.read() {
        Err(TraceError::NotATrace(_) | TraceError::File(_)) if holds_something => {
            usage!("-o {}: holds something that is no trace; name another file", output.display())
        }
        _ => Ok(()),
    }
}

fn refused(folder: &Path, e: impl std::fmt::Display) -> Usage {
    Usage(format!("{}: {e}", folder.display()))
}

/// A program named by a relative path is looked for where the caller is.
fn found(name: &str) -> Result<PathBuf, Usage> {
    let path = Path::new(name);
    match name.contains('/') {
        // Not where a link leads: a program may go by its name.
        true => path
            .metadata()
            .and_then(|_| std::path::absolute(path))
            .map_err(|e| Usage(format!("{name}: {e}"))),
        false => Ok(path.to_owned()),
    }
}

fn header(args: &TraceRecord) -> TraceHeader {
    let mut not_seen = vec![
        "sync(2) and syncfs(2), which do not reach a mount of this kind".to_owned(),
        "RWF_SYNC and RWF_DSYNC of single writes".to_owned(),
        "what was done outside of the folder".to_owned(),
    ];
    if !args.direct {
        not_seen.push("reads that the kernel answered from its page cache (--direct)".to_owned());
    }
    TraceHeader {
        format: FORMAT.to_owned(),
        version: VERSION,
        source: TraceOrigin::Record,
        program: program(args),
        trip: None,
        direct: args.direct,
        names: if args.hash_names { NameForm::Hashed } else { NameForm::Kept },
        not_seen,
    }
}

/// What was run. Its arguments are names, too.
fn program(args: &TraceRecord) -> Vec<String> {
    match args.hash_names {
        true => args.program.iter().take(1).cloned().collect(),
        false => args.program.clone(),
    }
}

fn options(args: &TraceRecord) -> Options {
    Options {
        source: RECORDING.to_owned(),
        // Servers run under users of their own; the folder's permissions hold for them.
        allow_other: rustix::process::geteuid().is_root(),
        uncached: args.direct,
        threads: THREADS,
        ..Options::default()
    }
}

/// Waits for the program's end. A signal to us is handed on; from a terminal it has it already.
fn wait(
    mut child: Child,
    (recorded, output): (&RecordedFs, &Path),
    stops: &AtomicUsize,
) -> (ExitStatus, bool) {
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (mut asked, mut since, mut is_said, mut is_handed_on) = (0, Instant::now(), false, true);
    loop {
        if !is_said && recorded.has_failed() {
            is_said = true;
            terminal::note(&format!(
                "note: {} cannot be written any more; the program goes on, and nothing more of it \
                 is recorded (Ctrl-C ends it)",
                output.display()
            ));
        }
        if let Ok(Some(status)) = child.try_wait() {
            // From a terminal the program has had the signal, too, and may have been faster.
            return (status, stops.load(Ordering::Relaxed) > 0);
        }
        let now = stops.load(Ordering::Relaxed);
        if now > asked {
            (asked, since, is_handed_on) = (now, Instant::now(), false);
        }
        // From a terminal it has had its signal, and is to end by that.
        if !is_handed_on && (asked > 1 || since.elapsed() > MOMENT) {
            is_handed_on = true;
            if let Some(number) = number {
                // OK to ignore: it has ended meanwhile.
                let _ = kill_process(number, Signal::TERM);
            }
        }
        if asked > 0 && since.elapsed() > GRACE {
            // OK to ignore, as before.
            let _ = child.kill();
        }
        std::thread::sleep(PAUSE);
    }
}

/// What the program has left running is served until it ends, or until somebody asks to stop: it
/// would lose its files.
fn unmount(serving: &mut Serving, stops: &AtomicUsize) -> Result<()> {
    let (mut is_said, asked) = (false, stops.load(Ordering::Relaxed));
    loop {
        match serving.unmount() {
            Ok(_) => return Ok(()),
            Err(e @ (MountError::Busy { .. } | MountError::Held { .. })) => {
                if stops.load(Ordering::Relaxed) > asked {
                    terminal::note(&format!("note: {e}; what still works there loses its files"));
                    // OK to ignore: what still uses it is served as long as this process lives.
                    let _ = serving.unmount_lazily();
                    return Ok(());
                }
                if !is_said {
                    is_said = true;
                    terminal::note(
                        "note: something that the program has started still works in the folder, \
                         and is recorded until it ends (Ctrl-C: no longer)",
                    );
                }
            }
            Err(e) => return Err(e.into()),
        }
    }
}

fn report(args: &TraceRecord, whole: &RecordingSummary, trip: &Trip, elsewhere: &[PathBuf]) {
    let us = |ns: u64| ns as f64 / 1e3;
    let seconds = whole.at as f64 / 1e9;
    let calls = terminal::counted(whole.calls, "call");
    terminal::note(&format!(
        "recorded {calls} in {seconds:.3} s to {}; a trip through the mount took {:.1} us ({:.1} \
         to {:.1}, {} calls), which is taken off",
        args.output.display(),
        us(trip.median_ns),
        us(trip.least_ns),
        us(trip.most_ns),
        trip.calls
    ));
    if !elsewhere.is_empty() {
        let named = elsewhere.iter().take(NAMED).map(|path| path.display().to_string());
        let more = match elsewhere.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        terminal::note(&format!(
            "note: it also had files open for writing outside of the folder, where nothing is \
             recorded: {}{more}",
            named.collect::<Vec<_>>().join(", ")
        ));
    }
}
