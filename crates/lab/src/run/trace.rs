//! One variant's speed and power cuts under the calls of a recorded program.

mod judged;

use std::sync::Arc;
use std::time::Duration;

use steadfast_crash::CrashError;
use steadfast_crash::account::{Account, History};
use steadfast_crash::explore::{CrashPoints, CutSource, Plan};
use steadfast_crash::risk::{FilesRun, Speed};
use steadfast_devices::filter::record::{Durability, RecordLog, RecordedDevice};
use steadfast_peers::Begin;
use steadfast_runtime::sleep;
use steadfast_trace::TraceError;
use steadfast_trace::replay::{self, ReplayFigures, ReplayObserver, TraceSource};
use steadfast_vfs::FileSystem;

use self::judged::ReplayAccount;
use super::controls::cut_with_controls;
use super::files::{self, RealPart};
use super::power;
use super::reals::MEMORY;
use super::recorded;
use super::setting::{Part, Report, Subject};
use super::workload::{Cuttable, FileSystemWork, JobResult, RealRuns, Workload};
use crate::results::{ClockKind, FilesRow, JudgedScope, Path, RiskRow};
use crate::scenario::{self, TraceSpec, Variant};
use crate::{Result, VariantError};

/// What the record notes when the program has ended; its details mean nothing.
const ENDED: u64 = 0x7472_6163_6565_6e64;
/// Of what came out otherwise than it was recorded so many kinds are named.
const KINDS: usize = 3;

/// The workload of a trace: one run is measured and cut.
pub(super) struct TraceLoad(pub TraceSpec);

impl TraceLoad {
    fn source(&self) -> Arc<dyn TraceSource> {
        Arc::new(self.0.source())
    }

    /// What is wrong with the trace, in words.
    fn wrong(file: &str) -> impl Fn(TraceError) -> VariantError + use<> {
        let file = file.to_owned();
        move |e| VariantError::Trace(format!("{file}: {e}"))
    }
}

impl Workload for TraceLoad {
    fn command(&self) -> Option<String> {
        Some(self.0.description())
    }

    fn parts(&self, of: Subject<'_>) -> Vec<Part> {
        let part = if of.is_cut() { Part::Risk } else { Part::Speed };
        (of.is_cut() || of.variant.run.speed()).then_some(part).into_iter().collect()
    }

    fn run(&self, of: Subject<'_>, part: Part, report: Report) -> Result<JobResult> {
        let real = match files::real(of, &plan(of), &report)? {
            Some(RealPart::Whole(result)) => return Ok(result),
            Some(RealPart::Ours(speeds, _)) => Some(speeds),
            None => None,
        };
        if part == Part::Speed {
            let replayed = self.replayed(of)?;
            return Ok(outcome(of, &replayed, real));
        }
        let (Cuttable { machine, recorded, plan }, replayed, scope) = self.cuttable(of)?;
        let keeps = |d: &RecordedDevice| {
            matches!(d.durability, Durability::OnCompletion | Durability::OnStore)
        };
        let no_volatile_cache = recorded.recording.devices().iter().all(keeps);
        let scope = Some(JudgedScope { no_volatile_cache, ..scope });
        let (risk, ages) = cut_with_controls(of, (&machine, recorded), &plan, &report)?;
        // The same calls on every variant, and so one number.
        let risk = RiskRow { programs: Some(replayed.calls), scope, ..risk };
        Ok(outcome(of, &replayed, real).with([risk]).with([ages]))
    }

    fn recorded(&self, of: Subject<'_>) -> Option<Result<Cuttable>> {
        Some(self.cuttable(of).map(|(cuttable, ..)| cuttable))
    }

    fn on_file_system(&self, of: Subject<'_>) -> Option<FileSystemWork> {
        let memory_bytes = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
        let (trace, pace, variant) = (self.source(), self.0.pace(), of.variant.clone());
        let wrong = TraceLoad::wrong(&self.0.file);
        let run = move |fs: Arc<dyn FileSystem>| {
            let nobody: Arc<dyn ReplayObserver> = Arc::new(());
            let (replayed, _) =
                replay::run(&trace, &fs, (pace, nobody), || Ok(())).map_err(wrong)?;
            Ok(JobResult::of(row(&variant, &replayed, ClockKind::Wall)))
        };
        Some(FileSystemWork { memory_bytes, run: Box::new(run) })
    }

    fn in_real_time(&self, _: &scenario::Workload) -> Option<RealRuns> {
        let run = |load: TraceLoad| {
            move |fs: &Arc<dyn FileSystem>, log: &RecordLog, begin: Begin<'_>| {
                let (replayed, history, _) =
                    load.judged(fs, log, begin).map_err(CrashError::host)?;
                let (speed, programs) = (speed(&replayed), replayed.calls);
                Ok((FilesRun { history, speed, programs }, differences(&replayed)))
            }
        };
        let (measured, cut) = (TraceLoad(self.0.clone()), TraceLoad(self.0.clone()));
        Some(RealRuns { measured: Box::new(run(measured)), cut: Box::new(run(cut)) })
    }
}

