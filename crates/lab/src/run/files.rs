//! One variant's speed and power cuts under the workload of files.

use std::sync::Arc;

use steadfast_crash::explore::{Plan, RebootTarget, SecondCuts, System};
use steadfast_crash::risk::{FilesWorkload, Speed};
use steadfast_devices::filter::record::RecordLog;
use steadfast_vfs::FileSystem;

use super::controls::cut_with_controls;
use super::power::plan;
use super::reals::{MEMORY, Real, RecordedFiles};
use super::recorded;
use super::setting::{Part, Report, Subject};
use super::workload::{Cuttable, FileSystemWork, JobResult, RealRuns, Workload};
use crate::Result;
use crate::results::{
    ClockKind, FilesRow, LatencyHistogram, Measurement, Path, Percentiles, RiskRow, Spread,
    VariantTime,
};
use crate::scenario::{self, Variant};

/// After so many cuts in a hundred the power goes a second time. (Not for the kernel's.)
const AGAIN_PERCENT: u64 = 20;

/// The workload of files: one run is measured and cut.
pub(super) struct Files {
    workload: FilesWorkload,
    /// It is all that the scenario runs. Beside a benchmark it is what is cut.
    is_alone: bool,
}

impl Files {
    pub fn new(spec: &FilesWorkload, seed: u64, is_alone: bool) -> Files {
        let workload = FilesWorkload { seed, ..spec.clone() };
        Files { workload, is_alone }
    }
}

impl Workload for Files {
    fn command(&self) -> Option<String> {
        self.is_alone.then(|| self.workload.description())
    }

    fn risk_command(&self) -> Option<String> {
        (!self.is_alone).then(|| self.workload.description())
    }

    fn parts(&self, of: Subject<'_>) -> Vec<Part> {
        let takes_part = self.is_alone || of.is_cut();
        takes_part.then_some(Part::Risk).into_iter().collect()
    }

    fn run(&self, of: Subject<'_>, _: Part, report: Report) -> Result<JobResult> {
        let real = match real(of, &honest_plan(of), &report)? {
            Some(RealPart::Whole(result)) => return Ok(result),
            Some(RealPart::Ours(speeds, cut)) => Some((speeds, cut)),
            // It was wanted, and somebody stopped the runs before it.
            None if of.variant.fuse.is_some() => return Ok(JobResult::default()),
            None => None,
        };
        let mut outcome = run(of, &self.workload, real, &report)?;
        if !self.is_alone {
            let is_speed =
                |m: &Measurement| m.row::<FilesRow>().is_some() || m.row::<VariantTime>().is_some();
            outcome.measurements.retain(|m| !is_speed(m));
        }
        Ok(outcome)
    }

    fn on_file_system(&self, of: Subject<'_>) -> Option<FileSystemWork> {
        let memory_bytes = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
        let (workload, variant) = (self.workload.clone(), of.variant.clone());
        let run = move |fs: Arc<dyn FileSystem>| {
            // Nothing is recorded: nothing is below.
            let ran = workload.run(&fs, &RecordLog::new(), &mut || Ok(()))?;
            let path = Path::of(&variant);
            Ok(JobResult::of(files_row(&variant, path, ClockKind::Wall, &[ran.speed], None)))
        };
        Some(FileSystemWork { memory_bytes, run: Box::new(run) })
    }

    fn recorded(&self, of: Subject<'_>) -> Option<Result<Cuttable>> {
        let plan = honest_plan(of);
        let ran = recorded(of, &self.workload);
        Some(ran.map(|(machine, ran)| Cuttable { machine, recorded: ran.recorded, plan }))
    }

    fn in_real_time(&self, spec: &scenario::Workload) -> Option<RealRuns> {
        let whole = self.workload.clone();
        let short = FilesWorkload {
            seconds: whole.seconds.min(spec.speed_seconds),
            rounds_least: whole.rounds_least.min(1),
            ..whole.clone()
        };
        self.is_alone.then(|| RealRuns {
            measured: Box::new(move |fs, log, begin| Ok((short.run(fs, log, begin)?, None))),
            cut: Box::new(move |fs, log, begin| Ok((whole.run(fs, log, begin)?, None))),
        })
    }
}

/// Speeds in process and mounted, and the run that is cut where that is one in real time.
type OursInRealTime = ([Vec<Speed>; 2], Option<Box<RecordedFiles>>);

/// What the runs in real time are of a variant.
pub(super) enum RealPart {
    /// All of it: it is one of the kernel's.
    Whole(JobResult),
    /// Its speed, in process and mounted, and what is cut; without that it is a run in virtual
    /// time.
    Ours([Vec<Speed>; 2], Option<Box<RecordedFiles>>),
}

/// What the runs in real time brought for a variant; cuts what was recorded of one of the kernel's.
pub(super) fn real(of: Subject<'_>, plan: &Plan, report: &Report) -> Result<Option<RealPart>> {
    let Some(real) = of.setting.reals.take(of.variant) else { return Ok(None) };
    let (speeds, ran) = match real {
        Real::LeftOut(why) => {
            let left_out = JobResult { left_out: Some(why), ..JobResult::default() };
            return Ok(Some(RealPart::Whole(left_out)));
        }
        Real::Ours { in_process, mounted, cut } => {
            return Ok(Some(RealPart::Ours([in_process, mounted], cut)));
        }
        Real::Kernel(speeds, ran) => (speeds, ran),
    };
    let rows = |cut_run| files_row(of.variant, Path::Kernel, ClockKind::Wall, &speeds, cut_run);
    let Some((peer, ran)) = ran else {
        return Ok(Some(RealPart::Whole(JobResult::of(rows(None)))));
    };
    let rows = rows(Some(ran.speed.operations_per_second())).into_iter().collect();
    Ok(Some(RealPart::Whole(cut(of, (&peer, *ran), plan, rows, report)?)))
}

