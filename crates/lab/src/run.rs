//! Runs a scenario: every variant's benchmark and power cuts, with each of the seeds.
//!
//! Each job is a simulation of its own, so the order in which jobs finish and what else the
//! machine does change nothing in the results.

mod benchmark;
mod controls;
mod copies;
mod disk_use;
mod each;
mod files;
mod gather;
mod jobs;
mod kernel;
mod legs;
mod load;
mod loss;
mod matrix;
mod measured;
mod peers;
mod place;
mod power;
mod random_reads;
mod reads;
mod real;
mod record;
mod reproduce;
mod timings;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use controls::Control;
pub(crate) use each::measure_each;
pub(crate) use measured::matrix_options;
pub(crate) use place::parsed as operands;
pub use record::Recordings;
#[cfg(feature = "planted-bugs")]
pub use reproduce::cut_until;
pub use reproduce::reproduce_state;
use steadfast_bench::iozone;
use steadfast_bench::iozone::matrix::Column;

use crate::results::Results;
use crate::scenario::{CUTS_MAX, LineError, ReadFile, Scenario, Variant};
use crate::size;
use crate::{LabError, OptionError, ScenarioError, VariantError};
use load::{JobResult, Load};
use real::Reals;

/// How to run a scenario.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// At the published size.
    pub full: bool,
    /// Cuts a variant; `None`: as many as the scenario says.
    pub cuts: Option<u64>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Run the kernel's file systems beside, in real time, as root.
    pub peers: bool,
    /// Where recordings and a row for each cut are written, if anywhere. What cannot be written
    /// is no failure of the run: see [`Recordings::take_failure`].
    pub record: Option<Arc<Recordings>>,
}

impl Default for RunOptions {
    /// The quick run.
    fn default() -> Self {
        RunOptions { full: false, cuts: None, seed: 1, peers: false, record: None }
    }
}

/// Who looks on while a scenario runs.
pub struct Watch<'a> {
    /// Called now and then with the share that is done and what is going on.
    pub progress: &'a dyn Fn(f64, &str),
    /// Once it is true no further part is begun, and the results are those of the parts that have
    /// ended.
    pub stop: &'a AtomicBool,
}

/// A variant's benchmark or its power cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Speed,
    Risk,
}

/// What all jobs of a seed share.
struct Setting {
    scenario: Scenario,
    /// The scenario with the devices of the benchmark: scale models, at a reduced size.
    measured: Scenario,
    options: RunOptions,
    loads: Vec<Box<dyn Load>>,
    cuts: u64,
    /// Cuts of the measured run itself.
    loss_cuts: u64,
    /// What was run in real time before.
    reals: Reals,
}

/// Reports how far a job is, 0 to 1.
type Report = Arc<dyn Fn(f64) + Send + Sync>;

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
    let mut settings = Vec::new();
    // Of the whole, what the runs in real time take; 0 without any.
    let first = Cell::new(0.0);
    for (done, seed) in seeds.iter().enumerate() {
        let mut setting = Setting::new(scenario, &RunOptions { seed: *seed, ..options.clone() })?;
        if let Some(why) = setting.refused() {
            return Err(why.of(scenario));
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
    let jobs = jobs::of(&settings);
    let first = first.get();
    let rest = |share: f64, what: &str| (watch.progress)(first + (1.0 - first) * share, what);
    let kept = !peers.rows.is_empty() || settings.iter().any(|s| s.reals.load.is_some());
    let watch = Watch { progress: &rest, stop: watch.stop };
    let outcomes = jobs::run(&settings, &jobs, kept, &watch)?;
    gather::results(&settings, &jobs, outcomes, peers)
        .ok_or_else(|| ScenarioError::NoSeed.of(scenario))
}

/// About what share of a run with the kernel's file systems is spent on measuring.
const REAL_SHARE: f64 = 0.5;

impl Setting {
    /// Why a model refuses its parameters at the size of the run, if one does.
    fn refused(&self) -> Option<ScenarioError> {
        self.measured.topology.devices.iter().find_map(|(name, device)| {
            let Some(model) = device.model() else {
                return Some(ScenarioError::PathDevice(name.clone()));
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
        let loads = load::loads(scenario, &mut measured, options).map_err(|e| e.of(scenario))?;
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
                    load.parts(self, variant).into_iter().map(move |part| (v, l, part))
                })
            })
            .collect();
        parts.sort_by_key(|(v, l, part)| (*part, *l, *v));
        parts
    }

    fn job(&self, job: jobs::Job, report: Report) -> Result<JobResult, LabError> {
        let variant = &self.scenario.variants[job.variant];
        let done = self.loads[job.load].run(self, variant, job.part, report);
        done.map_err(|e| e.of(variant))
    }

    /// Cuts of a variant: as many as were asked for, else as the scenario says.
    fn cuts_of(&self, variant: &Variant) -> u64 {
        let kernels = self.scenario.workload.kernel_cuts.filter(|_| variant.kernel.is_some());
        self.options.cuts.or(kernels).unwrap_or(self.cuts)
    }

    /// As many cuts as the kernel's variants have, where some were run beside this one of ours.
    fn cuts_beside(&self, variant: &Variant) -> Option<u64> {
        let kernels = self.scenario.variants.iter().find(|v| v.kernel.is_some())?;
        let beside = variant.kernel.is_none() && self.reals.load.is_some();
        Some(self.cuts_of(kernels)).filter(|cuts| beside && *cuts < self.cuts_of(variant))
    }

    /// The page cache of a variant's machine, where the scenario says it.
    fn memory_of(&self, variant: &Variant) -> Option<u64> {
        self.scenario.machine_of(variant).memory_mb.map(|mb| mb << 20)
    }

    /// The page cache of a variant's machine, for a run of `iozone`.
    fn page_cache_bytes(&self, iozone: &iozone::Options, variant: &Variant) -> u64 {
        let data = iozone.data_bytes();
        self.scenario.machine_of(variant).page_cache_bytes(Some(data))
    }
}

