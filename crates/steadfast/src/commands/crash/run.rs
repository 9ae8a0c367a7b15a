//! `steadfast crash run`.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use steadfast_crash::explore::{Plan, System};
use steadfast_crash::program::describe::counted;
use steadfast_crash::program::explore::Exploration;
use steadfast_crash::program::{Command, Judges, ProgramRun};

use super::budget::seconds;
use super::ci::ReportFiles;
use super::ci::findings::merged;
use super::ci::results::Results;
use super::cli::CrashRun;
use super::client::ClientPlan;
use super::failures::not_judged;
use super::file_systems::{self, SkippedFs};
use super::judged::{JudgedRun, JudgingPlan, RecordedProgram};
use super::kernel;
use super::models;
use super::own;
use super::printed::LineOutput;
use super::report::{self, Report};
use super::setup::{self, Fs, Setup};
use super::stops;
use super::watch::Watch;
use crate::document;
use crate::terminal::{self, Harmless, Progress, UntilClosed};
use crate::{CommandEnd as Exit, Usage};

/// Runs the program, cuts, judges, reports.
pub fn run(args: &CrashRun, out: &mut dyn Write) -> Result<Exit> {
    let (setups, mut skipped) = file_systems::of(args)?;
    let judge = setup::judge(&args.judge)?;
    let client = ClientPlan::of(&args.client)?;
    for setup in &setups {
        setup::choice(setup, args)?;
    }
    let models = models::asked(&args.model, &setups)?;
    let linger = seconds("--linger", args.linger)?;
    let files = ReportFiles::tried(args, &setups, judge.as_ref(), &models)?;
    file_systems::say_skipped(&skipped);
    let stops = stops::on_signals("stopping this step; again to stop the next one")?;
    let mut runs = Vec::new();
    for (number, setup) in setups.iter().enumerate() {
        file_systems::say_begun(&setups, number);
        let judged = match record(args, setup, (client.as_ref(), linger), &stops, out) {
            // Whatever the signal has disturbed.
            Err(e) if stops.load(Ordering::Relaxed) > 0 && runs.is_empty() => {
                let why = format!("stopped, nothing was judged: {}", terminal::with_causes(&e));
                return before_judging(args, &why, out);
            }
            Err(e) => Err(not_judged(e)),
            Ok(recorded) => {
                // The calls are the same on all: those of one run are judged.
                let models = if runs.is_empty() { &models[..] } else { &[] };
                let judge = judge.as_ref();
                let plan = JudgingPlan { args, setups: &setups, judge, models };
                recorded.judged(&plan, setup, &stops)
            }
        };
        match judged {
            Ok(judged) => runs.push(judged),
            Err(e) if setups.len() == 1 => return Err(e),
            Err(e) => skipped.push(SkippedFs::failed(setup, &e)),
        }
        if stops.load(Ordering::Relaxed) > 0 {
            let rest = setups.iter().skip(number + 1);
            skipped.extend(rest.map(SkippedFs::stopped));
            break;
        }
    }
    report(args, judge.as_ref(), (runs, &skipped), &files, &stops, out)
}

/// Runs the program and records it.
fn record(
    args: &CrashRun,
    setup: &Setup,
    (client, linger): (Option<&ClientPlan>, Duration),
    stops: &AtomicUsize,
    out: &mut dyn Write,
) -> Result<RecordedProgram> {
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
        client,
        linger,
        shown: LineOutput::new(&mut *shown, Some(behind)),
        stops,
        answered: 0,
        left_out: 0,
        progress: &progress,
        stacks: args.stacks,
    };
    let prepare = args.setup.as_deref();
    let left = match setup.fs {
        Fs::Own(kind) => own::record(setup, kind, prepare, &mut watch),
        Fs::Kernel(fs) => kernel::record(setup, fs, prepare, &mut watch),
    }?;
    let (answered, left_out) = (watch.answered, watch.left_out);
    drop(shown);
    let bar = bar.take().unwrap_or_else(Progress::start);
    Ok(RecordedProgram { left, answered, left_out, bar })
}

