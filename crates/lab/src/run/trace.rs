//! One variant's speed and power cuts under the calls of a recorded program.

mod judged;

use std::sync::Arc;

use steadfast_crash::account::Account;
use steadfast_crash::explore::CutSource;
use steadfast_trace::TraceError;
use steadfast_trace::replay::{self, ReplayFigures, ReplayObserver, TraceSource};
use steadfast_vfs::FileSystem;

use self::judged::ReplayAccount;
use super::controls::cut_with_controls;
use super::power::plan;
use super::reals::MEMORY;
use super::recorded;
use super::setting::{Part, Report, Subject};
use super::workload::{Cuttable, FileSystemWork, JobResult, Workload};
use crate::results::{ClockKind, FilesRow, LatencyHistogram, Path, Percentiles, RiskRow, Spread};
use crate::scenario::{TraceSpec, Variant};
use crate::{Result, VariantError};

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
        if part == Part::Speed {
            let replayed = self.replayed(of)?;
            return Ok(self.outcome(of, &replayed, ClockKind::Virtual));
        }
        let (Cuttable { machine, recorded, plan }, replayed) = self.cuttable(of)?;
        let (risk, ages) = cut_with_controls(of, (&machine, recorded), &plan, &report)?;
        // The same calls on every variant, and so one number.
        let risk = RiskRow { programs: Some(replayed.calls), ..risk };
        Ok(self.outcome(of, &replayed, ClockKind::Virtual).with([risk]).with([ages]))
    }

    fn recorded(&self, of: Subject<'_>) -> Option<Result<Cuttable>> {
        Some(self.cuttable(of).map(|(cuttable, _)| cuttable))
    }

    fn on_file_system(&self, of: Subject<'_>) -> Option<FileSystemWork> {
        let memory_bytes = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
        let (trace, pace, variant) = (self.source(), self.0.pace(), of.variant.clone());
        let wrong = TraceLoad::wrong(&self.0.file);
        let run = move |fs: Arc<dyn FileSystem>| {
            let nobody: Arc<dyn ReplayObserver> = Arc::new(());
            let (replayed, _) =
                replay::run(&trace, &fs, (pace, nobody), || Ok(())).map_err(wrong)?;
            Ok(JobResult::of([row(&variant, &replayed, ClockKind::Wall)]))
        };
        Some(FileSystemWork { memory_bytes, run: Box::new(run) })
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
    fn cuttable(&self, of: Subject<'_>) -> Result<(Cuttable, ReplayFigures)> {
        let memory = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
        let (trace, pace) = (self.source(), self.0.pace());
        let wrong = TraceLoad::wrong(&self.0.file);
        let (machine, (bases, recording, ran)) =
            recorded::recorded(of, (memory, false), move |fs, log, begin| {
                let judged = Arc::new(ReplayAccount::new(Account::new(log).with_others(), &**fs));
                let observer = Arc::clone(&judged) as Arc<dyn ReplayObserver>;
                let begin = || begin().map_err(|e| TraceError::Prepare(e.to_string()));
                let (replayed, _) =
                    replay::run(&trace, fs, (pace, observer), begin).map_err(wrong)?;
                Ok((replayed, judged.history()))
            })?;
        let (replayed, history) = ran;
        let recorded = CutSource { bases, recording, judge: Arc::new(history) };
        Ok((Cuttable { machine, recorded, plan: plan(of) }, replayed))
    }

    fn outcome(&self, of: Subject<'_>, replayed: &ReplayFigures, clock: ClockKind) -> JobResult {
        let took = of.took(replayed.elapsed.as_secs_f64(), None);
        let mut outcome = JobResult::of([took]).with([row(of.variant, replayed, clock)]);
        outcome.notes.extend(differences(of.variant, replayed));
        outcome
    }
}

/// What came out otherwise than it was recorded.
fn differences(variant: &Variant, replayed: &ReplayFigures) -> Option<String> {
    let found = &replayed.differences;
    let kinds: Vec<String> =
        found.kinds.iter().take(KINDS).map(|(what, (n, _))| format!("{n} x {what}")).collect();
    (found.calls > 0).then(|| {
        format!(
            "{}: {} of {} calls returned something else than was recorded: {}",
            variant.name,
            found.calls,
            replayed.calls,
            kinds.join("; ")
        )
    })
}

fn row(variant: &Variant, replayed: &ReplayFigures, clock: ClockKind) -> FilesRow {
    let (syncs, in_calls) = (replayed.syncs(), replayed.in_calls().as_secs_f64());
    let us: Vec<f64> = syncs
        .steps()
        .flat_map(|(ns, count)| std::iter::repeat_n(ns as f64 / 1e3, count as usize))
        .collect();
    let per_s = if in_calls > 0.0 { replayed.calls as f64 / in_calls } else { 0.0 };
    FilesRow {
        variant: variant.name.clone(),
        path: match &variant.kernel {
            Some(_) => Path::Kernel,
            None => Path::InProcess,
        },
        clock,
        cut_run_operations_per_s: None,
        place: None,
        operations: replayed.calls,
        operations_per_s: Spread::of(&[per_s]),
        each_operations_per_s: Vec::new(),
        in_calls_seconds: in_calls,
        elapsed_seconds: replayed.elapsed.as_secs_f64(),
        fsyncs: syncs.count(),
        fsync_distribution: (!us.is_empty()).then(|| LatencyHistogram::of_us(us.iter().copied())),
        fsync_ms: Percentiles::of(us.into_iter().map(|us| us / 1e3).collect()),
    }
}
