//! `steadfast crash run`.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use steadfast_crash::explore::{Plan, System};
use steadfast_crash::persistence::Model;
use steadfast_crash::program::describe::counted;
use steadfast_crash::program::explore::Exploration;
use steadfast_crash::program::{AskedOnce, Command, Judges, ProgramRun, file};
use steadfast_crash::states::Choice;

use super::budget::seconds;
use super::ci::ReportFiles;
use super::ci::findings::Sources;
use super::ci::results::Results;
use super::cli::CrashRun;
use super::client::ClientPlan;
use super::explored::Explorer;
use super::failures::not_judged;
use super::kernel;
use super::models;
use super::own::{self, OwnRun};
use super::printed::LineOutput;
use super::reactions::ReactionReport;
use super::report::{self, Report};
use super::setup::{self, Fs, Setup};
use super::stops;
use super::watch::Watch;
use crate::CommandEnd as Exit;
use crate::commands::whole_file;
use crate::document;
use crate::terminal::{self, Harmless, Progress, UntilClosed};

/// Every so many states e2fsck is asked too, where it is installed.
const E2FSCK_EVERY: u64 = 50;

/// What the command line asks for.
struct RunPlan<'a> {
    args: &'a CrashRun,
    setup: Setup,
    judge: Option<Command>,
    client: Option<ClientPlan>,
    choice: Choice,
    models: Vec<Model>,
    files: ReportFiles,
}

/// A run that was recorded.
struct RecordedProgram {
    left: OwnRun,
    /// So many signals have stopped a step.
    answered: usize,
    /// Lines that were too many.
    left_out: u64,
    bar: Progress,
}

/// Runs the program, cuts, judges, reports.
pub fn run(args: &CrashRun, out: &mut dyn Write) -> Result<Exit> {
    let setup = Setup::of(args)?;
    let judge = setup::judge(&args.judge)?;
    let client = ClientPlan::of(&args.client)?;
    let choice = setup::choice(&setup, args)?;
    let models = models::asked(args)?;
    let linger = seconds("--linger", args.linger)?;
    let files = ReportFiles::tried(args, &setup, judge.as_ref(), &models)?;
    let plan = RunPlan { args, setup, judge, client, choice, models, files };
    let stops = stops::on_signals("stopping this step; again to stop the next one")?;
    match record(&plan, linger, &stops, out) {
        // Whatever the signal has disturbed.
        Err(e) if stops.load(Ordering::Relaxed) > 0 => {
            let why = format!("stopped, nothing was judged: {}", terminal::with_causes(&e));
            before_judging(args, &why, out)
        }
        recorded => judge_and_report(&plan, recorded.map_err(not_judged)?, &stops, out),
    }
}

/// Runs the program and records it.
fn record(
    plan: &RunPlan<'_>,
    linger: Duration,
    stops: &AtomicUsize,
    out: &mut dyn Write,
) -> Result<RecordedProgram> {
    let args = plan.args;
    let bar: RefCell<Option<Progress>> = RefCell::new(None);
    let progress = |share: f64, what: &str| {
        // While the program runs the terminal is its own.
        if share > 0.0 {
            bar.borrow_mut().get_or_insert_with(Progress::start).set(share, what);
        }
    };
    let mut errors = std::io::stderr();
    let (shown, behind): (&mut dyn Write, BorrowedFd<'_>) = match args.json {
        true => (&mut errors, rustix::stdio::stderr()),
        false => (out, rustix::stdio::stdout()),
    };
    let mut shown: Box<dyn Write> =
        if behind.is_terminal() { Box::new(Harmless::text(shown)) } else { Box::new(shown) };
    let mut watch = Watch {
        program: &args.program,
        client: plan.client.as_ref(),
        linger,
        shown: LineOutput::new(&mut *shown, Some(behind)),
        stops,
        answered: 0,
        left_out: 0,
        progress: &progress,
    };
    let prepare = args.setup.as_deref();
    let left = match plan.setup.fs {
        Fs::Own(kind) => own::record(&plan.setup, kind, prepare, &mut watch),
        Fs::Kernel(fs) => kernel::record(&plan.setup, fs, prepare, &mut watch),
    }?;
    let (answered, left_out) = (watch.answered, watch.left_out);
    drop(shown);
    let bar = bar.take().unwrap_or_else(Progress::start);
    Ok(RecordedProgram { left, answered, left_out, bar })
}

