//! One variant's benchmark, in a simulation of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use steadfast_bench::iozone::{self, Call, Observer, Surroundings};
use steadfast_crash::account::Account;
use steadfast_crash::explore::{CutSource, StackMachine};
use steadfast_crash::unsynced::UnsyncedJudge;
use steadfast_devices::filter::record::RecordLog;
use steadfast_devices::store::Store;
use steadfast_ext4_mkfs::Contents;
use steadfast_runtime::{Nanos, now};
use steadfast_setup::{Blocks, DeviceSpec, Devices, Volumes};
use steadfast_vfs::FileSystem;

use super::disk_use::{self, DiskUse, Share};
use super::loss::{self, Watch};
use super::measured::{self, IozoneRun};
use super::power::{self, AccountWriter};
use super::setting::{Part, Report, Subject};
use super::workload::{Cuttable, FileSystemWork, JobResult, Workload};
use crate::scenario::{RunKind, Scenario, Variant, iozone_options};
use crate::{Result, ScenarioError, VariantError};

/// The run of IOzone's that is measured, and the one that is cut.
pub(super) struct Pair {
    pub speed: Box<iozone::Options>,
    pub risk: Box<iozone::Options>,
}

/// IOzone as a workload: in throughput mode, or a matrix in single or auto mode.
pub(super) struct Iozone {
    /// By variant.
    pub lines: BTreeMap<String, Arc<Pair>>,
    pub command: String,
    pub risk_command: String,
    /// How long a variant's run takes is by the bytes that are moved.
    pub takes_by_bytes: bool,
}

impl Iozone {
    /// In throughput mode. Without `full` at the first of the sizes, where also the devices may
    /// shrink; the second is that of the run that is cut.
    pub fn throughput(
        scenario: &Scenario,
        measured: &mut Scenario,
        line: &str,
        (quick, risk): (&str, &str),
        full: bool,
    ) -> Result<Iozone, ScenarioError> {
        let quick = Some(quick).filter(|_| !full);
        let (speed, whole) = (iozone_options(line, quick)?, iozone_options(line, None)?.file_bytes);
        if scenario.workload.quick_scales_disks && speed.file_bytes < whole {
            for device in measured.topology.devices.values_mut().filter_map(DeviceSpec::model_mut) {
                *device = device.scaled(speed.file_bytes, whole);
            }
        }
        files_fit(measured, &measured.variants, &speed, RunKind::speed)?;
        let risk = Box::new(iozone_options(line, Some(risk))?);
        files_fit(scenario, &scenario.variants, &risk, RunKind::risk)?;
        let pair = Arc::new(Pair { speed: Box::new(speed), risk });
        let names = scenario.variants.iter().map(|v| v.name.clone());
        Ok(Iozone {
            command: pair.speed.command_line.clone(),
            risk_command: pair.risk.command_line.clone(),
            lines: names.map(|name| (name, Arc::clone(&pair))).collect(),
            takes_by_bytes: false,
        })
    }

    fn of(&self, variant: &Variant) -> Result<&Pair> {
        let none = || VariantError::NoLines(variant.name.clone());
        self.lines.get(&variant.name).map(|pair| &**pair).ok_or_else(none)
    }
}

impl Workload for Iozone {
    fn command(&self) -> Option<String> {
        Some(self.command.clone())
    }

    fn risk_command(&self) -> Option<String> {
        Some(self.risk_command.clone())
    }

    fn parts(&self, of: Subject<'_>) -> Vec<Part> {
        let speed = of.variant.run.speed().then_some(Part::Speed);
        let risk = of.is_cut().then_some(Part::Risk);
        speed.into_iter().chain(risk).collect()
    }

    fn run(&self, of: Subject<'_>, part: Part, report: Report) -> Result<JobResult> {
        let Pair { speed, risk } = self.of(of.variant)?;
        match part {
            Part::Speed => run(of, speed, report),
            Part::Risk => Ok(JobResult::of([power::run(of, risk, &report)?])),
        }
    }

