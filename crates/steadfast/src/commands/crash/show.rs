//! `steadfast crash show`: the story of one state.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use steadfast_crash::cuts::{State, contents_where};
use steadfast_crash::program::explore::{Exploration, Wrong};
use steadfast_crash::program::shrink::{self, Decisive};
use steadfast_crash::program::{Names, Run, file, shown};
use steadfast_devices::filter::record::{Action, Event};
use steadfast_vfs::FileType;

use super::cli::CrashShow;
use super::report::{bytes, since};
use super::run::{SHRINK_RECOVERIES, exploration};
use super::setup::{self, Setup};
use crate::{Outcome, Usage};

/// Files, writes and lines of output that are told at most.
const TOLD: usize = 40;

/// Makes a state again and tells of it; without a state, tells of the recording.
pub fn show(args: &CrashShow, out: &mut dyn Write) -> Result<Outcome> {
    let path = &args.recording;
    let bad = |e: String| Usage(format!("{}: {e}", path.display()));
    let run = file::load(path).map_err(bad)?;
    let setup = Setup::from_about(&run.about).map_err(bad)?;
    let judge = setup::judge(&args.judge)?;
    let Some(number) = args.cut else { return about(&setup, &run, out) };
    let recovers = setup.recovers(false)?;
    let exploration = exploration(&run, &*recovers, judge.as_ref()).map_err(bad)?;
    let state = exploration.state(number);
    let state = state.ok_or_else(|| bad(format!("it has no state {number}")))?;
    if let Some(image) = &args.image {
        write_image(&state, image)?;
    }
    tell_cut(&setup, &run, &state, out)?;
    tell_calls(&run, &state, args.calls, out)?;
    let names = names(&setup, &run, &state);
    tell_writes(&run, &names, &state, out)?;
    let wrong = tell_recovery(&exploration, &state, args.tree.as_deref(), out)?;
    if args.shrink && !wrong.is_empty() {
        let base = exploration.base().map_err(|e| anyhow!(e))?;
        let decisive = shrink::shrink(&exploration, &state, &base, SHRINK_RECOVERIES);
        tell_decisive(&run, &names, &decisive.map_err(|e| anyhow!(e))?, out)?;
    }
    Ok(if wrong.is_empty() { Outcome::Good } else { Outcome::Problem })
}

fn about(setup: &Setup, run: &Run, out: &mut dyn Write) -> Result<Outcome> {
    let totals = run.totals();
    let text = |key: &str| run.about.get(key).map_or("?", String::as_str);
    writeln!(out, "program   {}", text("program"))?;
    writeln!(out, "recorded  {}", setup.in_words())?;
    writeln!(
        out,
        "          {:.3} s, {} calls, {} lines; {} writes ({}), {} flushes",
        totals.time.as_secs_f64(),
        run.calls.len(),
        run.lines.len(),
        totals.writes,
        bytes(totals.bytes),
        totals.flushes
    )?;
    let (choice, _) = setup::choice_from(&run.about).map_err(|e| anyhow!(e))?;
    writeln!(
        out,
        "cut       {}, at most {} states a cut, seed {}; --cut N shows state N",
        choice.places, choice.bound.states, choice.seed
    )?;
    Ok(Outcome::Good)
}

fn tell_cut(setup: &Setup, run: &Run, state: &State, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "State {} of {}: the power went {:.6} s after the beginning.",
        state.number,
        setup.in_words(),
        since(run, state.cut.at)
    )?;
    let printed = run.printed_before(state.cut.tick);
    writeln!(out, "The program had printed {printed} of its {} lines.", run.lines.len())?;
    Ok(())
}

