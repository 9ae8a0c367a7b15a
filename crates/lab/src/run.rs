//! Runs a scenario: every variant's benchmark and power cuts, with each of the seeds.
//!
//! Each job is a simulation of its own, so the order in which jobs finish and what else the
//! machine does change nothing in the results.

mod band;
mod benchmark;
mod cases;
mod controls;
mod copies;
mod disk_use;
mod each;
mod files;
mod fio;
mod gather;
mod jobs;
mod legs;
mod loss;
mod matrix;
mod measured;
mod on_stack;
mod peers;
mod power;
mod random_reads;
mod reads;
mod real;
mod reals;
mod record;
mod recorded;
mod recordings;
mod reproduce;
mod setting;
mod stack_target;
mod timings;
mod trace;
mod workload;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use cases::{CaseEnd, Cases};
pub use controls::Control;
pub(crate) use each::{EachRun, ScenarioRows, measure_each};
pub use recordings::Recordings;
#[cfg(feature = "planted-bugs")]
pub use reproduce::cut_until;
pub use reproduce::reproduce_state;
pub use setting::{RunOptions, Watch};
pub use workload::JobResult;

use steadfast_setup::{DeviceSpec, Overwrite};

use crate::error::CUTS_MAX;
use crate::results::Results;
use crate::scenario::{RunKind, Scenario, Variant, WorkloadKind};
use crate::{LabError, OptionError, ScenarioError};
use benchmark::Iozone;
use copies::Copies;
use files::Files;
use fio::FioLoad;
use legs::LegsLoad;
use random_reads::RandomReads;
use reads::Reads;
use reals::Reals;
use setting::{Part, Report, Setting, Subject};
use timings::Timings;
use trace::TraceLoad;
use workload::Workload;

/// Runs a scenario with one seed, to the end. `progress` is called now and then with the share
/// that is done and what is going on.
///
/// # Errors
/// If the scenario asks for what cannot be, or a variant cannot be built or fails before anything
/// is measured. What fails later is in [`Results::failures`], beside what the others brought.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &dyn Fn(f64, &str),
) -> Result<Results, LabError> {
    let watch = Watch { progress, stop: &AtomicBool::new(false) };
    run_seeds(scenario, options, &[options.seed], &watch)
}

/// Runs a scenario once with each of the seeds.
///
/// # Errors
/// As [`run`]; also if there is no seed.
pub fn run_seeds(
    scenario: &Scenario,
    options: &RunOptions,
    seeds: &[u64],
    watch: &Watch<'_>,
) -> Result<Results, LabError> {
    if options.peers {
        peers::check(scenario)?;
    }
    if options.band && scenario.band.is_none() {
        // Before minutes of work, not after.
        return Err(ScenarioError::NoBand.of(scenario));
    }
    if options.real.is_some() {
        peers::available(scenario, "--real")?;
    }
    let mut settings = Vec::new();
    // Of the whole, what the runs in real time take; 0 without any.
    let first = Cell::new(0.0);
    for (done, seed) in seeds.iter().enumerate() {
        let mut setting = Setting::new(scenario, &RunOptions { seed: *seed, ..options.clone() })?;
        if let Some(why) = setting.refused() {
            return Err(why.of(scenario));
        }
        // Once, before anything of the run is on them.
        if done == 0 {
            setting.look_at_paths()?;
        }
        setting.reals = real::run_all(
            &setting,
            &Watch {
                progress: &|share, what| {
                    first.set(REAL_SHARE);
                    (watch.progress)((done as f64 + share) / seeds.len() as f64 * REAL_SHARE, what);
                },
                stop: watch.stop,
            },
        )?;
        settings.push(Arc::new(setting));
    }
    let peers = match settings.first() {
        Some(setting) => {
            let progress = |share: f64, what: &str| {
                first.set(REAL_SHARE);
                (watch.progress)(share * REAL_SHARE, what);
            };
            peers::run_all(setting, &Watch { progress: &progress, stop: watch.stop })?
        }
        None => peers::Peers::default(),
    };
    if settings.is_empty() {
        return Err(ScenarioError::NoSeed.of(scenario));
    }
    let cases = Cases::of(settings);
    if options.real.is_some() && cases.is_empty() {
        return Err(ScenarioError::NothingReal.of(scenario));
    }
    let first = first.get();
    let rest = |share: f64, what: &str| (watch.progress)(first + (1.0 - first) * share, what);
    let kept = !peers.rows.is_empty() || cases.settings.iter().any(|s| s.reals.load.is_some());
    let watch = Watch { progress: &rest, stop: watch.stop };
    let ends = jobs::run(&cases.settings, &cases.jobs, kept, &watch)?;
    let ends = ends.into_iter().map(|end| end.map(CaseEnd::from)).collect();
    let mut results = cases.gathered(ends, peers)?;
    if options.band {
        for run in &mut results.runs {
            let over = band::measured(
                scenario,
                &RunOptions { seed: run.seed, ..options.clone() },
                &watch,
            )?;
            run.measurements.extend(over.measurements);
            results.notes.extend(over.notes);
            results.failures.extend(over.failures);
        }
        results.partial |= watch.stop.load(Ordering::Relaxed);
    }
    Ok(results)
}

/// About what share of a run with the kernel's file systems is spent on measuring.
const REAL_SHARE: f64 = 0.5;

