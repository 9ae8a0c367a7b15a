//! Describes one state: what was called last, what was in doubt, what the next boot
//! finds, which writes matter.

use std::collections::BTreeMap;
use std::io::{self, Write};

use steadfast_devices::filter::record::{Action, Event};
use steadfast_runtime::Nanos;
use steadfast_vfs::FileType;

use super::{BEGIN, CUT, END, Names, Origin, ProgramRun, Tree, shown};
use crate::explore::Decisive;
use crate::states::State;

/// Files, writes and lines of output that are printed at most.
pub const PRINTED_MAX: usize = 40;

/// What happened last: calls and printed lines.
///
/// # Errors
/// Of `out`.
pub fn print_calls(
    run: &ProgramRun,
    state: &State,
    most: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let tick = state.cut.tick;
    let calls = run.calls.iter().enumerate();
    let calls = calls.filter(|(_, call)| call.started.tick < tick).map(|(place, call)| {
        let whose = match call.origin {
            Origin::Program => "",
            Origin::PartOf(_) => " (a part of the call)",
            Origin::Kernel => " (by the kernel, of a memory map)",
        };
        let end = match call.returned.filter(|returned| returned.tick < tick) {
            Some(_) => "",
            None => " ... had not returned",
        };
        (call.started, format!("{call}{whose}{end}{}", made_at(run, place)))
    });
    let lines = run.lines[..run.printed_before(tick)].iter();
    let lines =
        lines.map(|l| (l.printed, format!("{}: {}", l.how(), String::from_utf8_lossy(&l.text))));
    let named = run.recording.notes_before(tick).iter().filter_map(|note| {
        let what = match note.label {
            CUT => "asked for a cut here",
            BEGIN => "a part begins that is to be explored",
            END => "the part ends",
            _ => return None,
        };
        Some((note.moment, what.to_owned()))
    });
    let mut all: Vec<_> = calls.chain(lines).chain(named).collect();
    all.sort_by_key(|(moment, _)| moment.tick);
    writeln!(out, "\nThe last that happened before:")?;
    for (moment, what) in &all[all.len().saturating_sub(most)..] {
        writeln!(out, "  {:>11.6} s  {what}", since(run, moment.at))?;
    }
    if all.is_empty() {
        writeln!(out, "  nothing")?;
    }
    Ok(())
}

/// Where in the program a call was made, behind the call; nothing where it is not known.
pub fn made_at(run: &ProgramRun, call: usize) -> String {
    let place = run.stacks.place(call);
    place.map(|(place, _)| format!(", at {}", place.seen_from(None))).unwrap_or_default()
}

/// Requests in doubt by device and tick, with how many of their units are there.
fn doubted(state: &State) -> BTreeMap<(u32, u64), (usize, usize)> {
    let mut writes: BTreeMap<(u32, u64), (usize, usize)> = BTreeMap::new();
    for (unit, kept) in state.in_doubt.iter().zip(&state.kept) {
        let entry = writes.entry((unit.device, unit.submitted)).or_default();
        entry.0 += usize::from(*kept);
        entry.1 += 1;
    }
    writes
}

/// What a request's bytes are for.
pub fn purpose(names: &Names, event: &Event) -> String {
    let Action::Write { offset, data, .. } = &event.action else { return String::new() };
    let data = data.unpack();
    let what = names.on_device(event.device.0, *offset, &data);
    if what.is_empty() { what } else { format!(": {what}") }
}

/// The writes that the cut left in doubt.
///
/// # Errors
/// Of `out`.
pub fn print_writes(
    run: &ProgramRun,
    names: &Names,
    state: &State,
    out: &mut dyn Write,
) -> io::Result<()> {
    let writes = doubted(state);
    if writes.is_empty() {
        return writeln!(out, "\nIn doubt: nothing. What was sent to the disk is on it.");
    }
    writeln!(
        out,
        "\nIn doubt: {} of {}; {} of them there.",
        counted(state.in_doubt.len() as u64, "sector"),
        counted(writes.len() as u64, "write"),
        state.kept()
    )?;
    let events: BTreeMap<u64, &Event> =
        run.recording.events().iter().map(|event| (event.submitted.tick, event)).collect();
    for ((_, tick), (there, all)) in writes.iter().take(PRINTED_MAX) {
        let Some(event) = events.get(tick) else { continue };
        let fate = match there {
            0 => "lost".to_owned(),
            n if n == all => "there".to_owned(),
            n => format!("{n} of {all} sectors there"),
        };
        print_write(run, names, event, (&fate, ""), out)?;
    }
    if writes.len() > PRINTED_MAX {
        writeln!(out, "  and {} more", writes.len() - PRINTED_MAX)?;
    }
    Ok(())
}

