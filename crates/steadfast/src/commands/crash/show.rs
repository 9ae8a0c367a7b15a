//! `steadfast crash show`: describes one state.

use std::io::Write;

use anyhow::{Result, anyhow};
use steadfast_crash::program::describe::{self, PRINTED_MAX, since};
use steadfast_crash::program::explore::{Exploration, Verdict, Wrong};
use steadfast_crash::program::{
    Judges, Names, ProgramRun, Tree, file, first_difference, recover, shown,
};
use steadfast_crash::states::State;

use super::cli::CrashShow;
use super::explored::SHRINK_RECOVERIES;
use super::judge_files::UnprivilegedJudge;
use super::lab;
use super::on_stack::OnStack;
use super::reactions::ReactionReport;
use super::report::in_numbers;
use super::run::exploration;
use super::saved::{tried, write_image, write_tree};
use super::setup::{self, Fs, Setup};
use super::show_model;
use crate::terminal::{Harmless, WrappedOutput};
use crate::{CommandEnd, Usage};

/// Reproduces a state and describes it; without a state, describes the recording.
pub fn show(args: &CrashShow, out: &mut dyn Write) -> Result<CommandEnd> {
    // Names, printed lines and what a judge says are anybody's.
    let out = &mut Harmless::text(WrappedOutput::new(out));
    tried(args)?;
    if let (Some(variant), Some(cut)) = (&args.variant, args.cut) {
        return lab::show(args, variant, cut, out);
    }
    let path = &args.recording;
    let bad = |e: String| Usage(format!("{}: {e}", path.display()));
    let run = file::load(path).map_err(|e| match path.exists() {
        true => bad(e.to_string()),
        false => bad(format!("{e} (of a scenario, also its --variant is needed)")),
    })?;
    let setup = Setup::from_about(&run.about).map_err(bad)?;
    let run = setup.on_media(run);
    let judge = setup::judge(&args.judge)?;
    let Some(number) = args.cut else { return about(&setup, &run, out) };
    let owners = args.owners;
    let unprivileged = judge.as_ref().map(|judge| UnprivilegedJudge { judge, owners });
    let unprivileged = unprivileged.as_ref().map(|judge| judge as &dyn Judges);
    if let Some(model) = &args.model {
        let system = setup.system()?;
        let base = exploration(&run, &*system, unprivileged).map_err(bad)?.base();
        let base = base.map_err(|e| bad(e.to_string()))?;
        return show_model::show(args, (&run, &base), unprivileged, (model, number), out);
    }
    if matches!(setup.fs, Fs::Kernel(_)) && !args.kernel {
        let what = format!(
            "state {number} is for this machine's kernel to mount, as root: {}. Kernels are not \
             made for file systems by an enemy: say --kernel if you trust who has recorded it",
            setup.in_words()
        );
        return Err(bad(what).into());
    }
    let system = setup.system()?;
    let exploration = exploration(&run, &*system, unprivileged).map_err(bad)?;
    let state = exploration.state(number);
    let state = state.ok_or_else(|| bad(format!("it has no state {number}")))?;
    if let Some(image) = &args.image {
        if !setup.joined.is_empty() {
            usage!("--image: there are several disks: take --tree");
        }
        setup.stack.as_ref().map_or(Ok(()), OnStack::refuse_image)?;
        write_image(&state, image)?;
    }
    print_cut(&setup, &run, &state, out)?;
    describe::print_calls(&run, &state, args.calls, out)?;
    let names = run.names(&state, |contents| setup.names(contents));
    describe::print_writes(&run, &names, &state, out)?;
    let (verdict, tree) = print_recovery(&exploration, &state, args, out)?;
    if let Some(tree) = tree {
        print_differences(&exploration, &names, &tree, out)?;
    }
    let wrong = verdict.wrong;
    print_wrong(&wrong, out)?;
    for reason in &verdict.unmeasured {
        writeln!(out, "Not measured: {reason}")?;
    }
    if args.shrink && !wrong.is_empty() {
        let base = exploration.base().map_err(|e| anyhow!(e))?;
        let decisive = exploration.shrink(&state, &base, SHRINK_RECOVERIES, &|| true);
        describe::print_decisive(&run, &names, &decisive.map_err(|e| anyhow!(e))?, out)?;
    }
    Ok(if wrong.is_empty() { CommandEnd::Good } else { CommandEnd::Problem })
}

