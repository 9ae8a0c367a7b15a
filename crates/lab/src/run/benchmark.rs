//! One variant's benchmark, in a simulation of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use steadfast_bench::iozone::latency::Operation;
use steadfast_bench::iozone::{self, Call, Observer, Surroundings, Test, TestResult};
use steadfast_crash::explore::{CutSource, StackMachine};
use steadfast_ext4_mkfs::Contents;
use steadfast_runtime::{Nanos, now};
use steadfast_setup::{Blocks, DeviceSpec, Devices};
use steadfast_vfs::FileSystem;

use super::disk_use::{self, DiskUse, Share};
use super::load::{Cuttable, JobResult, Load};
use super::loss::{self, LossRecording};
use super::measured::{self, IozoneRun};
use super::{Part, Report, Setting, iozone_options, power};
use crate::results::{Percentiles, SpeedRow, SumKind, VariantTime};
use crate::scenario::{RunKind, Scenario, Variant};
use crate::{ScenarioError, VariantError};

/// The run of IOzone's that is measured, and the one that is cut.
pub(super) struct Pair {
    pub speed: Box<iozone::Options>,
    pub risk: Box<iozone::Options>,
}

impl Pair {
    /// [`Load::parts`].
    pub fn parts(setting: &Setting, variant: &Variant) -> Vec<Part> {
        let speed = variant.run.speed().then_some(Part::Speed);
        let risk = (variant.run.risk() && setting.cuts > 0).then_some(Part::Risk);
        speed.into_iter().chain(risk).collect()
    }

    /// [`Load::run`].
    pub fn run(
        &self,
        setting: &Setting,
        variant: &Variant,
        part: Part,
        report: Report,
    ) -> Result<JobResult, VariantError> {
        match part {
            Part::Speed => run(setting, &self.speed, variant, report),
            Part::Risk => Ok(JobResult::of([power::run(setting, &self.risk, variant, &report)?])),
        }
    }

    /// [`Load::recorded`].
    pub fn recorded(&self, setting: &Setting, variant: &Variant) -> Result<Cuttable, VariantError> {
        let plan = power::plan(setting.cuts_of(variant), setting.options.seed);
        let (machine, recorded) = power::recorded(setting, &self.risk, variant)?;
        Ok(Cuttable { machine, recorded, plan })
    }
}

/// IOzone in throughput mode.
pub(super) struct Throughput(Pair);

impl Throughput {
    /// Without `full` at the first of the sizes, where also the devices may shrink; the second is
    /// that of the run that is cut.
    pub fn new(
        scenario: &Scenario,
        measured: &mut Scenario,
        line: &str,
        (quick, risk): (&str, &str),
        full: bool,
    ) -> Result<Throughput, ScenarioError> {
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
        Ok(Throughput(Pair { speed: Box::new(speed), risk }))
    }
}

impl Load for Throughput {
    fn command(&self) -> Option<String> {
        Some(self.0.speed.command_line.clone())
    }

    fn risk_command(&self) -> Option<String> {
        Some(self.0.risk.command_line.clone())
    }

    fn parts(&self, setting: &Setting, variant: &Variant) -> Vec<Part> {
        Pair::parts(setting, variant)
    }

    fn run(
        &self,
        setting: &Setting,
        variant: &Variant,
        part: Part,
        report: Report,
    ) -> Result<JobResult, VariantError> {
        self.0.run(setting, variant, part, report)
    }

    fn recorded(
        &self,
        setting: &Setting,
        variant: &Variant,
    ) -> Option<Result<Cuttable, VariantError>> {
        Some(self.0.recorded(setting, variant))
    }

    /// What data=journal writes, it writes twice.
    fn weight(&self, variant: &Variant) -> u64 {
        if variant.mount.split(',').any(|option| option == "data=journal") { 2 } else { 1 }
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
        let room = scenario.topology.bytes_of(&v.disk);
        if bytes >= room {
            let (variant, device) = (v.name.clone(), v.disk.clone());
            return Err(ScenarioError::FilesDoNotFit { variant, bytes, device, room });
        }
    }
    Ok(())
}

