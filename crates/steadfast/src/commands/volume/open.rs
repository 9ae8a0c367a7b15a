//! Volumes that a command has open.
//!
//! Every volume that is opened for use is known here until the process ends, and is closed then:
//! when the command is done, after an error, and on a signal. Only a process that is killed closes
//! nothing; the next assembly copies what was in doubt.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use anyhow::{Context, Result};
use signal_hook::iterator::Signals;
use steadfast_block::BlockDevice;
use steadfast_setup::path::{self, MemberDevices, OpenPath};
use steadfast_setup::{Blocks, SetupError};
use steadfast_volume::{AssembleOptions, AssemblyReport, Event, Mirror, Volume};

use super::cli::Members;
use crate::setup_error::to_anyhow;
use crate::{Usage, stop_signals, terminal};

/// Mirrors that are open, in the order in which they were opened.
static OPEN: Mutex<Vec<Mirror>> = Mutex::new(Vec::new());
/// Somebody else looks after signals: a mount.
static SERVED: AtomicBool = AtomicBool::new(false);

/// The signal that asked the command to end; 0: none.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);

/// Prints the notes of what was opened by a path, and has its volumes closed when the process ends;
/// who uses them hears what fails.
pub fn looked_after(
    opened: Result<OpenPath, SetupError>,
    read_only: bool,
) -> Result<Arc<dyn BlockDevice>> {
    let OpenPath { device, assembled, notes } = opened.map_err(|error| {
        let of_command = error.to_string().contains("--degraded");
        let error = to_anyhow(error);
        match of_command {
            true => error.context("--degraded is an option of 'steadfast volume resync'"),
            false => error,
        }
    })?;
    print_notes(&notes);
    assembled.iter().filter(|_| !read_only).try_for_each(look_after)?;
    Ok(device)
}

/// The same of a described stack, in which devices may be this machine's.
pub fn look_after_stack(blocks: &Blocks) -> Result<()> {
    blocks.opened.iter().flat_map(|open| &open.assembled).try_for_each(look_after)?;
    look_after_mirrors(blocks.volumes.mirrors())
}

fn look_after(found: &AssemblyReport) -> Result<()> {
    look_after_mirrors(found.volumes.iter().filter_map(|v| v.mirror.as_ref()))
}

fn look_after_mirrors<'m>(mirrors: impl Iterator<Item = &'m Mirror> + Clone) -> Result<()> {
    for mirror in mirrors.clone() {
        let name = mirror.name().to_owned();
        mirror.listen(Arc::new(move |event| report_event(&name, event)));
    }
    close_mirrors_at_the_end(mirrors.cloned())
}

fn print_notes(notes: &[String]) {
    notes.iter().for_each(|note| terminal::note(&format!("note: {note}")));
}

/// Opens all, none of them twice.
pub fn open_all(paths: &[PathBuf], read_only: bool) -> Result<Vec<Arc<dyn BlockDevice>>> {
    let opened = path::open_all(paths, read_only).map_err(to_anyhow)?;
    opened.into_iter().map(|open| looked_after(Ok(open), read_only)).collect()
}

/// Opens the members, and assembles what can be.
pub fn open_members(members: &Members, how: &AssembleOptions) -> Result<MemberDevices> {
    let open = path::open_members(&members.members, how).map_err(to_anyhow)?;
    print_notes(&open.notes);
    open.inner.iter().filter(|_| !how.read_only).try_for_each(look_after)?;
    Ok(open)
}

/// Assembles what the members belong to. One volume must come of it; with `rejoin` blank memory is
/// a leg again.
pub fn assembled(members: &Members, rejoin: bool) -> Result<(AssemblyReport, Volume)> {
    let Members { degraded, keep, .. } = *members;
    let how = AssembleOptions { degraded, keep, ..AssembleOptions::default() };
    let (open, volume) = path::assembled(&members.members, &how, rejoin).map_err(to_anyhow)?;
    print_notes(&open.notes);
    open.inner.iter().try_for_each(look_after)?;
    close_at_the_end(&open.found)?;
    Ok((open.found, volume))
}

/// The volume that the command is for.
pub fn chosen(members: &Members, found: &AssemblyReport, outer: Volume) -> Result<Volume> {
    let Some(name) = &members.volume else { return Ok(outer) };
    let named: Vec<&Volume> = found.volumes.iter().filter(|v| v.name == *name).collect();
    match named[..] {
        [volume] => Ok(volume.clone()),
        _ => {
            let names: Vec<&str> = found.volumes.iter().map(|v| v.name.as_str()).collect();
            let what = match named.len() {
                0 => format!("--volume {name}: there is none of this name among"),
                _ => format!("--volume {name}: there are several of this name among"),
            };
            Err(Usage(format!("{what} {}", names.join(", "))).into())
        }
    }
}

/// A leg has failed while the volume is in use: at once, in a mount's log or to the terminal.
fn report_event(volume: &str, event: &Event) {
    let text = format!("volume '{volume}': {event}");
    match SERVED.load(Ordering::Acquire) {
        true => tracing::error!("{text}"),
        false => terminal::note(&text),
    }
}

/// Refuses a member of a volume where an image is asked for.
pub fn refuse_member(device: &Arc<dyn BlockDevice>) -> Result<()> {
    path::refuse_member(device).map_err(to_anyhow)
}

/// Leaves it to the caller to close volumes when a signal comes.
pub fn signals_are_looked_after() {
    SERVED.store(true, Ordering::Release);
}

/// Has these closed when the process ends.
pub fn close_at_the_end(found: &AssemblyReport) -> Result<()> {
    close_mirrors_at_the_end(found.volumes.iter().filter_map(|v| v.mirror.clone()))
}

/// Has these closed when the process ends.
fn close_mirrors_at_the_end(mirrors: impl Iterator<Item = Mirror>) -> Result<()> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).extend(mirrors);
    static ONCE: Once = Once::new();
    let mut begun = Ok(());
    if !SERVED.load(Ordering::Acquire) {
        ONCE.call_once(|| begun = close_on_signals());
    }
    begun
}

fn close_on_signals() -> Result<()> {
    let mut signals = Signals::new(stop_signals::numbers()).context("signals")?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            ENDED_BY.store(signal, Ordering::Release);
            if let Err(error) = close_all() {
                terminal::error(&error);
            }
            end_if_signalled();
        }
    })?;
    Ok(())
}

/// Ends the process if a signal has asked for it: what the command did last was cut short.
pub fn end_if_signalled() {
    let signal = ENDED_BY.load(Ordering::Acquire);
    if signal != 0 {
        // As a shell reports a process that a signal has ended.
        std::process::exit(128 + signal);
    }
}

/// They were closed, and what they are made of is to be used again.
pub fn forget() {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Closes all volumes that are open, the last one first: it may be made of those before it. Twice
/// does no harm.
///
/// # Errors
/// The first one; all are closed even so.
pub fn close_all() -> Result<()> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut outcome = Ok(());
    while let Some(mirror) = open.pop() {
        let name = mirror.name().to_owned();
        let closed = mirror.close().with_context(|| format!("closing the volume '{name}'"));
        outcome = outcome.and(closed);
    }
    outcome
}