    fn on_file_system(&self, of: Subject<'_>) -> Option<FileSystemWork> {
        let Subject { setting, variant } = of;
        let iozone = self.of(variant).ok()?.speed.clone();
        let memory_bytes = setting.page_cache_bytes(&iozone, variant);
        let (scenario, variant) = (setting.scenario.clone(), variant.clone());
        let run = move |fs| {
            let surroundings = Surroundings {
                memory_bytes: Some(memory_bytes),
                repeat_data: true,
                ..Surroundings::default()
            };
            let ran = measured::iozone(fs, &iozone, &surroundings, None)?;
            let rows = JobResult::of(ran.rows(&scenario, &variant)).with(ran.grids(&variant));
            Ok(JobResult { notes: ran.notes(), ..rows })
        };
        Some(FileSystemWork { memory_bytes, run: Box::new(run) })
    }

    fn recorded(&self, of: Subject<'_>) -> Option<Result<Cuttable>> {
        let plan = power::plan(of);
        let ran = self.of(of.variant).and_then(|pair| power::recorded(of, &pair.risk));
        Some(ran.map(|(machine, recorded)| Cuttable { machine, recorded, plan }))
    }

    /// What data=journal writes, it writes twice.
    fn weight(&self, variant: &Variant) -> u64 {
        if self.takes_by_bytes {
            return self.of(variant).map_or(1, |lines| 1 + (lines.speed.data_bytes() >> 20));
        }
        if variant.stack.mount.split(',').any(|option| option == "data=journal") { 2 } else { 1 }
    }

    fn is_reduced_by_default(&self) -> bool {
        true
    }
}

/// Whether the files of a benchmark have room on the disk of each of these variants that takes
/// part.
pub(super) fn files_fit(
    scenario: &Scenario,
    variants: &[Variant],
    iozone: &iozone::Options,
    takes_part: fn(RunKind) -> bool,
) -> Result<(), ScenarioError> {
    let bytes = iozone.data_bytes();
    for v in variants.iter().filter(|v| takes_part(v.run)) {
        let room = scenario.topology.bytes_of(&v.stack.disk);
        if bytes >= room {
            let (variant, device) = (v.name.clone(), v.stack.disk.clone());
            return Err(ScenarioError::FilesDoNotFit { variant, bytes, device, room });
        }
    }
    Ok(())
}

/// Runs it and turns the results into rows.
fn run(of: Subject<'_>, iozone: &iozone::Options, report: Report) -> Result<JobResult> {
    let Subject { setting, variant } = of;
    let memory = setting.page_cache_bytes(iozone, variant);
    let machine = || setting.measured.stack_machine(variant, memory);
    let is_cut = of.is_cut() && setting.loss_cuts > 0;
    let (inner, iozone_options) = (machine(), iozone.clone());
    let measured: Report = {
        let report = Arc::clone(&report);
        Arc::new(move |share| report(if is_cut { share * 0.7 } else { share }))
    };
    let sim = inner.setup.simulation(setting.options.seed);
    let ran = sim.run(move || simulated(&inner, &iozone_options, is_cut, measured));
    let SimulatedRun { ran, virtual_seconds, recorded, shares, log_used } = ran??;
    let mut rows = ran.rows(&setting.scenario, variant);
    disk_use::note(&shares, &mut rows);
    let loss = recorded.map(|recorded| {
        let rest: Report = Arc::new(move |share| report(0.7 + 0.3 * share));
        loss::cut(of, machine(), recorded, iozone.data_bytes(), &rest)
    });
    let outcome = JobResult::of([of.took(virtual_seconds, log_used)])
        .with(rows)
        .with(ran.grids(variant))
        .with(loss);
    Ok(JobResult { notes: ran.notes(), ..outcome })
}

/// What a simulation brought.
struct SimulatedRun {
    ran: IozoneRun,
    virtual_seconds: f64,
    /// The run to be cut, if it is to be.
    recorded: Option<CutSource>,
    /// What the disk moved in each test.
    shares: Vec<Share>,
    log_used: Option<f64>,
}