fn about(setup: &Setup, run: &ProgramRun, out: &mut dyn Write) -> Result<CommandEnd> {
    let program = run.about.get("program").map_or("?", String::as_str);
    let program = shown(program.as_bytes());
    match run.about.get("client") {
        None => writeln!(out, "program   {program}")?,
        Some(client) => {
            writeln!(out, "server    {program}\nclient    {}", shown(client.as_bytes()))?;
        }
    }
    writeln!(out, "recorded  {}", setup.in_words())?;
    writeln!(out, "          {}", in_numbers(run))?;
    let (choice, by_lines) = setup::choice_from(&run.about).map_err(|e| anyhow!(e))?;
    writeln!(
        out,
        "cut       {}, at most {} states a cut, seed {}; --cut N shows state N",
        choice.places, choice.bound.states, choice.seed
    )?;
    ReactionReport::of(run, by_lines).text(run, out)?;
    Ok(CommandEnd::Good)
}

fn print_cut(setup: &Setup, run: &ProgramRun, state: &State, out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "State {} of {}: the power went {:.6} s after the beginning.",
        state.number,
        setup.in_words(),
        since(run, state.cut.at)
    )?;
    let printed = run.printed_before(state.cut.tick);
    let who = if run.about.contains_key("client") { "client" } else { "program" };
    writeln!(out, "The {who} had printed {printed} of its {} lines.", run.lines.len())?;
    Ok(())
}

fn print_recovery(
    exploration: &Exploration<'_>,
    state: &State,
    args: &CrashShow,
    out: &mut dyn Write,
) -> Result<(Verdict, Option<Tree>)> {
    let base = exploration.base().map_err(|e| anyhow!(e))?;
    let recovered = recover(exploration.system, state.contents.clone()).map_err(|e| anyhow!(e))?;
    let mut wrong: Vec<Wrong> = recovered.damage.into_iter().map(Wrong::Damage).collect();
    let mut verdict = Verdict::default();
    let tree = match recovered.tree {
        Err(why) => {
            wrong.push(Wrong::Refused(why.to_string()));
            None
        }
        Ok(tree) => {
            describe::print_tree(&tree, &base, out)?;
            write_tree(&tree, args.tree.as_deref(), args.owners)?;
            let contents = recovered.contents.as_deref();
            let said = exploration.verdict(&tree, contents, &base, state.cut);
            verdict = said.map_err(|e| anyhow!(e))?;
            wrong.append(&mut verdict.wrong);
            Some(tree)
        }
    };
    verdict.wrong = wrong;
    Ok((verdict, tree))
}

/// Where each file begins to differ from what it is at the end of the run: the first block that is
/// not (or not yet) right.
fn print_differences(
    exploration: &Exploration<'_>,
    names: &Names,
    tree: &Tree,
    out: &mut dyn Write,
) -> Result<()> {
    let run = exploration.run;
    let end = recover(exploration.system, run.contents_at_end()).map_err(|e| anyhow!(e))?;
    let Ok(end) = end.tree else { return Ok(()) };
    let mut lines = Vec::new();
    for (path, later) in end.nodes() {
        let Some(node) = tree.get(path) else {
            lines.push(format!("{} is not there yet", shown(path)));
            continue;
        };
        let Some(at) = first_difference(node, later) else { continue };
        let place = match names.place(path, at).filter(|_| at < node.attr.size) {
            Some(place) => format!("byte {place} of the disk"),
            None => "beyond what it has on the disk".into(),
        };
        lines.push(format!("{} differs from byte {at} on: {place}", shown(path)));
    }
    for (path, _) in tree.nodes().filter(|(path, _)| end.get(path).is_none()) {
        lines.push(format!("{} is still there", shown(path)));
    }
    if !lines.is_empty() {
        writeln!(out, "\nBeside the end of the run, with everything on the disk:")?;
        lines.iter().take(PRINTED_MAX).try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    Ok(())
}

/// What is wrong with a state.
pub fn print_wrong(wrong: &[Wrong], out: &mut dyn Write) -> Result<()> {
    writeln!(out)?;
    for one in wrong {
        writeln!(out, "Wrong: {}", one.what())?;
        if let Wrong::Judge(_, output) = one
            && output.lines().count() > 1
        {
            output.lines().take(PRINTED_MAX).try_for_each(|line| writeln!(out, "  | {line}"))?;
        }
    }
    if wrong.is_empty() {
        writeln!(out, "Nothing is wrong with it.")?;
    }
    Ok(())
}
