//! Volumes by the names of their members: for the commands on volumes, and `volume:MEMBER,MEMBER`
//! in place of an image.
//!
//! Every volume that is opened for use is known here until the process ends, and is closed then:
//! when the command is done, after an error, and on a signal. Only a process that is killed closes
//! nothing; the next assembly copies what was in doubt.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use signal_hook::iterator::Signals;
use steadfast_block::BlockDevice;
use steadfast_volume::member::{End, Labelled, has_zero_ends, read_label};
use steadfast_volume::{
    AssembleOptions, Assembled, Event, LegState, LegStatus, Mirror, NewLeg, Throttle, Volume,
    VolumeError, assemble,
};

use super::cli::Members;
use crate::commands::image;
use crate::{Usage, stop_signals, terminal};

/// What stands before the members where an image is asked for.
const PREFIX: &str = "volume:";
/// How often regions that nobody writes to become clean.
const UPKEEP: Duration = Duration::from_secs(5);

/// Mirrors that are open, in the order in which they were opened.
static OPEN: Mutex<Vec<Mirror>> = Mutex::new(Vec::new());
/// Somebody else looks after signals: a mount.
static SERVED: AtomicBool = AtomicBool::new(false);

/// The signal that asked the command to end; 0: none.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);

/// The members that a path names, if it names a volume.
pub fn named(path: &Path) -> Option<Vec<PathBuf>> {
    let members = path.to_str()?.strip_prefix(PREFIX)?;
    Some(members.split(',').map(PathBuf::from).collect())
}

/// Refuses a name of a volume that leaves a member's name out.
fn refuse_empty(members: &[PathBuf]) -> Result<()> {
    match members.iter().all(|member| !member.as_os_str().is_empty()) {
        true => Ok(()),
        false => {
            let given: Vec<_> = members.iter().map(|m| m.display().to_string()).collect();
            let given = given.join(",");
            let what = format!("{PREFIX}{given}: a member's name is empty; it is {PREFIX}A,B");
            Err(Usage(what).into())
        }
    }
}

/// The same name from any folder; `None` if it names no volume.
pub fn absolute(path: &Path) -> Option<String> {
    let whole = |member: PathBuf| {
        member.canonicalize().or_else(|_| std::path::absolute(&member)).unwrap_or(member)
    };
    let members = named(path)?.into_iter().map(whole);
    let members: Vec<String> = members.map(|member| member.display().to_string()).collect();
    Some(format!("{PREFIX}{}", members.join(",")))
}

/// Opens all, none of them twice.
pub fn open_all(paths: &[PathBuf], read_only: bool) -> Result<Vec<Arc<dyn BlockDevice>>> {
    // Also beside the volume that it is a member of.
    let inner: Vec<PathBuf> = paths.iter().filter_map(|path| named(path)).flatten().collect();
    refuse_twice(paths.iter().chain(&inner).map(PathBuf::as_path))?;
    let open = |path: &PathBuf| match named(path) {
        Some(members) => open(members, read_only),
        None => image::open_file(path, read_only),
    };
    paths.iter().map(open).collect()
}

/// Refuses the same file or device under two names.
pub fn refuse_twice<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<()> {
    let mut seen: BTreeMap<(u64, u64, u64), &Path> = BTreeMap::new();
    for path in paths {
        let Ok(meta) = path.metadata() else { continue };
        // A device has one number under all its names, and many nodes.
        let key = if meta.rdev() != 0 { (0, 0, meta.rdev()) } else { (meta.dev(), meta.ino(), 0) };
        if let Some(first) = seen.insert(key, path) {
            let (first, path) = (first.display(), path.display());
            return Err(Usage(format!("{path}: is given twice (also as {first})")).into());
        }
    }
    Ok(())
}

/// Assembles what the members belong to. One volume must come of it.
pub fn assembled(members: &Members, read_only: bool) -> Result<(Assembled, Volume)> {
    assembled_with(members, read_only, |_| Ok(()))
}

/// The same; blank memory is a leg again.
pub fn joined(members: &Members, read_only: bool) -> Result<(Assembled, Volume)> {
    assembled_with(members, read_only, |found| rejoin(found, read_only))
}

