//! Tasks side by side: the schedule is explored too.

use std::fmt::Display;
use std::sync::Arc;

use steadfast_crash::CrashError;
use steadfast_crash::program::inside::{InProcess, InProcessRun, Program};
use steadfast_crash::program::side_by_side::{Schedule, Task, each_schedule, side_by_side};
use steadfast_crash::program::{Judges, ProgramRun};
use steadfast_crash::states::Choice;
use steadfast_devices::store::Store;
use steadfast_runtime::{Preemption, PreemptionPoint};

use super::failure::Failure;
use super::recorded::ProgramRecording;
use super::running::{NextBoot, ProgramFs};

/// The tasks of one run, each with a name.
///
/// ```
/// use steadfast::crash::Tasks;
///
/// let tasks = Tasks::new()
///     .task("writer", |fs| fs.write("/file", "text"))
///     .task("cleaner", |fs| fs.remove_file("/old"));
/// ```
#[must_use = "tasks do nothing by themselves"]
#[derive(Default)]
pub struct Tasks(Vec<Task>);

impl Tasks {
    /// None yet.
    ///
    /// ```
    /// let tasks = steadfast::crash::Tasks::new();
    /// ```
    pub fn new() -> Tasks {
        Tasks::default()
    }

    /// One more.
    ///
    /// ```
    /// let tasks = steadfast::crash::Tasks::new().task("syncs", |fs| fs.sync());
    /// ```
    pub fn task<E: Display>(
        mut self,
        name: &str,
        work: impl FnOnce(&ProgramFs) -> Result<(), E> + Send + 'static,
    ) -> Tasks {
        let work = Box::new(move |fs, said: &_| {
            let running = ProgramFs::new(fs, Clone::clone(said));
            work(&running).map_err(|e: E| CrashError::Run(format!("the program failed: {e}")))
        });
        self.0.push(Task { name: name.to_owned(), work });
        self
    }
}

/// Which schedules of the tasks are run.
#[derive(Debug, Clone)]
pub(super) struct ScheduleOptions {
    /// Preemptions, at the most.
    pub preemptions: usize,
    /// Schedules, at the most.
    pub most: u64,
    /// Only this one.
    pub only: Option<Result<Schedule, CrashError>>,
}

/// Tasks side by side, which [`judge`](TaskExploration::judge) or [`check`](TaskExploration::check)
/// runs in every schedule, and cuts in each.
///
/// ```
/// use steadfast::crash::{PowerCut, Tasks};
///
/// let scheduled = PowerCut::new().cuts(10).preemptions(1).run_tasks(|| {
///     Tasks::new()
///         .task("one", |fs| fs.write("/one", "1"))
///         .task("other", |fs| fs.write("/other", "2"))
/// });
/// let report = scheduled.check().unwrap();
/// assert!(report.schedules > 2 && report.schedules_left == 0);
/// ```
#[must_use = "nothing is run before `judge` or `check`"]
pub struct TaskExploration {
    pub(super) inside: InProcessRun,
    pub(super) choice: Choice,
    pub(super) prepare: Program,
    pub(super) schedules: ScheduleOptions,
    pub(super) tasks: Box<dyn Fn() -> Tasks>,
}

/// What was tried, where nothing was found.
///
/// ```
/// use steadfast::crash::{PowerCut, Tasks};
///
/// let test = PowerCut::new().cuts(5).schedules(1);
/// let tasks = || Tasks::new().task("a", |fs| fs.sync()).task("b", |fs| fs.write("/b", "2"));
/// let report = test.run_tasks(tasks).check().unwrap();
/// assert_eq!(report.schedules, 1);
/// assert!(report.schedules_left > 0, "the other task did not begin");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ScheduledReport {
    /// Schedules that were run.
    pub schedules: u64,
    /// Of these, schedules in which something else happened than in all before; those were cut.
    pub distinct: u64,
    /// Schedules that were known and not run, because there were more than allowed.
    pub schedules_left: u64,
    /// Instants at which the power was cut, over all schedules.
    pub cuts: u64,
    /// States that were recovered.
    pub states: u64,
}