/// Runs it and turns the results into rows.
pub(super) fn run(
    setting: &Setting,
    iozone: &iozone::Options,
    variant: &Variant,
    report: Report,
) -> Result<JobResult, VariantError> {
    let memory = setting.page_cache_bytes(iozone, variant);
    let machine = || setting.measured.stack_machine(variant, memory);
    let is_cut = variant.run.risk() && setting.cuts > 0 && setting.loss_cuts > 0;
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
        loss::cut(setting, variant, machine(), recorded, iozone.data_bytes(), &rest)
    });
    let took = VariantTime { variant: variant.name.clone(), virtual_seconds, log_used };
    let outcome = JobResult::of([took]).with(rows).with(ran.grids(variant)).with(loss);
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
) -> Result<SimulatedRun, VariantError> {
    let devices = Devices::build(&machine.setup)?;
    let (log, wrapped) = match record {
        true => {
            let (log, devices) = LossRecording::devices(machine, &devices)?;
            (Some(log), devices)
        }
        false => (None, devices.blocks()?),
    };
    wrapped.make(&machine.setup, Contents::Zeros, (0, 0))?;
    let recording = log.map(|log| LossRecording::begin(log, &devices));
    let (disk, counters) = disk_use::counted(&wrapped.disk);
    let fs = machine.mount(&Blocks { disk, ..wrapped.clone() })?;
    let began = now();
    let counter: Arc<dyn Observer> = Arc::new(Counter::new(iozone, report));
    let observer = match &recording {
        Some(recording) => recording.watch(&fs, counter),
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
    // It holds the recording.
    drop(disk_use);
    let virtual_seconds = (now() - began).as_secs_f64();
    let recorded = recording.map(LossRecording::end).transpose()?;
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

/// The names of all tests.
pub(super) fn test_names() -> [&'static str; 15] {
    Test::ALL.map(test_name)
}

/// The name by which a test is known in scenarios and results.
pub(super) fn test_name(test: Test) -> &'static str {
    match test {
        Test::InitialWrite => "initial write",
        Test::Rewrite => "rewrite",
        Test::Read => "read",
        Test::Reread => "reread",
        Test::ReverseRead => "reverse read",
        Test::StrideRead => "stride read",
        Test::RandomRead => "random read",
        Test::Mixed => "mixed",
        Test::RandomWrite => "random write",
        Test::Pwrite => "pwrite",
        Test::Pread => "pread",
        Test::Pwritev => "pwritev",
        Test::Preadv => "preadv",
        Test::Fwrite => "fwrite",
        Test::Fread => "fread",
    }
}

pub(super) fn row(scenario: &Scenario, variant: &Variant, t: &TestResult) -> Option<SpeedRow> {
    let name = test_name(t.test);
    let published = scenario.published.iter().find(|p| p.test == name);
    let figure = published.map_or(SumKind::default(), |p| p.figure);
    let (children, parent) = (t.summary.children_see, t.summary.parent_sees);
    let latency = t
        .latency
        .iter()
        .filter(|l| matches!(l.operation, Operation::Read | Operation::Write))
        .max_by_key(|l| l.count);
    Some(SpeedRow {
        test: name.into(),
        variant: variant.name.clone(),
        figure,
        kb_per_s: match figure {
            SumKind::Children => children,
            SumKind::Parent => parent,
        },
        published_kb_per_s: published.and_then(|p| p.kb_per_s.get(&variant.name).copied()),
        children_kb_per_s: children,
        parent_kb_per_s: parent,
        read_from_disk: None,
        written_to_disk: None,
        distribution: latency.map(|l| l.distribution.clone()),
        latency_us: latency.map(|l| {
            let us = |ns: u64| ns as f64 / 1e3;
            Percentiles::known(l.count, us(l.p50_ns), l.p99_ns.map(us), us(l.max_ns))
        }),
    })
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