fn assembled_with(
    members: &Members,
    read_only: bool,
    work: impl FnOnce(&mut Assembled) -> Result<()>,
) -> Result<(Assembled, Volume)> {
    let devices = open_all(&members.members, read_only)?;
    let options = AssembleOptions {
        degraded: members.degraded,
        keep: members.keep,
        read_only,
        ..AssembleOptions::default()
    };
    let mut found = assemble(&devices, &options);
    if !found.problems.is_empty() {
        // The first error says why; there may be several members of one volume among them.
        let (_, error) = found.problems.swap_remove(0);
        return Err(error.into());
    }
    work(&mut found)?;
    if let Some(blank) = found.blank.first() {
        let name = blank.info().name;
        return Err(Usage(format!(
            "{name}: is no member of a volume: it has no label; leave it out, or make it a leg by \
             steadfast volume add or replace (only what is blank takes the place of a volatile leg \
             by itself)"
        ))
        .into());
    }
    let outer: Vec<Volume> = found.outer().cloned().collect();
    match <[Volume; 1]>::try_from(outer) {
        Ok([volume]) => {
            if !read_only {
                close_at_the_end(&found)?;
            }
            Ok((found, volume))
        }
        Err(several) => {
            let names: Vec<&str> = several.iter().map(|v| v.name.as_str()).collect();
            let what = format!("these are members of several volumes: {}", names.join(", "));
            Err(Usage(what).into())
        }
    }
}

/// Memory is blank after a boot: a device that begins and ends with zeros takes the place of a
/// volatile leg that is not there. Who only reads leaves it out.
fn rejoin(found: &mut Assembled, read_only: bool) -> Result<()> {
    let missing = |leg: &LegStatus| leg.volatile && leg.state == LegState::Unavailable;
    let mirrors: Vec<Mirror> = found.volumes.iter().filter_map(|v| v.mirror.clone()).collect();
    for mirror in mirrors {
        for leg in mirror.status().legs.into_iter().filter(missing) {
            let Some(at) = found.blank.iter().position(has_zero_ends) else { return Ok(()) };
            let device = found.blank.remove(at);
            if !read_only {
                let (new, name) = (device.info().name, mirror.name());
                mirror
                    .replace(leg.slot, Some(&NewLeg { volatile: true, ..NewLeg::new(device) }))?;
                let slot = leg.slot;
                terminal::note(&format!("note: volume '{name}': {new} is leg {slot} again, blank"));
            }
        }
    }
    Ok(())
}

/// The volume that the command is for.
pub fn chosen(members: &Members, found: &Assembled, outer: Volume) -> Result<Volume> {
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

/// Opens the volume of these members, to be used as an image is.
pub fn open(members: Vec<PathBuf>, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
    refuse_empty(&members)?;
    let members = Members { members, degraded: false, keep: None, volume: None, host: None };
    let (found, volume) = joined(&members, read_only).map_err(|error| {
        let text = error.to_string();
        match text.contains("--degraded") {
            true => error.context("--degraded is an option of 'steadfast volume resync'"),
            false => error,
        }
    })?;
    for mirror in found.volumes.iter().filter_map(|v| v.mirror.as_ref()) {
        let status = mirror.status();
        for leg in status.legs.iter().filter(|leg| !leg.volatile && leg.state != LegState::Okay) {
            let (volume, state, name) = (&status.name, leg.state.name(), &leg.name);
            terminal::note(&format!("note: volume '{volume}': {name}: {state}"));
        }
        if !read_only {
            let name = status.name.clone();
            mirror.listen(Arc::new(move |event| report_event(&name, event)));
            mirror.keep(UPKEEP, Throttle::default());
        }
    }
    Ok(volume.device)
}

/// A leg has failed while the volume is in use: at once, in a mount's log or to the terminal.
fn report_event(volume: &str, event: &Event) {
    let text = format!("volume '{volume}': {event}");
    match SERVED.load(Ordering::Acquire) {
        true => tracing::error!("{text}"),
        false => terminal::note(&text),
    }
}

/// Refuses a member of a volume where an image is asked for. What it holds is the volume's, and who
/// writes to it alone makes the legs of a mirror differ.
///
/// # Errors
/// Says which volume it is. A device whose start belongs to somebody else by now is no member.
pub fn refuse_member(device: &Arc<dyn BlockDevice>) -> Result<()> {
    match read_label(device) {
        Ok(Some(found)) if found.overwritten != Some(End::Start) => Err(is_member(&found).into()),
        // Whoever reads it reports the error.
        Ok(_) | Err(VolumeError::Io(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_member(found: &Labelled) -> Usage {
    let (name, label) = (found.name(), &found.label);
    let others: Vec<&str> = label.members.iter().map(|m| m.name.as_str()).collect();
    let others: Vec<&str> = others.into_iter().filter(|name| !name.is_empty()).collect();
    Usage(format!(
        "{name}: is member {} of the {} '{}' ({}): name the volume by its members, \
         {PREFIX}MEMBER,MEMBER (they were last seen as {})",
        label.slot,
        label.kind.name(),
        label.name,
        label.volume,
        others.join(", "),
    ))
}

/// Leaves it to the caller to close volumes when a signal comes.
pub fn signals_are_looked_after() {
    SERVED.store(true, Ordering::Release);
}

/// Has these closed when the process ends.
pub fn close_at_the_end(found: &Assembled) -> Result<()> {
    let mirrors = found.volumes.iter().filter_map(|v| v.mirror.clone());
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