/// The benchmark in the caller's simulation. Recording takes no virtual time.
fn simulated(
    machine: &StackMachine,
    iozone: &iozone::Options,
    record: bool,
    report: Report,
) -> Result<SimulatedRun> {
    let devices = Devices::build(&machine.setup)?;
    let log = RecordLog::new();
    log.pause(true);
    let wrapped = match record {
        true => machine.recorded(&devices, Volumes::New, &log)?,
        false => devices.blocks()?,
    };
    wrapped.make(&machine.setup, Contents::Zeros, (0, 0))?;
    log.pause(false);
    let account = record.then(|| {
        let bases: Vec<Store> = devices.all().map(|d| d.contents()).collect();
        (bases, Arc::new(AccountWriter(Account::new(&log))))
    });
    let (disk, counters) = disk_use::counted(&wrapped.disk);
    let fs = machine.mount(&Blocks { disk, ..wrapped.clone() })?;
    let began = now();
    let counter: Arc<dyn Observer> = Arc::new(Counter::new(iozone, report));
    let observer: Arc<dyn Observer> = match &account {
        Some((_, account)) => Arc::new(Watch::new(Arc::clone(account), counter, (&log, &fs))),
        None => counter,
    };
    let disk_use = Arc::new(DiskUse::new(counters, observer));
    // Nobody looks at the data of a run that is only measured; of one that is cut, the judge does.
    let surroundings = Surroundings {
        memory_bytes: Some(machine.memory_bytes),
        repeat_data: !record,
        judged: record,
        ..Surroundings::default()
    };
    let shared: Arc<dyn FileSystem> = Arc::clone(&fs) as Arc<dyn FileSystem>;
    let observer = Arc::clone(&disk_use) as Arc<dyn Observer>;
    let ran = measured::iozone(shared, iozone, &surroundings, Some(observer))?;
    let log_used = disk_use::log_used(&fs);
    let shares = disk_use.shares();
    let virtual_seconds = (now() - began).as_secs_f64();
    let recorded = account.map(|(bases, account)| {
        let judge = Arc::new(UnsyncedJudge(account.0.take()));
        CutSource { bases, recording: log.take(), judge }
    });
    fs.unmount().map_err(VariantError::Unmount)?;
    wrapped.close()?;
    Ok(SimulatedRun { ran, virtual_seconds, recorded, shares, log_used })
}

/// Counts finished tests and writes, for the progress.
struct Counter {
    writes: AtomicU64,
    expected: f64,
    report: Report,
}

impl Counter {
    fn new(iozone: &iozone::Options, report: Report) -> Self {
        Counter { writes: AtomicU64::new(0), expected: measured::writes_expected(iozone), report }
    }
}

impl Observer for Counter {
    fn finished(&self, _call: &Call<'_>, _at: Nanos, _durable: bool) {
        let n = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if n.is_multiple_of(64) {
            (self.report)((n as f64 / self.expected).min(0.99));
        }
    }
}

#[cfg(test)]
mod tests {
    use steadfast_runtime::Sim;

    use super::*;

    /// A measured run repeats its data, for speed; that must not show in any figure.
    #[test]
    fn what_is_written_changes_no_time() {
        let scenario = Scenario::find("nvram-journal").unwrap();
        let line = scenario.workload.iozone.clone().unwrap();
        for variant in scenario.variants.iter().filter(|v| v.run.speed()) {
            // A run that is recorded writes other data than one that is only measured.
            let ran = |record| {
                let machine = scenario.stack_machine(variant, 4 << 20);
                let iozone = iozone_options(&line, Some("1m")).unwrap();
                let report: Report = Arc::new(|_| {});
                let run = move || {
                    let ran = simulated(&machine, &iozone, record, report);
                    ran.map(|s| (s.ran, s.virtual_seconds))
                };
                let (ran, seconds) = Sim::new(3).run(run).unwrap().unwrap();
                let IozoneRun::Throughput(results) = ran else { panic!("it is throughput mode") };
                (serde_json::to_string(&results.runs).unwrap(), seconds)
            };
            assert_eq!(ran(true), ran(false), "{}", variant.name);
        }
    }
}