/// Reports what was found, and says how it ends.
fn report(
    args: &CrashRun,
    judge: Option<&Command>,
    (mut runs, skipped): (Vec<JudgedRun<'_>>, &[SkippedFs]),
    files: &ReportFiles,
    stops: &AtomicUsize,
    out: &mut dyn Write,
) -> Result<Exit> {
    let failed = skipped.iter().find(|fs| fs.has_failed);
    let stopped = failed.is_some() || runs.iter().any(|run| run.explored.stopped);
    let kept = {
        let findings = merged(runs.iter().enumerate().map(|(n, run)| run.findings(n)));
        let is_new = |run: usize| {
            let new = findings.iter().filter(|f| !files.knows(&f.fingerprints, stopped));
            new.into_iter().any(|f| f.run == run || f.also.iter().any(|also| also.run == run))
        };
        (0..runs.len()).map(is_new).collect::<Vec<bool>>()
    };
    for (run, is_new) in runs.iter_mut().zip(kept) {
        run.keep(is_new);
    }
    let runs = runs;
    let mut findings = merged(runs.iter().enumerate().map(|(n, run)| run.findings(n)));
    let of_runs: Vec<(Option<&Path>, Fs)> =
        runs.iter().map(|run| (run.kept.as_deref(), run.setup.fs)).collect();
    for finding in &mut findings {
        finding.known = files.knows(&finding.fingerprints, stopped);
        finding.show_by(&of_runs, judge);
    }
    let is_new = findings.iter().any(|finding| !finding.known);
    let tested = (&args.program[..], args.ignore_status);
    let Some(results) = Results::of(&runs, tested, &findings, files.baseline()) else {
        return file_systems::none_tested(skipped);
    };
    let written = files.write(&results, stopped);
    let report =
        Report { runs: &runs, skipped, judge, budget: args.budget.as_ref(), results: &results };
    stops::end_with_signals();
    // What was found counts, whoever reads it.
    let out = &mut UntilClosed::new(out);
    if args.json {
        report::json::print(&report, out)?;
        files.annotate(&results, &mut UntilClosed::new(std::io::stderr()))?;
    } else {
        files.print_report(out, |out| report::text(&report, args.wide, out))?;
        files.annotate(&results, out)?;
    }
    if is_new || (!findings.is_empty() && !written.baseline) {
        return Ok(Exit::Problem);
    }
    refuse_unjudged(&runs, args.json, args.ignore_status)?;
    if let Some(SkippedFs { name, why, .. }) = failed {
        usage!("nothing was found, and {name} was not tested: {why}");
    }
    if runs.iter().any(|run| run.saved.is_some_and(|saved| !saved)) {
        usage!("nothing was found, and the recording is not there");
    }
    if !written.all {
        usage!("nothing was found, and not all reports are there");
    }
    // Also where it was the program that somebody stopped: it has not done what it was to do.
    let asked = stops.load(Ordering::Relaxed) > 0;
    Ok(if asked { Exit::Stopped } else { Exit::Good })
}

/// Refuses to say that nothing was found where not all could be judged, or the program has failed;
/// `json`: nobody has read why.
pub fn refuse_unjudged(
    runs: &[JudgedRun<'_>],
    json: bool,
    ignore_status: bool,
) -> Result<(), Usage> {
    let troubles: Vec<&String> =
        runs.iter().flat_map(|run| &run.explored.outcome.troubles).collect();
    if let Some(first) = troubles.first() {
        let count = counted(troubles.len() as u64, "state");
        let why = if json { format!("; the first: {first}") } else { String::new() };
        usage!("{count} could not be judged{why}");
    }
    if let Some(why) = runs.iter().filter(|_| !ignore_status).find_map(JudgedRun::has_failed) {
        usage!("nothing was found, and {why} (--ignore-status accepts that)");
    }
    Ok(())
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

/// Who recovers and judges what, for [`show`](super::show) as well.
pub fn exploration<'a>(
    run: &'a ProgramRun,
    system: &'a dyn System,
    judge: Option<&'a dyn Judges>,
) -> Result<Exploration<'a>, String> {
    let (choice, by_lines) = setup::choice_from(&run.about)?;
    Ok(Exploration { run, system, judge, plan: Plan::from(choice), by_lines, workers: 1 })
}
