//! A run that was recorded, then explored and judged.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use steadfast_crash::explore::Plan;
use steadfast_crash::persistence::Model;
use steadfast_crash::program::describe::counted;
use steadfast_crash::program::explore::Exploration;
use steadfast_crash::program::{
    AskedOnce, Command, JudgeCounts, Judges, ProgramRun, RecoveredTree, file,
};

use super::ci::findings::{Finding, Sources};
use super::cli::CrashRun;
use super::ended::{JudgedEnd, RecordedEnd, RunEnd};
use super::explored::{ExplorationOutcome, Explorer};
use super::failures::not_judged;
use super::file_systems;
use super::judge_files::{self, JudgeWithFiles};
use super::own::OwnRun;
use super::reactions::ReactionReport;
use super::setup::{self, Fs, Setup};
use crate::commands::whole_file;
use crate::terminal::{self, Progress};

/// Every so many states e2fsck is asked too, where it is installed.
pub const E2FSCK_EVERY: u64 = 50;

/// How recorded runs are judged.
pub struct JudgingPlan<'a> {
    /// The command line.
    pub args: &'a CrashRun,
    /// The file systems: one, or the program is run on each.
    pub setups: &'a [Setup],
    /// Who judges.
    pub judge: Option<&'a Command>,
    /// The models that the calls are judged by.
    pub models: &'a [Model],
}

/// A run that was recorded.
pub struct RecordedProgram {
    /// The recording, and what it left.
    pub left: OwnRun,
    /// So many signals have stopped a step.
    pub answered: usize,
    /// Lines that were too many.
    pub left_out: u64,
    /// Shows how far it is.
    pub bar: Progress,
}

/// What came of a run.
pub struct JudgedRun<'a> {
    /// What it was recorded on.
    pub setup: &'a Setup,
    /// The recording.
    pub run: ProgramRun,
    /// How the program ended, or a server and its client.
    pub ended: RunEnd,
    /// What its states and calls show.
    pub explored: ExplorationOutcome,
    /// How often the judge was asked, where that is counted.
    pub asked: Option<JudgeCounts>,
    /// What the judge has against the tree that the program left, without any cut.
    pub without_cut: Option<String>,
    /// What the program said and asked for, and what it did when calls of its own failed.
    pub reactions: ReactionReport,
    /// Whether the recording that somebody asked for is there.
    pub saved: Option<bool>,
    /// Where the recording is.
    pub kept: Option<PathBuf>,
}

impl RecordedProgram {
    /// Cuts the power of the recorded run and judges what is left.
    pub fn judged<'a>(
        self,
        plan: &JudgingPlan<'_>,
        setup: &'a Setup,
        stops: &AtomicUsize,
    ) -> Result<JudgedRun<'a>> {
        let RecordedProgram { left, answered, left_out, bar } = self;
        let OwnRun { mut run, tree, ended, never_came } = left;
        let mut end = RecordedEnd { ended, never_came, left_out, judged: None };
        let JudgingPlan { args, setups, judge, models } = *plan;
        let choice = setup::choice(setup, args)?;
        run = setup.on_media(run);
        let by_lines = judge.is_some();
        run.about.extend(setup::about_choice(&choice, by_lines));
        run.about.insert("program".into(), args.program.join(" "));
        run.about.extend(args.client.client.iter().map(|client| ("client".into(), client.clone())));
        // What fails here is said once the recording is there.
        let system = setup.system();
        let workers = workers(args, setup.fs);
        let place = judge.and_then(|_| args.judge_files.place().transpose()).transpose();
        let (place, no_place) = place.map_or_else(|e| (None, Some(e)), |place| (place, None));
        let with_files = judge.map(|judge| {
            let at_once = judge_files::at_once(asked_jobs(args), workers, judge);
            (at_once.threads(), JudgeWithFiles::new(judge, place.as_ref(), at_once))
        });
        let workers = with_files.as_ref().map_or(workers, |(threads, _)| *threads);
        let once = with_files.as_ref().map(|(_, judge)| AskedOnce::new(judge));
        let printed = run.printed_text(run.recording.last_crash_point());
        let without_cut = once
            .as_ref()
            .zip(tree.as_ref().ok())
            .map(|(judge, tree)| judge.judge(&RecoveredTree { tree, contents: None }, &printed));
        let said = without_cut.as_ref().and_then(|said| said.as_ref().ok());
        end.judged = judge.zip(said).map(|(Command { command, prints, .. }, said)| JudgedEnd {
            command: command.clone(),
            prints: prints.clone(),
            bad: said.summary(),
        });
        run.about.extend([end.about()?]);
        // Where it cannot be written the run is judged all the same: that may take long to do
        // again.
        let path =
            args.record.as_deref().map(|path| file_systems::record_path(path, setups, setup));
        let saved = path.as_ref().map(|path| save(&run, path));
        if let Some(Err(e)) = &saved {
            terminal::error(e);
        }
        no_place.map_or(Ok(()), Err)?;
        let system = system?;
        let without_cut =
            without_cut.transpose().context("asking the judge").map_err(not_judged)?;
        if let Some(said) = without_cut.as_ref().filter(|said| said.cannot_run()) {
            usage!(
                "{}: there is no such judge, or it cannot be run",
                said.summary().unwrap_or_default()
            );
        }
        let exploration = Exploration {
            run: &run,
            system: &*system,
            judge: once.as_ref().map(|once| once as &dyn Judges),
            plan: Plan { e2fsck_every: E2FSCK_EVERY, ..Plan::from(choice) },
            by_lines,
            workers,
        };
        let go_on = || stops.load(Ordering::Relaxed) <= answered;
        let budget = args.budget.as_ref().map(|budget| budget.part_of(setups.len()));
        let explorer = Explorer {
            exploration: &exploration,
            choice,
            models,
            budget: budget.as_ref(),
            go_on: &go_on,
            bar: &bar,
        };
        let explored = explorer.explored()?;
        bar.finish();
        let saved = saved.map(|saved| saved.is_ok());
        let kept = path.filter(|_| saved == Some(true));
        let without_cut = without_cut.and_then(|said| said.summary());
        let asked = with_files.as_ref().and_then(|(_, judge)| judge.counts());
        let judged = JudgedRun::new(setup, (run, end), explored, judge.is_some());
        Ok(JudgedRun { asked, without_cut, saved, kept, ..judged })
    }
}