impl Setting {
    /// Why a model refuses its parameters at the size of the run, if one does.
    fn refused(&self) -> Option<ScenarioError> {
        self.measured.topology.devices.iter().find_map(|(name, device)| {
            let Some(model) = device.model() else {
                let simulated = self.options.real.is_none();
                return simulated.then(|| ScenarioError::PathDevice(name.clone()));
            };
            let why = model.check().err()?;
            Some(ScenarioError::Device { device: name.clone(), why })
        })
    }

    fn new(scenario: &Scenario, options: &RunOptions) -> Result<Setting, LabError> {
        if let Some(n) = options.cuts.filter(|n| *n > CUTS_MAX) {
            let why = OptionError::TooManyCuts(n);
            return Err(why.of("--cuts"));
        }
        let mut measured = scenario.clone();
        let loads = loads(scenario, &mut measured, options).map_err(|e| e.of(scenario))?;
        let is_quick = !options.full && loads.iter().any(|l| l.is_reduced_by_default());
        let quick_cuts = scenario.workload.quick_cuts.filter(|_| is_quick);
        Ok(Setting {
            measured,
            loads,
            cuts: options.cuts.or(quick_cuts).unwrap_or(scenario.workload.cuts),
            loss_cuts: quick_cuts
                .map_or(u64::MAX, |n| n.div_ceil(4))
                .min(scenario.workload.loss_cuts),
            reals: Reals::default(),
            scenario: scenario.clone(),
            options: options.clone(),
        })
    }

    /// All parts (variant, workload, part), in the order of the results: what is measured first, it
    /// takes longest.
    fn parts(&self) -> Vec<(usize, usize, Part)> {
        let variants = self.scenario.variants.iter().enumerate();
        let mut parts: Vec<_> = variants
            .flat_map(|(v, variant)| {
                let loads = self.loads.iter().enumerate();
                loads.flat_map(move |(l, load)| {
                    self.parts_of(&**load, variant).into_iter().map(move |part| (v, l, part))
                })
            })
            .collect();
        parts.sort_by_key(|(v, l, part)| (*part, *l, *v));
        parts
    }

    /// The parts of a workload; in real time there are no cuts.
    fn parts_of(&self, load: &dyn Workload, variant: &Variant) -> Vec<Part> {
        let of = Subject { setting: self, variant };
        if self.options.real.is_none() {
            return load.parts(of);
        }
        let anywhere = variant.run != RunKind::Risk && load.on_file_system(of).is_some();
        let measured = anywhere || load.parts(of).contains(&Part::Speed);
        measured.then_some(Part::Speed).into_iter().collect()
    }

    fn job(&self, job: jobs::Job, report: Report) -> jobs::JobEnd {
        let variant = &self.scenario.variants[job.variant];
        let load = &*self.loads[job.load];
        match self.options.real {
            Some(_) => self.in_real_time(load, variant, report),
            None => load.run(Subject { setting: self, variant }, job.part, report),
        }
    }
}

/// The workloads of a scenario; `measured`: with the devices as the measurement has them, which a
/// workload at a reduced size may scale.
fn loads(
    scenario: &Scenario,
    measured: &mut Scenario,
    options: &RunOptions,
) -> Result<Vec<Box<dyn Workload>>, ScenarioError> {
    let kinds = scenario.workload.kinds();
    if kinds.is_empty() {
        return Err(ScenarioError::NoWorkload);
    }
    let is_alone = kinds.len() == 1;
    let mut loads: Vec<Box<dyn Workload>> = Vec::with_capacity(kinds.len());
    for kind in kinds {
        loads.push(match kind {
            WorkloadKind::Iozone { line, quick_size, risk_size } => {
                let sizes = (quick_size, risk_size);
                Box::new(Iozone::throughput(scenario, measured, line, sizes, options.full)?)
            }
            WorkloadKind::ReadUnderWrite(spec) => {
                Box::new(Reads::new(scenario, spec, options.full)?)
            }
            WorkloadKind::Dd(copies) => Box::new(Copies(copies.to_vec())),
            WorkloadKind::RandomReads(specs) => Box::new(RandomReads(specs.to_vec())),
            WorkloadKind::Hdparm(timings) => Box::new(Timings(timings.to_vec())),
            WorkloadKind::Matrix => Box::new(Iozone::matrices(scenario, options.full)?),
            WorkloadKind::Legs(spec) => Box::new(LegsLoad(spec.clone())),
            WorkloadKind::Fio(spec) => Box::new(FioLoad(spec.clone())),
            WorkloadKind::Trace(spec) => Box::new(TraceLoad(spec.clone())),
            WorkloadKind::Files(spec) => Box::new(Files::new(spec, options.seed, is_alone)),
        });
    }
    Ok(loads)
}

/// Looks whether a scenario can be run, at both sizes, as far as that is known before; makes
/// nothing.
///
/// # Errors
/// What [`run`] would refuse.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    // What has devices of this machine is for `--real`; which of them are there, only a run asks.
    let is_path = |device: &DeviceSpec| device.model().is_none();
    let real = scenario.topology.devices.values().any(is_path).then_some(Overwrite::Blank);
    for full in [false, true] {
        let setting = Setting::new(scenario, &RunOptions { full, real, ..RunOptions::default() })?;
        if let Some(why) = setting.refused() {
            return Err(why.of(scenario));
        }
    }
    Ok(())
}
