//! `steadfast crash show`: the story of one state.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, anyhow};
use steadfast_crash::cuts::{State, contents_where};
use steadfast_crash::program::explore::{Exploration, Wrong};
use steadfast_crash::program::shrink::{self, Decisive};
use steadfast_crash::program::{Names, Run, file};
use steadfast_devices::filter::record::Event;

use super::cli::CrashShow;
use super::report::{bytes, since};
use super::run::{SHRINK_RECOVERIES, exploration};
use super::setup::{self, Setup};
use super::story::{TOLD, on_behalf, purpose, request, tell_calls, tell_writes, write_image};
use super::{lab, story};
use crate::{Outcome, Usage};

/// Makes a state again and tells of it; without a state, tells of the recording.
pub fn show(args: &CrashShow, out: &mut dyn Write) -> Result<Outcome> {
    if let (Some(variant), Some(cut)) = (&args.variant, args.cut) {
        return lab::show(args, variant, cut, out);
    }
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

/// What lies where: after the recovery of this state and, beside that, at the end of the run.
fn names(setup: &Setup, run: &Run, state: &State) -> Names {
    let end = contents_where(&run.bases, &run.recording, run.recording.last_cut(), |_| true);
    let mut names = setup.names(state.contents.clone());
    names.add(setup.names(end));
    names
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
            story::tell_tree(&tree, &base, copy, out)?;
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