impl<'a> JudgedRun<'a> {
    /// Of a run that has ended so and was explored.
    pub fn new(
        setup: &'a Setup,
        (run, end): (ProgramRun, RecordedEnd),
        mut explored: ExplorationOutcome,
        has_judge: bool,
    ) -> JudgedRun<'a> {
        let RecordedEnd { ended, never_came, left_out, .. } = end;
        if left_out > 0 {
            let lines = counted(left_out, "line");
            let what = format!("{lines} of the program, which printed too much");
            match has_judge {
                // One that has not seen what was acknowledged has not judged.
                true => {
                    explored.outcome.troubles.insert(0, format!("not judged: {what}"));
                    explored.states_troubles += 1;
                }
                false => drop(explored.outcome.unmeasured.insert(what)),
            }
        }
        explored.outcome.unmeasured.extend(never_came);
        let reactions = ReactionReport::of(&run, has_judge);
        explored.outcome.unmeasured.extend(reactions.unmeasured());
        let (asked, without_cut, saved, kept) = (None, None, None, None);
        JudgedRun { setup, run, ended, explored, asked, without_cut, reactions, saved, kept }
    }
}

impl JudgedRun<'_> {
    /// What was found; `number`: which run it is.
    pub fn findings(&self, number: usize) -> Vec<Finding<'_>> {
        let (outcome, by_calls) = (&self.explored.outcome, self.explored.by_calls.as_ref());
        let reactions = self.reactions.findings(&self.run);
        let stacks = &self.run.stacks;
        Sources { number, setup: self.setup, outcome, by_calls, reactions, stacks }.findings()
    }

    /// How the program failed, if it did: it may not have done what was to be tested. One that was
    /// stopped, or whose calls were made to fail, may end as it likes.
    pub fn has_failed(&self) -> Option<String> {
        let is_forced = self.run.calls.iter().any(|call| call.injected.is_some());
        self.ended.failed().filter(|_| !is_forced)
    }

    /// Keeps the recording aside if nobody has asked for it, and something new was found.
    pub fn keep(&mut self, is_new: bool) {
        if self.kept.is_none() && is_new {
            self.kept = saved_aside(&self.run);
        }
    }
}

fn asked_jobs(args: &CrashRun) -> Option<usize> {
    args.jobs.and_then(|jobs| usize::try_from(jobs).ok())
}

/// How many states are judged at the same time.
fn workers(args: &CrashRun, fs: Fs) -> usize {
    asked_jobs(args).unwrap_or_else(|| match fs {
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