/// Looks whether a scenario can be run, at both sizes, as far as that is known before; makes
/// nothing.
///
/// # Errors
/// What [`run`] would refuse.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    for full in [false, true] {
        let setting = Setting::new(scenario, &RunOptions { full, ..RunOptions::default() })?;
        if let Some(why) = setting.refused() {
            return Err(why.of(scenario));
        }
    }
    Ok(())
}

/// Makes a variant's file system on its devices, mounts and unmounts it, in a simulation
/// ([`Setup::try_out`](steadfast_setup::Setup::try_out)). Nothing to try of the kernel's file
/// systems.
///
/// # Errors
/// The variant cannot be built, with the reason.
pub fn try_out(scenario: &Scenario, variant: &Variant) -> Result<(), LabError> {
    if variant.kernel.is_some() {
        return Ok(());
    }
    let setup = scenario.setup_of(variant);
    let tried = setup.simulation(1).run(move || setup.try_out().map_err(VariantError::from));
    tried.map_err(VariantError::from).flatten().map_err(|e| e.of(variant))
}

/// The names of all tests, of whatever workload.
pub(crate) fn test_names() -> Vec<&'static str> {
    let reads = ReadFile::ALL.map(ReadFile::test);
    let cells = Column::all().map(Column::name);
    benchmark::test_names().into_iter().chain(reads).chain(cells).collect()
}

/// What a command line of IOzone's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IozoneMode {
    /// Many children.
    Throughput,
    /// Single and auto mode: a matrix of sizes.
    Matrix,
}

/// The mode of a command line; of one that is wrong, throughput mode.
pub(crate) fn mode_of(line: &str) -> IozoneMode {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match iozone::parse(&words) {
        Ok(iozone::CommandLine::Run(options)) if options.matrix.is_some() => IozoneMode::Matrix,
        _ => IozoneMode::Throughput,
    }
}

/// IOzone's options of a command line of throughput mode, with another size if there is one.
pub(crate) fn iozone_options(line: &str, size: Option<&str>) -> Result<iozone::Options, LineError> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if let Some(text) = size {
        size::parse(text).map_err(|why| LineError::Size { size: text.to_owned(), why })?;
        replace_size(&mut words, text);
    }
    match iozone::parse(&words) {
        Ok(iozone::CommandLine::Run(options)) if options.matrix.is_some() => {
            Err(LineError::MatrixForOneSize)
        }
        Ok(iozone::CommandLine::Run(options)) => Ok(*options),
        Ok(_) => Err(LineError::HelpForOneSize),
        Err(why) => Err(match size {
            Some(text) => LineError::IozoneOfSize { size: text.to_owned(), why },
            None => LineError::Throughput(why),
        }),
    }
}

/// Puts `size` in the place of the value of `-s`, or adds it.
fn replace_size(words: &mut Vec<String>, size: &str) {
    for i in 0..words.len() {
        if words[i] == "-s" && i + 1 < words.len() {
            size.clone_into(&mut words[i + 1]);
            return;
        }
        if words[i].starts_with("-s") && words[i].len() > 2 {
            words[i] = format!("-s{size}");
            return;
        }
    }
    words.extend(["-s".to_owned(), size.to_owned()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_replaced_in_either_form() {
        for (line, want) in
            [("-t3 -s 4g -I", "-t3 -s 1m -I"), ("-s4g -I", "-s1m -I"), ("-I", "-I -s 1m")]
        {
            let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            replace_size(&mut words, "1m");
            assert_eq!(words.join(" "), want);
        }
    }
}