impl TaskExploration {
    /// As [`ProgramRecording::judge`], in every schedule.
    ///
    /// ```
    /// use steadfast::crash::{NextBoot, PowerCut, Tasks};
    ///
    /// let tasks = || {
    ///     Tasks::new()
    ///         .task("a", |fs| fs.write("/a", "1"))
    ///         .task("b", |fs| fs.write("/b", "2"))
    /// };
    /// let judge = |left: &NextBoot| match left.exists("/c") {
    ///     Ok(false) => Ok(()),
    ///     _ => Err("there is a third file"),
    /// };
    /// PowerCut::new().cuts(10).run_tasks(tasks).judge(judge).unwrap();
    /// ```
    ///
    /// # Errors
    /// The first state that is wrong, described, and its schedule, of those with the fewest
    /// preemptions; that the program could not be run.
    pub fn judge<E: Display>(
        self,
        judge: impl Fn(&NextBoot) -> Result<(), E> + Send + Sync + 'static,
    ) -> Result<ScheduledReport, Failure> {
        let options = self.inside.options.clone();
        let judge = Arc::new(move |fs, lines| {
            judge(&NextBoot::new(fs, lines)).err().map(|e| e.to_string())
        });
        self.explore(Some(&InProcess { options, judge }))
    }

    /// As [`ProgramRecording::check`], in every schedule.
    ///
    /// ```
    /// use steadfast::crash::{PowerCut, Tasks};
    ///
    /// let tasks = || Tasks::new().task("a", |fs| fs.sync()).task("b", |fs| fs.write("/b", "2"));
    /// PowerCut::new().cuts(10).run_tasks(tasks).check().unwrap();
    /// ```
    ///
    /// # Errors
    /// As for [`judge`](Self::judge).
    pub fn check(self) -> Result<ScheduledReport, Failure> {
        self.explore(None)
    }

    fn explore(self, judge: Option<&dyn Judges>) -> Result<ScheduledReport, Failure> {
        let TaskExploration { inside, choice, prepare, schedules, tasks } = self;
        let bases = inside.prepare(prepare).map_err(Failure::not_run)?;
        let mut report = ScheduledReport::default();
        let mut record = |schedule: &Schedule| {
            let run = record(&inside, &bases, tasks().0, schedule);
            run.map_err(|why| Failure::not_run(format!("{why}\n{}", named(schedule))))
        };
        let mut each = |schedule: &Schedule, run: ProgramRun| {
            let recorded = ProgramRecording::new(Ok(run), inside.options.clone(), choice);
            let found = recorded.explore(judge);
            let found = found.map_err(|failure| failure.and(&named(schedule)))?;
            report.cuts += found.cuts;
            report.states += found.states;
            Ok(())
        };
        if let Some(only) = schedules.only {
            let only = only.map_err(Failure::not_run)?;
            let (run, _) = record(&only)?;
            each(&only, run)?;
            return Ok(ScheduledReport { schedules: 1, distinct: 1, ..report });
        }
        let bounds = (tasks().0.len(), schedules.preemptions, schedules.most);
        if bounds.0 == 0 {
            return Err(Failure::not_run("there is no task to run"));
        }
        let counts = each_schedule(bounds, &mut record, &mut each)?;
        let (schedules, distinct) = (counts.run, counts.distinct);
        Ok(ScheduledReport { schedules, distinct, schedules_left: counts.left, ..report })
    }
}

/// A schedule in words, and how to run it alone.
fn named(schedule: &Schedule) -> String {
    format!("Schedule {schedule}: to run only this one, `.only_schedule(\"{schedule}\")`.")
}

fn record(
    inside: &InProcessRun,
    bases: &[Store],
    tasks: Vec<Task>,
    schedule: &Schedule,
) -> Result<(ProgramRun, Vec<PreemptionPoint>), CrashError> {
    if schedule.begins >= tasks.len() {
        let what = format!("there is no task {} of {}", schedule.begins, tasks.len());
        return Err(CrashError::Words(what));
    }
    let preemption = Preemption::at(&schedule.points);
    let program = side_by_side(tasks, schedule.begins, &preemption);
    let run = inside.record_on(bases.to_vec(), program)?;
    Ok((run, preemption.passed()))
}
