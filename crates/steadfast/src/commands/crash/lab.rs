//! Describes a cut that `lab run` made: the variant is run again, which gives the same.

use std::io::Write;

use anyhow::{Result, anyhow};
use steadfast_crash::explore::ReproducedState;
use steadfast_crash::figures::StateFigures;
use steadfast_crash::opinion::Opinion;
use steadfast_crash::program::Names;
use steadfast_crash::program::describe::{print_calls, print_tree, print_writes, since};
use steadfast_lab::RunOptions;
use steadfast_lab::run::{Control, reproduce_state};
use steadfast_setup::options;

use super::cli::CrashShow;
use super::saved::{write_image, write_tree};
use crate::CommandEnd;
use crate::commands::lab::to_anyhow;

/// Reproduces the cut and prints what it took.
pub fn show(args: &CrashShow, variant: &str, cut: u64, out: &mut dyn Write) -> Result<CommandEnd> {
    let name = args.recording.to_string_lossy();
    let scenario = crate::commands::lab::find(&name)?;
    let run = RunOptions { cuts: args.cuts, seed: args.seed, ..RunOptions::default() };
    let control = match (args.lying, args.flushes_omitted) {
        (true, _) => Some(Control::FlushIgnored),
        (_, true) => Some(Control::FlushesOmitted),
        _ => None,
    };
    let reproduced = reproduce_state(&scenario, &run, variant, cut, control).map_err(to_anyhow)?;
    let ReproducedState { run, state, before, after, cut } = reproduced;
    if let Some(image) = &args.image {
        write_image(&state, image)?;
    }
    let lying = control.map_or(String::new(), |control| format!(", {}", control.words()));
    writeln!(
        out,
        "Cut {} of '{variant}' of {}{lying}, seed {}: the power went {:.6} s after the beginning.",
        state.number,
        scenario.name,
        args.seed,
        since(&run, state.cut.at)
    )?;
    print_calls(&run, &state, args.calls, out)?;
    let mount = scenario.variants.iter().find(|v| v.name == variant).map_or("", |v| &v.stack.mount);
    let mount = options::mount(mount).map_err(|e| anyhow!(e))?;
    let names = run.names(&state, |contents| Names::of(contents, &mount));
    print_writes(&run, &names, &state, out)?;
    match (&after, &before) {
        (Ok(after), Ok(before)) => {
            print_tree(after, before, out)?;
            write_tree(after, args.tree.as_deref(), args.owners)?;
        }
        (Err(why), _) | (_, Err(why)) => writeln!(out, "\nThere is no tree to be seen: {why}")?,
    }
    verdict(&cut, out)
}

/// What the cut took, and what is wrong about that.
fn verdict(cut: &StateFigures, out: &mut dyn Write) -> Result<CommandEnd> {
    if cut.manual_repair {
        writeln!(out, "\nTaken: everything, until somebody repairs it by hand.")?;
    } else {
        writeln!(
            out,
            "\nTaken: {} acknowledged operations, {} bytes, the oldest {:.3} s old; {} torn \
             writes; recovery took {:.1} ms.",
            cut.lost_operations,
            cut.lost_bytes,
            cut.lost_age.as_secs_f64(),
            cut.torn_writes,
            cut.recovery.as_secs_f64() * 1e3
        )?;
    }
    match &cut.e2fsck {
        Some(Opinion::Clean) => writeln!(out, "e2fsck -fn calls the recovered image clean.")?,
        Some(Opinion::NotGiven(why)) => writeln!(out, "e2fsck -fn said nothing: {why}")?,
        Some(Opinion::Damaged(_)) | None => {}
    }
    let e2fsck = cut.e2fsck.iter().filter_map(Opinion::damage);
    let own = cut.damage.iter().chain(&cut.findings).map(String::as_str);
    let wrong: Vec<&str> = own.chain(e2fsck).collect();
    for one in &wrong {
        writeln!(out, "Wrong: {one}")?;
    }
    if wrong.is_empty() {
        writeln!(out, "Nothing is wrong with it.")?;
    }
    Ok(if wrong.is_empty() { CommandEnd::Good } else { CommandEnd::Problem })
}