/// The speeds of ours beside the kernel's.
pub(super) fn ours(
    variant: &Variant,
    speeds: [Vec<Speed>; 2],
    cut_run: Option<f64>,
) -> Vec<FilesRow> {
    let row = |(path, runs): (Path, Vec<Speed>)| {
        files_row(variant, path, ClockKind::Wall, &runs, cut_run)
    };
    [Path::InProcess, Path::Fuse].into_iter().zip(speeds).filter_map(row).collect()
}

/// Runs the workload on Steadfast's own file system in virtual time, if it was not run through its
/// mount in real time, cuts it, and counts what the cuts take. The speeds reported are those of the
/// runs in real time, if there were some (`real`): in process, and mounted.
fn run(
    of: Subject<'_>,
    workload: &FilesWorkload,
    real: Option<OursInRealTime>,
    report: &Report,
) -> Result<JobResult> {
    let (speeds, cut_run) = real.unzip();
    let (machine, ran) = match cut_run.flatten() {
        Some(ran) => {
            let memory = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
            let machine = of.setting.scenario.stack_machine(of.variant, memory);
            (Arc::new(machine) as Arc<dyn RebootTarget>, *ran)
        }
        // It has failed, which is said elsewhere.
        None if of.variant.fuse.is_some() => {
            let rows = speeds.into_iter().flat_map(|speeds| ours(of.variant, speeds, None));
            return Ok(JobResult::default().with(rows.collect::<Vec<_>>()));
        }
        None => recorded(of, workload)?,
    };
    let speed = &ran.speed;
    let rows = match speeds {
        Some(speeds) => ours(of.variant, speeds, Some(speed.operations_per_second())),
        None => {
            let one = std::slice::from_ref(speed);
            let row = files_row(of.variant, Path::InProcess, ClockKind::Virtual, one, None);
            row.into_iter().collect()
        }
    };
    cut(of, (&machine, ran), &honest_plan(of), rows, report)
}

/// Runs the workload; the machine, and what it did.
fn recorded(
    of: Subject<'_>,
    workload: &FilesWorkload,
) -> Result<(Arc<dyn RebootTarget>, RecordedFiles)> {
    let memory = of.setting.memory_of(of.variant).unwrap_or(MEMORY);
    let workload = workload.clone();
    let (machine, ran) = recorded::recorded(of, (memory, false), move |fs, log, begin| {
        Ok(workload.run(fs, log, begin)?)
    })?;
    Ok((machine, ran.into()))
}

/// The plan of the cuts. After some of them the power goes again while the machine recovers, or
/// just after it has.
fn honest_plan(of: Subject<'_>) -> Plan {
    let second = SecondCuts { percent: AGAIN_PERCENT, ..SecondCuts::NONE };
    Plan { second, ..plan(of) }
}

/// Cuts a recorded run and its controls; what comes out.
fn cut(
    of: Subject<'_>,
    (system, ran): (&dyn System, RecordedFiles),
    plan: &Plan,
    rows: Vec<FilesRow>,
    report: &Report,
) -> Result<JobResult> {
    let RecordedFiles { recorded, programs, .. } = ran;
    let (risk, ages) = cut_with_controls(of, (system, recorded), plan, report)?;
    let mut risk = RiskRow { programs: Some(programs), ..risk };
    if of.variant.is_cut_in_real_time() {
        risk.run_clock = ClockKind::Wall;
    }
    if of.variant.kernel.is_some() {
        risk.recovery_clock = ClockKind::Wall;
    }
    let simulated = rows.iter().find(|row| row.clock == ClockKind::Virtual);
    let took = simulated.map(|row| of.took(row.elapsed_seconds, None));
    Ok(JobResult::of(took).with(rows).with([risk]).with([ages]))
}

/// What some runs of a variant were like; `None` without one.
pub(super) fn files_row(
    variant: &Variant,
    path: Path,
    clock: ClockKind,
    runs: &[Speed],
    cut_run_operations_per_s: Option<f64>,
) -> Option<FilesRow> {
    let each: Vec<f64> = runs.iter().map(Speed::operations_per_second).collect();
    let syncs: Vec<f64> =
        runs.iter().flat_map(|run| &run.syncs).map(|took| took.as_secs_f64() * 1e3).collect();
    let distribution =
        (!syncs.is_empty()).then(|| LatencyHistogram::of_us(syncs.iter().map(|ms| ms * 1e3)));
    let elapsed: Vec<f64> = runs.iter().map(|run| run.elapsed.as_secs_f64()).collect();
    (!runs.is_empty()).then(|| FilesRow {
        variant: variant.name.clone(),
        path,
        clock,
        cut_run_operations_per_s,
        place: None,
        operations: runs.iter().map(|run| run.operations).sum(),
        operations_per_s: Spread::of(&each),
        each_operations_per_s: if clock == ClockKind::Wall { each } else { Vec::new() },
        in_calls_seconds: runs.iter().map(|run| run.in_calls.as_secs_f64()).sum(),
        elapsed_seconds: Spread::of(&elapsed).median(),
        fsyncs: syncs.len() as u64,
        fsync_distribution: distribution,
        fsync_ms: Percentiles::of(syncs),
        calls_at_s: Vec::new(),
    })
}
