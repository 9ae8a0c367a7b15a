//! A recording that is judged in parts, by several processes, and what all parts together say: what
//! `crash run` says that has made the recording and judges it alone.
//!
//! A part has no clock and no other threads, so it says the same wherever it runs. How often the
//! judge was run is not among what it says: it depends on which parts one process has.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use steadfast_crash::explore::{Plan, System};
use steadfast_crash::persistence::Model;
use steadfast_crash::program::explore::{Exploration, ExplorationSum, InstantsReport};
use steadfast_crash::program::exposure::{ExposureSummary, exposure, summary};
use steadfast_crash::program::{
    AskedOnce, Command, Judges, JudgesAtOnce, ProgramRun, RecoveredTree, file, recover,
};

use super::ci::findings::merged;
use super::ci::results::Results;
use super::cli::JudgeArgs;
use super::ended::RecordedEnd;
use super::explored::{ExplorationOutcome, decisive};
use super::judge_files::{JudgeFiles, JudgeWithFiles, UnprivilegedJudge};
use super::judge_namespaces::JudgeNamespaces;
use super::judged::{E2FSCK_EVERY, JudgedRun};
use super::models::{self, ModelPlan, ModelReports};
use super::report::{self, Report};
use super::run::refuse_unjudged;
use super::setup::{self, Fs, Setup};
use crate::terminal::UntilClosed;
use crate::{CommandEnd, Usage};

/// Which recording is judged, and how: options of `crash run`, and `owners` of `crash show`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DividedOptions {
    /// The recording's file.
    pub recording: PathBuf,
    /// The judge's command.
    #[serde(default)]
    pub judge: Option<String>,
    #[serde(default)]
    judge_prints: Option<String>,
    #[serde(default = "minute")]
    judge_limit: f64,
    #[serde(default = "auto_namespaces")]
    judge_namespaces: JudgeNamespaces,
    #[serde(default = "auto_files")]
    judge_files: JudgeFiles,
    #[serde(default = "posix")]
    model: Vec<String>,
    #[serde(default)]
    ignore_status: bool,
    #[serde(default)]
    owners: bool,
}

fn minute() -> f64 {
    60.0
}

fn auto_namespaces() -> JudgeNamespaces {
    JudgeNamespaces::Auto
}

fn auto_files() -> JudgeFiles {
    JudgeFiles::Auto
}

fn posix() -> Vec<String> {
    vec![Model::Posix.name().to_owned()]
}

/// A part of what is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunPart {
    /// The calls alone, by models.
    Calls,
    /// What the cuts take at the worst.
    Exposure,
    /// All states of one instant.
    Instant(u64),
}

impl RunPart {
    /// Its name in a plan.
    pub fn name(self) -> String {
        match self {
            RunPart::Calls => "calls".into(),
            RunPart::Exposure => "exposure".into(),
            RunPart::Instant(number) => format!("instant-{number}"),
        }
    }
}

/// What came of a part.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PartOutcome {
    Calls(ModelReports),
    Exposure(Option<ExposureSummary>),
    Instant(InstantsReport),
}

/// Runs one part after the other; or says why one cannot be judged.
pub type PartRunner<'a> = dyn FnMut(RunPart) -> Result<Value, String> + 'a;

/// A recording, and how it is judged.
pub struct DividedRun {
    options: DividedOptions,
    run: ProgramRun,
    setup: Setup,
    end: RecordedEnd,
    system: Box<dyn System>,
    judge: Option<Command>,
    models: Vec<Model>,
}

impl DividedRun {
    /// Reads the recording.
    pub fn open(options: DividedOptions) -> Result<DividedRun> {
        let shown = options.recording.display().to_string();
        let bad = |e: String| Usage(format!("{shown}: {e}"));
        let run = file::load(&options.recording).map_err(|e| bad(e.to_string()))?;
        let setup = Setup::from_about(&run.about).map_err(bad)?;
        if let Fs::Kernel(_) = setup.fs {
            let what = "it is for a kernel to mount, and each machine's is another one: such a \
                        recording is judged by `crash run` alone";
            return Err(bad(what.into()).into());
        }
        let (_, by_lines) = setup::choice_from(&run.about).map_err(bad)?;
        if by_lines != options.judge.is_some() {
            let what = match by_lines {
                true => "it was recorded with a judge, which the numbers of its states depend on",
                false => "it was recorded without a judge, and the numbers of its states differ",
            };
            let then = "so that `crash show` finds them: say the same here, or record it again";
            return Err(bad(format!("{what}, {then}")).into());
        }
        let end = RecordedEnd::from_about(&run.about).map_err(bad)?;
        let judge = setup::judge(&JudgeArgs {
            command: options.judge.clone(),
            prints: options.judge_prints.clone(),
            limit: options.judge_limit,
            namespaces: options.judge_namespaces,
        })?;
        let models = models::asked(&options.model, std::slice::from_ref(&setup))?;
        let (run, system) = (setup.on_media(run), setup.system()?);
        Ok(DividedRun { options, run, setup, end, system, judge, models })
    }

