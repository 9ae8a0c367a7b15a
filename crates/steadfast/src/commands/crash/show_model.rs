//! `steadfast crash show --model`: one state of a model of file systems.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::{Result, anyhow};
use steadfast_crash::persistence::Model;
use steadfast_crash::persistence::state::{CallFate, ModelState};
use steadfast_crash::program::describe::{self, made_at, since};
use steadfast_crash::program::{Judges, ProgramRun, Tree};

use super::cli::CrashShow;
use super::models;
use super::saved::write_tree;
use super::setup;
use super::show::print_wrong;
use crate::{CommandEnd, Usage};

/// Describes a state of a model.
pub fn show(
    args: &CrashShow,
    (run, base): (&ProgramRun, &Tree),
    judge: Option<&dyn Judges>,
    (name, number): (&str, u64),
    out: &mut dyn Write,
) -> Result<CommandEnd> {
    let path = args.recording.display();
    let model = models::named(name, "")?;
    if run.calls.is_empty() {
        usage!("{path}: no calls are recorded in it, of which --model {name} would have states");
    }
    let (choice, by_lines) = setup::choice_from(&run.about).map_err(|e| anyhow!(e))?;
    let exploration = models::exploration((run, base), judge, by_lines, (choice.seed, 1));
    let state = exploration.state(model, number).map_err(|e| anyhow!(e))?;
    let state = state
        .ok_or_else(|| Usage(format!("{path}: {} has no state {number}", model.in_words())))?;
    print_cut((model, number), run, &state, out)?;
    print_calls(run, &state, args.calls, out)?;
    describe::print_tree(&state.tree, base, out)?;
    write_tree(&state.tree, args.tree.as_deref(), args.owners)?;
    print_wrong(&state.verdict.wrong, out)?;
    for reason in &state.verdict.unmeasured {
        writeln!(out, "Not measured: {reason}")?;
    }
    Ok(if state.verdict.wrong.is_empty() { CommandEnd::Good } else { CommandEnd::Problem })
}

fn print_cut(
    (model, number): (Model, u64),
    run: &ProgramRun,
    state: &ModelState,
    out: &mut dyn Write,
) -> Result<()> {
    let at = since(run, state.cut.at.at);
    let of = model.in_words();
    writeln!(out, "State {number} of {of}: the power went {at:.6} s after the beginning.")?;
    let printed = state.cut.printed;
    writeln!(out, "The program had printed {printed} of its {} lines.", run.lines.len())?;
    Ok(())
}

/// The last calls that change something, with what became of each.
fn print_calls(
    run: &ProgramRun,
    state: &ModelState,
    most: usize,
    out: &mut dyn Write,
) -> Result<()> {
    writeln!(out, "\nWhat became of the last calls:")?;
    let tick = state.cut.at.tick;
    let fates: &BTreeMap<usize, CallFate> = &state.calls;
    let begun = run.calls.iter().enumerate().filter(|(_, call)| call.started.tick < tick);
    let all = begun.filter_map(|(place, call)| Some((place, call, fates.get(&place)?)));
    let all: Vec<_> = all.collect();
    for (place, call, fate) in &all[all.len().saturating_sub(most)..] {
        let end = if call.done_before(tick) { "" } else { " ... had not returned" };
        let (at, made_at) = (since(run, call.started.at), made_at(run, *place));
        writeln!(out, "  {at:>11.6} s  {fate:<9} {call}{end}{made_at}")?;
    }
    if all.is_empty() {
        writeln!(out, "  there was none")?;
    }
    Ok(())
}