/// What happened last: calls and printed lines.
fn tell_calls(run: &Run, state: &State, most: usize, out: &mut dyn Write) -> Result<()> {
    let tick = state.cut.tick;
    let calls = run.calls.iter().filter(|call| call.started.tick < tick).map(|call| {
        let end = match call.returned.filter(|returned| returned.tick < tick) {
            Some(_) => "",
            None => " ... had not returned",
        };
        (call.started, format!("{call}{end}"))
    });
    let lines = run.lines[..run.printed_before(tick)].iter();
    let lines =
        lines.map(|l| (l.printed, format!("printed: {}", String::from_utf8_lossy(&l.text))));
    let mut all: Vec<_> = calls.chain(lines).collect();
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

/// What lies where: after the recovery of this state and, beside that, at the end of the run.
fn names(setup: &Setup, run: &Run, state: &State) -> Names {
    let end = contents_where(&run.bases, &run.recording, run.recording.last_cut(), |_| true);
    let mut names = setup.names(state.contents.clone());
    names.add(setup.names(end));
    names
}

/// What a request's bytes are for.
fn purpose(names: &Names, event: &Event) -> String {
    let Action::Write { offset, data, .. } = &event.action else { return String::new() };
    let data = data.unpack();
    let what = match event.device.0 {
        0 => names.name(*offset, &data),
        _ => names.journal(&data).join(", "),
    };
    if what.is_empty() { what } else { format!(": {what}") }
}

fn tell_writes(run: &Run, names: &Names, state: &State, out: &mut dyn Write) -> Result<()> {
    let writes = doubted(state);
    writeln!(
        out,
        "\nIn doubt: {} sectors of {} writes; {} sectors have survived.",
        state.in_doubt.len(),
        writes.len(),
        state.kept()
    )?;
    let events: BTreeMap<u64, &Event> =
        run.recording.events().iter().map(|event| (event.submitted.tick, event)).collect();
    for ((device, tick), (there, all)) in writes.iter().take(TOLD) {
        let Some(event) = events.get(tick) else { continue };
        let fate = match there {
            0 => "lost".to_owned(),
            n if n == all => "there".to_owned(),
            n => format!("{n} of {all} sectors there"),
        };
        let name = &run.recording.devices()[*device as usize].info.name;
        writeln!(
            out,
            "  {:>11.6} s  {fate:5}  {name}: {}{}{}",
            since(run, event.submitted.at),
            request(event),
            purpose(names, event),
            on_behalf(run, event)
        )?;
    }
    if writes.len() > TOLD {
        writeln!(out, "  and {} more", writes.len() - TOLD)?;
    }
    Ok(())
}

/// The call that a request was done for.
fn on_behalf(run: &Run, event: &Event) -> String {
    let number = usize::try_from(event.call).ok().and_then(|n| n.checked_sub(1));
    match number.and_then(|n| run.calls.get(n)) {
        Some(call) => format!("; for: {call}"),
        None => String::new(),
    }
}

fn request(event: &Event) -> String {
    match &event.action {
        Action::Write { offset, data, .. } => {
            format!("write of {} at {offset}", bytes(data.len() as u64))
        }
        Action::Discard { offset, len } => format!("discard of {} at {offset}", bytes(*len)),
        Action::Store { offset, data } => {
            format!("store of {} at {offset}", bytes(data.len() as u64))
        }
        Action::Persist { offset, len } => format!("persist of {} at {offset}", bytes(*len)),
        Action::Flush => "flush".into(),
        Action::Fence => "fence".into(),
    }
}

fn tell_recovery(
    exploration: &Exploration<'_>,
    state: &State,
    copy: Option<&Path>,
    out: &mut dyn Write,
) -> Result<Vec<Wrong>> {
    let base = exploration.base().map_err(|e| anyhow!(e))?;
    let recovered = exploration.recovers.recover(state.contents.clone());
    let mut wrong: Vec<Wrong> = recovered.damage.into_iter().map(Wrong::Damage).collect();
    match recovered.tree {
        Err(why) => wrong.push(Wrong::Refused(why)),
        Ok(tree) => {
            writeln!(out, "\nThe next boot finds {} files and folders:", tree.len())?;
            for (path, node) in tree.nodes().take(TOLD) {
                let what = match node.attr.kind {
                    FileType::Directory => "folder".into(),
                    FileType::Symlink => format!("link to {}", shown(&node.target)),
                    FileType::Regular => bytes(node.attr.size),
                    _ => "special file".into(),
                };
                let before = base.get(path).map(|old| old.contents == node.contents);
                let change = match before {
                    Some(true) => "",
                    Some(false) => "  (changed)",
                    None => "  (new)",
                };
                writeln!(out, "  {}  {what}{change}", shown(path))?;
            }
            if tree.len() > TOLD {
                writeln!(out, "  and {} more", tree.len() - TOLD)?;
            }
            for (path, _) in base.nodes().filter(|(path, _)| tree.get(path).is_none()).take(TOLD) {
                writeln!(out, "  {}  is gone", shown(path))?;
            }
            if let Some(folder) = copy {
                std::fs::create_dir(folder).with_context(|| folder.display().to_string())?;
                tree.write_to(folder)?;
            }
            wrong.extend(exploration.verdict(&tree, &base, state.cut).map_err(|e| anyhow!(e))?);
        }
    }
    writeln!(out)?;
    for one in &wrong {
        writeln!(out, "Wrong: {}", one.what())?;
        if let Wrong::Judge(_, output) = one
            && output.lines().count() > 1
        {
            output.lines().take(TOLD).try_for_each(|line| writeln!(out, "  | {line}"))?;
        }
    }
    if wrong.is_empty() {
        writeln!(out, "Nothing is wrong with it.")?;
    }
    Ok(wrong)
}

/// The writes that matter, and the first block of them.
fn tell_decisive(run: &Run, names: &Names, decisive: &Decisive, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\nShrunk: {decisive}")?;
    for ((device, tick), offsets) in decisive.writes().into_iter().take(TOLD) {
        let named = |e: &&Event| e.submitted.tick == tick && e.device.0 == device;
        let Some(event) = run.recording.events().iter().find(named) else { continue };
        let (first, info) = (offsets[0], &run.recording.devices()[device as usize].info);
        let fate = if decisive.lost { "lost " } else { "there" };
        writeln!(
            out,
            "  {:>11.6} s  {fate}  {}: {} sectors from byte {first} on, of the {}{}{}",
            since(run, event.submitted.at),
            info.name,
            offsets.len(),
            request(event),
            purpose(names, event),
            on_behalf(run, event),
        )?;
    }
    Ok(())
}

fn write_image(state: &State, path: &Path) -> Result<()> {
    let mut paths = vec![path.to_path_buf()];
    let mut journal = path.as_os_str().to_owned();
    journal.push(".journal");
    paths.push(PathBuf::from(journal));
    for (store, path) in state.contents.iter().zip(&paths) {
        store.export(path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