/// Cuts the power of the recorded run, judges and reports.
fn judge_and_report(
    plan: &RunPlan<'_>,
    recorded: RecordedProgram,
    stops: &AtomicUsize,
    out: &mut dyn Write,
) -> Result<Exit> {
    let RunPlan { args, setup, judge, client, choice, models, files } = plan;
    let (judge, choice) = (judge.as_ref(), *choice);
    let RecordedProgram { left, answered, left_out, bar } = recorded;
    let OwnRun { mut run, tree, ended, never_came } = left;
    run = setup.on_media(run);
    let by_lines = judge.is_some();
    run.about.extend(setup::about_choice(&choice, by_lines));
    run.about.insert("program".into(), args.program.join(" "));
    run.about.extend(client.iter().map(|client| ("client".into(), client.command.clone())));
    // Where it cannot be written the run is judged all the same: that may take long to do again.
    let saved = args.record.as_ref().map(|path| save(&run, path));
    if let Some(Err(e)) = &saved {
        terminal::error(e);
    }
    let system = setup.system()?;
    let once = judge.map(|judge| AskedOnce::new(judge));
    let exploration = Exploration {
        run: &run,
        system: &*system,
        judge: once.as_ref().map(|once| once as &dyn Judges),
        plan: Plan { e2fsck_every: E2FSCK_EVERY, ..Plan::from(choice) },
        by_lines,
        workers: workers(args, setup.fs),
    };
    let without_cut = judge.zip(tree.as_ref().ok()).map(|(judge, tree)| {
        judge.judge(tree, &run.printed_text(run.recording.last_crash_point()))
    });
    let without_cut = without_cut.transpose().context("asking the judge").map_err(not_judged)?;
    let go_on = || stops.load(Ordering::Relaxed) <= answered;
    let explorer = Explorer {
        exploration: &exploration,
        choice,
        models,
        budget: args.budget.as_ref(),
        go_on: &go_on,
        bar: &bar,
    };
    let mut explored = explorer.explored()?;
    bar.finish();
    if left_out > 0 {
        let lines = counted(left_out, "line");
        let what = format!("{lines} of the program, which printed too much");
        explored.outcome.unmeasured.insert(what);
    }
    explored.outcome.unmeasured.extend(never_came);
    let reactions = ReactionReport::of(&run, judge.is_some());
    explored.outcome.unmeasured.extend(reactions.unmeasured());
    let (outcome, by_calls) = (&explored.outcome, explored.by_calls.as_ref());
    let sources = Sources { setup, outcome, by_calls, reactions: reactions.findings(&run) };
    let mut findings = sources.findings(&|prints| files.knows(prints, explored.stopped));
    let is_new = findings.iter().any(|finding| !finding.known);
    let kept = match (&args.record, is_new) {
        (Some(path), _) if saved.as_ref().is_some_and(Result::is_ok) => Some(path.clone()),
        (_, is_new) => is_new.then(|| saved_aside(&run)).flatten(),
    };
    findings.iter_mut().for_each(|finding| finding.show_by(kept.as_deref(), setup.fs, judge));
    let tested = (setup, &args.program[..]);
    let (about, baseline) = ((&run, &explored), files.baseline());
    let results = Results::of(about, tested, &findings, baseline, kept.as_deref());
    let written = files.write(&results, explored.stopped);
    let report = Report {
        setup,
        run: &run,
        ended: &ended,
        judge,
        without_cut: without_cut.and_then(|said| said.summary()),
        explored: &explored,
        results: &results,
        budget: args.budget.as_ref(),
        reactions: &reactions,
    };
    stops::end_with_signals();
    // What was found counts, whoever reads it.
    let out = &mut UntilClosed::new(out);
    if args.json {
        report::json::print(&report, out)?;
        files.annotate(&results, &mut UntilClosed::new(std::io::stderr()))?;
    } else {
        files.print_report(out, |out| report::text(&report, out))?;
        files.annotate(&results, out)?;
    }
    if is_new || (!findings.is_empty() && !written.baseline) {
        return Ok(Exit::Problem);
    }
    if let Some(first) = outcome.troubles.first() {
        let count = counted(outcome.troubles.len() as u64, "state");
        // The report for people has just said why.
        let why = if args.json { format!("; the first: {first}") } else { String::new() };
        usage!("{count} could not be judged{why}");
    }
    if saved.is_some_and(|saved| saved.is_err()) {
        usage!("nothing was found, and the recording is not there");
    }
    if let Some(why) = ended.failed() {
        usage!("nothing was found, and this was no test: {why}");
    }
    if !written.all {
        usage!("nothing was found, and not all reports are there");
    }
    // Also where it was the program that somebody stopped: it has not done what it was to do.
    let asked = stops.load(Ordering::Relaxed) > 0;
    Ok(if asked { Exit::Stopped } else { Exit::Good })
}

/// The end of a run that was stopped before there was anything to judge.
fn before_judging(args: &CrashRun, why: &str, out: &mut dyn Write) -> Result<Exit> {
    terminal::note(why);
    stops::end_with_signals();
    if args.json {
        document::error(out, why, None, Exit::STOPPED)?;
    }
    Ok(Exit::Stopped)
}

/// How many states are judged at the same time.
fn workers(args: &CrashRun, fs: Fs) -> usize {
    let asked = args.jobs.and_then(|jobs| usize::try_from(jobs).ok());
    asked.unwrap_or_else(|| match fs {
        Fs::Own(_) => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        // One mount at a time, and the kernel works on the other processors by itself.
        Fs::Kernel(_) => 1,
    })
}

fn save(run: &ProgramRun, path: &Path) -> Result<()> {
    whole_file::write_by(path, |to| file::save(run, to)).with_context(|| path.display().to_string())
}

/// Keeps a recording that nobody asked for, because something was found. Where that cannot be, it
/// is said: what was found is reported also without a recording.
fn saved_aside(run: &ProgramRun) -> Option<PathBuf> {
    let keep = || {
        let kept = tempfile::Builder::new().prefix("steadfast-").suffix(".crash").tempfile()?;
        save(run, kept.path())?;
        anyhow::Ok(kept.keep()?.1)
    };
    let note = |e| terminal::note(&format!("no recording is kept: {}", terminal::with_causes(&e)));
    keep().map_err(note).ok()
}

/// Who recovers and judges what, for [`show`](super::show) as well.
pub fn exploration<'a>(
    run: &'a ProgramRun,
    system: &'a dyn System,
    judge: Option<&'a dyn Judges>,
) -> Result<Exploration<'a>, String> {
    let (choice, by_lines) = setup::choice_from(&run.about)?;
    Ok(Exploration { run, system, judge, plan: Plan::from(choice), by_lines, workers: 1 })
}
