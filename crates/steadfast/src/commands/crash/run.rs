//! `steadfast crash run`.

use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, anyhow};
use steadfast_crash::explore::{Plan, System};
use steadfast_crash::program::describe::counted;
use steadfast_crash::program::explore::{Exploration, ExplorationReport};
use steadfast_crash::program::exposure::exposure;
use steadfast_crash::program::{Judges, ProgramRun, file};

use super::cli::CrashRun;
use super::kernel;
use super::models;
use super::own::{self, OwnRun};
use super::printed::LineOutput;
use super::program::Watch;
use super::reactions::ReactionReport;
use super::report::{self, Report};
use super::setup::{self, Fs, Setup};
use super::stops;
use crate::CommandEnd as Exit;
use crate::commands::lab::outputs::Output;
use crate::commands::whole_file::{self, place::Identity};
use crate::document;
use crate::terminal::{self, Harmless, Progress, UntilClosed};

/// Every so many states e2fsck is asked too, where it is installed.
const E2FSCK_EVERY: u64 = 50;
/// Recoveries that are spent to find the writes that matter.
pub const SHRINK_RECOVERIES: u32 = 200;

/// Runs the program, cuts, judges, reports.
pub fn run(args: &CrashRun, out: &mut dyn Write) -> Result<Exit> {
    let setup = Setup::of(args)?;
    let judge = setup::judge(&args.judge)?;
    let choice = setup::choice(&setup, args)?;
    let models = models::asked(args)?;
    let linger = setup::seconds("--linger", args.linger)?;
    if let Some(path) = &args.record {
        // Before the program is run for nothing. What is there is not changed yet.
        Output::tried("--record", path)?;
        if is_output(path) {
            let what = "what is printed goes there; name another file";
            usage!("--record {}: {what}", path.display());
        }
    }
    let stops = stops::on_signals("stopping this step; again to stop the next one")?;
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
        false => (&mut *out, rustix::stdio::stdout()),
    };
    let mut shown: Box<dyn Write> =
        if behind.is_terminal() { Box::new(Harmless::text(shown)) } else { Box::new(shown) };
    let mut watch = Watch {
        program: &args.program,
        linger,
        shown: LineOutput::new(&mut *shown, Some(behind)),
        stops: &stops,
        answered: 0,
        left_out: 0,
        progress: &progress,
    };
    let prepare = args.setup.as_deref();
    let left = match setup.fs {
        Fs::Own(kind) => own::record(&setup, kind, prepare, &mut watch),
        Fs::Kernel(fs) => kernel::record(&setup, fs, prepare, &mut watch),
    };
    let left = match left {
        // Whatever the signal has disturbed.
        Err(e) if stops.load(Ordering::Relaxed) > 0 => {
            let why = format!("stopped, nothing was judged: {}", terminal::with_causes(&e));
            drop(shown);
            return before_judging(args, &why, out);
        }
        left => left.map_err(not_judged)?,
    };
    let OwnRun { mut run, tree, ended, never_came } = left;
    let (answered, left_out) = (watch.answered, watch.left_out);
    drop(shown);
    run = setup.on_media(run);
    let by_lines = judge.is_some();
    run.about.extend(setup::about_choice(&choice, by_lines));
    run.about.insert("program".into(), args.program.join(" "));
    // Where it cannot be written the run is judged all the same: that may take long to do again.
    let saved = args.record.as_ref().map(|path| save(&run, path));
    if let Some(Err(e)) = &saved {
        terminal::error(e);
    }
    let system = setup.system()?;
    let exploration = Exploration {
        run: &run,
        system: &*system,
        judge: judge.as_ref().map(|judge| judge as &dyn Judges),
        plan: Plan { e2fsck_every: E2FSCK_EVERY, ..Plan::from(choice) },
        by_lines,
        workers: workers(args, setup.fs),
    };
    let without_cut = judge.as_ref().zip(tree.as_ref().ok()).map(|(judge, tree)| {
        judge.judge(tree, &run.printed_text(run.recording.last_crash_point()))
    });
    let without_cut = without_cut.transpose().context("asking the judge").map_err(not_judged)?;
    let bar = bar.take().unwrap_or_else(Progress::start);
    let go_on = || stops.load(Ordering::Relaxed) <= answered;
    let outcome = exploration.explore(&|cuts, all, states| {
        let share = cuts as f64 / all.max(1) as f64;
        bar.set(share, &format!("cut {cuts} of {all}, {states} states"));
        go_on()
    });
    let mut outcome = outcome.map_err(|e| not_judged(anyhow!(e)))?;
    if left_out > 0 {
        let lines = counted(left_out, "line");
        outcome.unmeasured.insert(format!("{lines} of the program, which printed too much"));
    }
    outcome.unmeasured.extend(never_came);
    let reactions = ReactionReport::of(&run, judge.is_some());
    outcome.unmeasured.extend(reactions.unmeasured());
    let stopped = !go_on();
    let decisive = match first(&exploration, &outcome) {
        Some((state, base)) if !stopped => {
            bar.set(1.0, "looking for the writes that matter");
            exploration.shrink(&state, &base, SHRINK_RECOVERIES, &go_on).ok()
        }
        _ => None,
    };
    // Nobody sees the calls to the kernel's file systems.
    let base = match setup.fs {
        Fs::Own(_) if !models.is_empty() && !stopped && !run.calls.is_empty() => {
            Some(exploration.base().map_err(|e| not_judged(anyhow!(e)))?)
        }
        _ => None,
    };
    let by_calls = base.map(|base| {
        let how = (args.seed, exploration.workers);
        models::explore(&models, (&run, &base), exploration.judge, how, &|share| {
            bar.set(share, "the calls alone");
            go_on()
        })
    });
    let reports = by_calls.iter().flat_map(|of| &of.reports);
    outcome.troubles.extend(reports.flat_map(|(_, report)| report.troubles.iter().cloned()));
    bar.set(1.0, "what each cut takes at the worst");
    let exposed = if stopped { None } else { exposure(&run, &*system, choice, &go_on) };
    // The signal may have come as late as this.
    let stopped = !go_on();
    let exposed = exposed.filter(|_| !stopped).unwrap_or_default();
    bar.finish();
    let found_by_calls = by_calls.as_ref().is_some_and(|of| !of.findings.is_empty());
    let found = !outcome.findings.is_empty() || found_by_calls || reactions.is_wrong();
    let recording = match (&args.record, !found) {
        (Some(path), _) if saved.as_ref().is_some_and(Result::is_ok) => Some(path.clone()),
        (_, true) => None,
        // What was found is reported also without a recording.
        (_, false) => match saved_aside(&run) {
            Ok(path) => Some(path),
            Err(e) => {
                terminal::note(&format!("no recording is kept: {}", terminal::with_causes(&e)));
                None
            }
        },
    };
    let report = Report {
        setup: &setup,
        run: &run,
        ended: &ended,
        judge: judge.as_ref(),
        without_cut: without_cut.and_then(|said| said.summary()),
        outcome: &outcome,
        exposed: &exposed,
        stopped,
        recording: recording.as_deref(),
        decisive: decisive.as_ref(),
        by_calls: by_calls.as_ref(),
        reactions: &reactions,
    };
    stops::end_with_signals();
    // What was found counts, whoever reads it.
    let out = &mut UntilClosed::new(out);
    if args.json {
        report::json(&report, out)?
    } else {
        report::text(&report, out)?
    }
    if found {
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

/// A failure of this machine says nothing of the program: status 1 is for what was found.
fn not_judged(e: anyhow::Error) -> anyhow::Error {
    super::not_found(e, "nothing was judged: ")
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

/// The first finding's state, and the tree before the run.
fn first(
    exploration: &Exploration<'_>,
    outcome: &ExplorationReport,
) -> Option<(steadfast_crash::states::State, steadfast_crash::program::Tree)> {
    let state = exploration.state(outcome.findings.first()?.state)?;
    Some((state, exploration.base().ok()?))
}

fn save(run: &ProgramRun, path: &Path) -> Result<()> {
    whole_file::write_by(path, |to| file::save(run, to)).with_context(|| path.display().to_string())
}

/// Whether a path leads to the standard output or error: the program's lines, the report and notes
/// would be among a recording's bytes.
fn is_output(path: &Path) -> bool {
    let Ok(there) = std::fs::metadata(path) else { return false };
    // Of devices a terminal alone keeps what it is given.
    let keeps =
        |output: BorrowedFd<'_>| !there.file_type().is_char_device() || output.is_terminal();
    [rustix::stdio::stdout(), rustix::stdio::stderr()].into_iter().any(|output| {
        let same = Identity::of(&output).is_ok_and(|of| of == Identity::in_metadata(&there));
        same && keeps(output)
    })
}

/// Keeps a recording that nobody asked for, because something was found.
fn saved_aside(run: &ProgramRun) -> Result<PathBuf> {
    let kept = tempfile::Builder::new().prefix("steadfast-").suffix(".crash").tempfile()?;
    save(run, kept.path())?;
    let (_, path) = kept.keep()?;
    Ok(path)
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