    fn exploration<'a>(&'a self, judge: Option<&'a dyn Judges>) -> Result<Exploration<'a>> {
        let bad = |e| Usage(format!("{}: {e}", self.options.recording.display()));
        let (choice, by_lines) = setup::choice_from(&self.run.about).map_err(bad)?;
        let plan = Plan { e2fsck_every: E2FSCK_EVERY, ..Plan::from(choice) };
        let (run, system) = (&self.run, &*self.system);
        Ok(Exploration { run, system, judge, plan, by_lines, workers: 1 })
    }

    /// All parts: those first that take longest.
    pub fn parts(&self) -> Result<Vec<RunPart>> {
        let mut parts = Vec::new();
        if !self.run.calls.is_empty() {
            parts.extend((!self.models.is_empty()).then_some(RunPart::Calls));
            parts.push(RunPart::Exposure);
        }
        parts.extend((0..self.exploration(None)?.instants()).map(RunPart::Instant));
        Ok(parts)
    }

    /// Lets `user` run parts, once it is known that the judge can be run.
    pub fn with_runner(
        &self,
        user: &mut dyn FnMut(&mut PartRunner<'_>) -> Result<()>,
    ) -> Result<()> {
        let place = match self.judge {
            Some(_) => self.options.judge_files.place()?,
            None => None,
        };
        let at_once = JudgesAtOnce::fixed(1);
        let files = self.judge.as_ref().map(|j| JudgeWithFiles::new(j, place.as_ref(), at_once));
        let owners = self.options.owners;
        let judge = files.as_ref().map(|judge| UnprivilegedJudge { judge, owners });
        let once = judge.as_ref().map(|judge| AskedOnce::new(judge));
        let judge = once.as_ref().map(|judge| judge as &dyn Judges);
        self.try_judge(judge)?;
        let exploration = self.exploration(judge)?;
        let mut divided = exploration.divided().map_err(|e| anyhow!(e))?;
        user(&mut |part| {
            let outcome = match part {
                RunPart::Calls => PartOutcome::Calls(self.by_calls(&exploration)?),
                RunPart::Exposure => {
                    let (run, system) = (&self.run, &*self.system);
                    let exposed = exposure(run, system, exploration.plan.choice(), &|| true);
                    PartOutcome::Exposure(summary(&exposed.unwrap_or_default()))
                }
                RunPart::Instant(number) => {
                    PartOutcome::Instant(divided.explore(number..number.saturating_add(1)))
                }
            };
            serde_json::to_value(outcome).map_err(|e| e.to_string())
        })
    }

    /// Refuses a judge that cannot be run: it would find every state wrong.
    fn try_judge(&self, judge: Option<&dyn Judges>) -> Result<()> {
        let Some(judge) = judge else { return Ok(()) };
        let end = recover(&*self.system, self.run.contents_at_end()).map_err(|e| anyhow!(e))?;
        // What cannot be read, no judge is asked of.
        let Ok(tree) = end.tree else { return Ok(()) };
        let said = judge.judge(&RecoveredTree { tree: &tree, contents: None }, b"");
        let said = said.context("asking the judge")?;
        if said.cannot_run() {
            let why = said.summary().unwrap_or_default();
            usage!("{why}: there is no such judge on this machine, or it cannot be run");
        }
        Ok(())
    }

    fn by_calls(&self, exploration: &Exploration<'_>) -> Result<ModelReports, String> {
        let base = exploration.base().map_err(|e| e.to_string())?;
        let others = self.system.file_systems().len() == 1;
        let seed = exploration.plan.seed;
        let plan = ModelPlan { seed, workers: 1, by_value: false, others };
        Ok(models::explore(&self.models, (&self.run, &base), exploration.judge, plan, &|_| true))
    }
}

/// What came of the parts, as far as they were taken in.
#[derive(Default)]
pub struct DividedResults {
    states: ExplorationSum,
    by_calls: Option<ModelReports>,
    exposed: Option<ExposureSummary>,
}

impl DividedResults {
    /// Takes a part in; they come in order.
    ///
    /// # Errors
    /// It is not that of this part; in words.
    pub fn take(&mut self, part: RunPart, outcome: Result<Value, String>) -> Result<(), String> {
        let outcome = match outcome {
            Ok(value) => serde_json::from_value(value).map_err(|e| e.to_string())?,
            Err(why) => {
                self.states.take_trouble(format!("not judged: {}: {why}", part.name()));
                return Ok(());
            }
        };
        match (part, outcome) {
            (RunPart::Calls, PartOutcome::Calls(reports)) => self.by_calls = Some(reports),
            (RunPart::Exposure, PartOutcome::Exposure(exposed)) => self.exposed = exposed,
            (RunPart::Instant(_), PartOutcome::Instant(report)) => self.states.take(report)?,
            (part, _) => return Err(format!("it is no result of {}", part.name())),
        }
        Ok(())
    }
}

impl DividedRun {
    /// What all parts say, as `crash run` would: for people to `text`, all of it or (false) on one
    /// screen; as JSON to `json`.
    pub fn finish(
        self,
        results: DividedResults,
        text: Option<(bool, &mut dyn Write)>,
        json: Option<&mut dyn Write>,
    ) -> Result<CommandEnd> {
        let DividedResults { states, by_calls, exposed } = results;
        let mut outcome = states.report();
        let decisive = self.decisive(&outcome)?;
        let states_troubles = outcome.troubles.len();
        let reports = by_calls.iter().flat_map(|of| &of.reports);
        outcome.troubles.extend(reports.flat_map(|(_, report)| report.troubles.iter().cloned()));
        let (stopped, spent) = (false, false);
        let explored = ExplorationOutcome {
            outcome,
            states_troubles,
            by_calls,
            decisive,
            exposed,
            stopped,
            spent,
        };
        let DividedRun { options, run, setup, end, judge, .. } = self;
        let program = run.about.get("program").cloned().unwrap_or_default();
        let without_cut = judge.as_ref().and_then(|judge| end.said_by(judge));
        let judged = JudgedRun::new(&setup, (run, end), explored, judge.is_some());
        let kept = Some(options.recording);
        let runs = [JudgedRun { without_cut, kept, ..judged }];
        let mut findings = merged(runs.iter().enumerate().map(|(n, run)| run.findings(n)));
        let kept: Vec<(Option<&Path>, Fs)> =
            runs.iter().map(|run| (run.kept.as_deref(), setup.fs)).collect();
        findings.iter_mut().for_each(|finding| finding.show_by(&kept, judge.as_ref()));
        let tested = (std::slice::from_ref(&program), options.ignore_status);
        let results = Results::of(&runs, tested, &findings, None).context("there is a run")?;
        let judge = judge.as_ref();
        let report = Report { runs: &runs, skipped: &[], judge, results: &results, budget: None };
        let is_read = text.is_some();
        if let Some((wide, out)) = text {
            report::text(&report, wide, &mut UntilClosed::new(out))?;
        }
        if let Some(out) = json {
            report::json::print(&report, out)?;
        }
        if !findings.is_empty() {
            return Ok(CommandEnd::Problem);
        }
        refuse_unjudged(&runs, !is_read, options.ignore_status)?;
        Ok(CommandEnd::Good)
    }

    /// Which writes matter of the first finding: looked for here, where that is known.
    fn decisive(
        &self,
        outcome: &steadfast_crash::program::explore::ExplorationReport,
    ) -> Result<Option<steadfast_crash::explore::Decisive>> {
        if outcome.findings.is_empty() {
            return Ok(None);
        }
        let owners = self.options.owners;
        let judge = self.judge.as_ref().map(|judge| UnprivilegedJudge { judge, owners });
        let once = judge.as_ref().map(|judge| AskedOnce::new(judge));
        let judge = once.as_ref().map(|judge| judge as &dyn Judges);
        self.try_judge(judge)?;
        Ok(decisive(&self.exploration(judge)?, outcome, &|| true))
    }
}