impl TraceLoad {
    /// The run that is measured and not cut: on the same used devices, with nothing noted.
    fn replayed(&self, of: Subject<'_>) -> Result<ReplayFigures> {
        let memory = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
        let (trace, pace) = (self.source(), self.0.pace());
        let wrong = TraceLoad::wrong(&self.0.file);
        let (_, (_, _, replayed)) =
            recorded::recorded(of, (memory, false), move |fs, log, begin| {
                let begin = || {
                    begin().map_err(|e| TraceError::Prepare(e.to_string()))?;
                    log.pause(true);
                    Ok(())
                };
                let nobody: Arc<dyn ReplayObserver> = Arc::new(());
                Ok(replay::run(&trace, fs, (pace, nobody), begin).map_err(wrong)?.0)
            })?;
        Ok(replayed)
    }

    /// The run that is measured and cut.
    fn cuttable(&self, of: Subject<'_>) -> Result<(Cuttable, ReplayFigures, JudgedScope)> {
        let memory = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
        let load = TraceLoad(self.0.clone());
        let (machine, (bases, recording, ran)) =
            recorded::recorded(of, (memory, false), move |fs, log, begin| {
                load.judged(fs, log, begin)
            })?;
        let (replayed, history, scope) = ran;
        let recorded = CutSource { bases, recording, judge: Arc::new(history) };
        Ok((Cuttable { machine, recorded, plan: plan(of) }, replayed, scope))
    }

    /// A replay whose calls are judged after cuts.
    fn judged(
        &self,
        fs: &Arc<dyn FileSystem>,
        log: &RecordLog,
        begin: Begin<'_>,
    ) -> Result<(ReplayFigures, History, JudgedScope)> {
        let judged = Arc::new(ReplayAccount::new(Account::new(log).with_others(), &**fs));
        let observer = Arc::clone(&judged) as Arc<dyn ReplayObserver>;
        let begin = || begin().map_err(|e| TraceError::Prepare(e.to_string()));
        let wrong = TraceLoad::wrong(&self.0.file);
        let how = (self.0.pace(), observer);
        let (replayed, _) = replay::run(&self.source(), fs, how, begin).map_err(wrong)?;
        // What nobody has synced is at risk while the program does something else, too.
        sleep(replayed.tail);
        log.note(ENDED, [0; 3]);
        Ok((replayed, judged.history(), judged.scope()))
    }
}

/// The cuts of a variant: also while the program waits, and until it has ended.
fn plan(of: Subject<'_>) -> Plan {
    let spread = power::plan(of);
    Plan { places: CrashPoints::WithPauses(spread.cuts()), ..spread }
}

/// A run in virtual time. Beside the kernel's file systems the speeds are those in real time.
fn outcome(of: Subject<'_>, replayed: &ReplayFigures, real: Option<[Vec<Speed>; 2]>) -> JobResult {
    let took = of.took(replayed.elapsed.as_secs_f64(), None);
    let rows = match real {
        Some(speeds) => {
            files::ours(of.variant, speeds, Some(speed(replayed).operations_per_second()))
        }
        None => row(of.variant, replayed, ClockKind::Virtual).into_iter().collect(),
    };
    let mut outcome = JobResult::of([took]).with(rows);
    let said = differences(replayed).map(|said| format!("{}: {said}", of.variant.name));
    outcome.notes.extend(said);
    outcome
}

fn speed(replayed: &ReplayFigures) -> Speed {
    let of_step = |(ns, count)| std::iter::repeat_n(Duration::from_nanos(ns), count as usize);
    Speed {
        operations: replayed.calls,
        in_calls: replayed.in_calls(),
        syncs: replayed.syncs().steps().flat_map(of_step).collect(),
        elapsed: replayed.elapsed,
    }
}

/// What came out otherwise than it was recorded.
fn differences(replayed: &ReplayFigures) -> Option<String> {
    let found = &replayed.differences;
    let kinds: Vec<String> =
        found.kinds.iter().take(KINDS).map(|(what, (n, _))| format!("{n} x {what}")).collect();
    (found.calls > 0).then(|| {
        format!(
            "{} of {} calls returned something else than was recorded: {}",
            found.calls,
            replayed.calls,
            kinds.join("; ")
        )
    })
}

fn row(variant: &Variant, replayed: &ReplayFigures, clock: ClockKind) -> Option<FilesRow> {
    let row = files::files_row(variant, Path::of(variant), clock, &[speed(replayed)], None)?;
    let points = replayed.progress.points();
    Some(FilesRow { calls_at_s: points.map(|(n, at)| (n, at.as_secs_f64())).collect(), ..row })
}