/// One write: what became of it, or of a part of it.
fn print_write(
    run: &ProgramRun,
    names: &Names,
    event: &Event,
    (fate, part): (&str, &str),
    out: &mut dyn Write,
) -> io::Result<()> {
    let name = &run.recording.devices()[event.device.0 as usize].info.name;
    writeln!(
        out,
        "  {:>11.6} s  {fate:5}  {name}: {part}{}{}{}",
        since(run, event.submitted.at),
        request(event),
        purpose(names, event),
        on_behalf(run, event)
    )
}

/// The call that a request was done for.
fn on_behalf(run: &ProgramRun, event: &Event) -> String {
    let number = usize::try_from(event.call).ok().and_then(|n| n.checked_sub(1));
    match number.and_then(|n| run.calls.get(n)) {
        Some(call) => format!("; for: {call}"),
        None => String::new(),
    }
}

/// A request in words.
pub fn request(event: &Event) -> String {
    let (offset, len, _) = event.action.range();
    let range = |what: &str| format!("{what}{} at {offset}", bytes(len));
    match &event.action {
        Action::Write { .. } => range(""),
        Action::Discard { .. } => range("discard of "),
        Action::Store { .. } => range("store of "),
        Action::Persist { .. } => range("persist of "),
        Action::Flush => "flush".into(),
        Action::Fence => "fence".into(),
    }
}

/// The files that the next boot finds, those first that are not as they were before.
///
/// # Errors
/// Of `out`.
pub fn print_tree(tree: &Tree, base: &Tree, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nThe next boot finds:")?;
    let gone = base.nodes().filter(|(path, _)| tree.get(path).is_none());
    let gone: Vec<String> = gone.map(|(path, _)| format!("{}  is gone", shown(path))).collect();
    let (mut changed, mut same) = (Vec::new(), Vec::new());
    for (path, node) in tree.nodes() {
        let what = match node.attr.kind {
            FileType::Directory => "folder".into(),
            FileType::Symlink => format!("link to {}", shown(&node.target)),
            FileType::Regular => bytes(node.attr.size),
            _ => "special file".into(),
        };
        let line = format!("{}  {what}", shown(path));
        match base
            .get(path)
            .map(|old| old.contents() == node.contents() && old.target == node.target)
        {
            Some(true) => same.push(line),
            Some(false) => changed.push(format!("{line}  (changed)")),
            None => changed.push(format!("{line}  (new)")),
        }
    }
    // What happened first: the rest may be a large tree.
    let lines = gone.len() + changed.len() + same.len();
    let first = gone.iter().chain(&changed).chain(&same).take(PRINTED_MAX);
    first.into_iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    if lines > PRINTED_MAX {
        writeln!(out, "  and {} more", lines - PRINTED_MAX)?;
    }
    Ok(())
}

/// The writes that matter, and the first block of them.
///
/// # Errors
/// Of `out`.
pub fn print_decisive(
    run: &ProgramRun,
    names: &Names,
    decisive: &Decisive,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "\nShrunk: {decisive}")?;
    for ((device, tick), offsets) in decisive.writes().into_iter().take(PRINTED_MAX) {
        let named = |e: &&Event| e.submitted.tick == tick && e.device.0 == device;
        let Some(event) = run.recording.events().iter().find(named) else { continue };
        let fate = if decisive.lost { "lost" } else { "there" };
        let sectors = counted(offsets.len() as u64, "sector");
        let part = format!("{sectors} from byte {} on, of ", offsets[0]);
        print_write(run, names, event, (fate, &part), out)?;
    }
    Ok(())
}

/// A moment of the run, from its beginning, in seconds.
pub fn since(run: &ProgramRun, at: Nanos) -> f64 {
    let recording = &run.recording;
    (at - recording.time_of(recording.first_crash_point())).as_secs_f64()
}

/// A number of bytes.
pub fn bytes(n: u64) -> String {
    match n {
        0..10_240 => format!("{n} bytes"),
        10_240..10_485_760 => format!("{} KiB", n >> 10),
        _ => format!("{} MiB", n >> 20),
    }
}

/// One thing, or several.
pub fn counted(n: u64, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}
