//! Runs a scenario: every variant's benchmark and power cuts, two variants at a time.
//!
//! Each job is a simulation of its own, so the order in which jobs finish and what else the
//! machine does change nothing in the results.

mod again;
mod benchmark;
mod controls;
mod files;
mod gather;
mod kernel;
mod machine;
mod power;
mod real;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
// Jobs report from inside their simulations to the world outside: a channel of the runtime would
// belong to one of the two.
use std::sync::mpsc;

pub use again::cut_again;
pub use controls::Control;
use steadfast_bench::iozone;
use steadfast_crash::risk::FilesWorkload;
use steadfast_runtime::spawn;

use crate::LabError;
use crate::results::{FilesRow, Results, RiskRow, Row};
use crate::scenario::{Scenario, Variant, WorkloadKind};
use crate::size;
use real::{Real, Reals};

/// How to run a scenario.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// At the published size.
    pub full: bool,
    /// Cuts a variant; `None`: as many as the scenario says.
    pub cuts: Option<u64>,
    /// Seed of every random choice.
    pub seed: u64,
}

/// What one job brought.
enum Outcome {
    Speed {
        rows: Vec<Row>,
        virtual_seconds: f64,
        notes: Vec<String>,
    },
    Risk(Box<RiskRow>),
    /// Speed and power cuts of one and the same run.
    Files(Box<FilesRow>, Box<RiskRow>),
    /// This machine cannot run it, and why.
    LeftOut(String),
}

/// A job: one variant's benchmark or its power cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Speed,
    Risk,
}

/// What all jobs share.
struct Setting {
    scenario: Scenario,
    /// The scenario with the devices of the benchmark: scale models, at a reduced size.
    measured: Scenario,
    options: RunOptions,
    load: Load,
    cuts: u64,
    /// What was run in real time before.
    reals: Reals,
}

/// The workload, ready to be run.
enum Load {
    /// IOzone: the run that is measured, and the one that is cut.
    Iozone { speed: Box<iozone::Options>, risk: Box<iozone::Options> },
    /// The workload of files, and its description.
    Files(FilesWorkload, String),
}

/// From a job to whoever shows progress.
enum Message {
    Progress { job: usize, share: f64 },
    Done { job: usize, outcome: Result<Outcome, LabError> },
}

/// Reports how far a job is, 0 to 1.
type Report = Arc<dyn Fn(f64) + Send + Sync>;

/// Jobs at a time: as many as the machine has processors, at most.
fn workers(jobs: usize) -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(jobs)
}

/// Runs a scenario. `progress` is told, now and then, what share is done and what is going on.
///
/// # Errors
/// If the scenario asks for what cannot be, or a variant cannot be built or fails while it runs.
pub fn run(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &dyn Fn(f64, &str),
) -> Result<Results, LabError> {
    let mut setting = Setting::new(scenario, options)?;
    // Of the whole, what the runs in real time take; 0 without any.
    let first = Cell::new(0.0);
    setting.reals = real::run_all(&setting, &|share, what| {
        first.set(REAL_SHARE);
        progress(share * REAL_SHARE, what);
    })?;
    let first = first.get();
    let setting = Arc::new(setting);
    let jobs = setting.jobs();
    let rest = |share: f64, what: &str| progress(first + (1.0 - first) * share, what);
    let outcomes = run_jobs(&setting, &jobs, &rest)?;
    Ok(setting.results(&jobs, outcomes))
}

/// About what share of a run with the kernel's file systems is spent on measuring.
const REAL_SHARE: f64 = 0.5;

fn run_jobs(
    setting: &Arc<Setting>,
    jobs: &[(usize, Part)],
    progress: &dyn Fn(f64, &str),
) -> Result<Vec<Outcome>, LabError> {
    let (tx, rx) = mpsc::channel();
    let next = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..workers(jobs.len()))
        .map(|i| {
            let (setting, jobs, tx, next) =
                (Arc::clone(setting), jobs.to_vec(), tx.clone(), Arc::clone(&next));
            spawn(format!("lab {i}"), move || {
                loop {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(variant, part)) = jobs.get(job) else { return };
                    let progress = tx.clone();
                    // OK to ignore failed sends: the receiver outlives the tasks.
                    let report: Report = Arc::new(move |share| {
                        drop(progress.send(Message::Progress { job, share }));
                    });
                    let outcome = setting.job(variant, part, report);
                    drop(tx.send(Message::Done { job, outcome }));
                }
            })
        })
        .collect();
    drop(tx);
    let mut shares = vec![0.0; jobs.len()];
    let mut outcomes: Vec<Option<Outcome>> = jobs.iter().map(|_| None).collect();
    let mut failed = None;
    while let Ok(message) = rx.recv() {
        let job = match message {
            Message::Progress { job, share } => {
                shares[job] = share;
                job
            }
            Message::Done { job, outcome } => {
                shares[job] = 1.0;
                match outcome {
                    Ok(o) => outcomes[job] = Some(o),
                    Err(e) => {
                        // Jobs not yet begun are not begun any more.
                        next.store(jobs.len(), Ordering::Relaxed);
                        failed = failed.or(Some(e));
                    }
                }
                job
            }
        };
        let (variant, part) = jobs[job];
        let what = match part {
            Part::Speed => "benchmark",
            Part::Risk => "power cuts",
        };
        let share = shares.iter().sum::<f64>() / jobs.len() as f64;
        progress(share, &format!("{}: {what}", setting.scenario.variants[variant].name));
    }
    for task in tasks {
        if let Err(panicked) = task.join() {
            panicked.resume();
        }
    }
    match failed {
        Some(e) => Err(e),
        // OK to unwrap: a job that did not fail has an outcome.
        None => Ok(outcomes.into_iter().map(|o| o.unwrap()).collect()),
    }
}

impl Setting {
    fn new(scenario: &Scenario, options: &RunOptions) -> Result<Setting, LabError> {
        let wrong = |what: String| LabError::Scenario { origin: scenario.name.clone(), what };
        let mut measured = scenario.clone();
        let load = match scenario.workload.kind().map_err(wrong)? {
            WorkloadKind::Files(spec) => {
                Load::Files(spec.workload(options.seed), spec.description())
            }
            WorkloadKind::Iozone { line, quick_size, risk_size } => {
                let with_size = |size| iozone_options(line, size).map_err(wrong);
                let quick = Some(quick_size).filter(|_| !options.full);
                let (speed, whole) = (with_size(quick)?, with_size(None)?.file_bytes);
                if scenario.workload.quick_scales_disks && speed.file_bytes < whole {
                    for device in measured.devices.values_mut() {
                        *device = device.scaled(speed.file_bytes, whole);
                    }
                }
                let risk = Box::new(with_size(Some(risk_size))?);
                Load::Iozone { speed: Box::new(speed), risk }
            }
        };
        Ok(Setting {
            measured,
            load,
            cuts: options.cuts.unwrap_or(scenario.workload.cuts),
            reals: Reals::default(),
            scenario: scenario.clone(),
            options: options.clone(),
        })
    }

    /// All jobs, in the order of the results: benchmarks first, they are the longest. Of the
    /// workload of files one run is measured and cut.
    fn jobs(&self) -> Vec<(usize, Part)> {
        let variants = || self.scenario.variants.iter().enumerate();
        if let Load::Files(..) = self.load {
            return variants().map(|(i, _)| (i, Part::Risk)).collect();
        }
        let speed = variants().filter(|(_, v)| v.run.speed()).map(|(i, _)| (i, Part::Speed));
        let risk =
            variants().filter(|(_, v)| v.run.risk() && self.cuts > 0).map(|(i, _)| (i, Part::Risk));
        speed.chain(risk).collect()
    }

    fn job(&self, variant: usize, part: Part, report: Report) -> Result<Outcome, LabError> {
        let variant = &self.scenario.variants[variant];
        let done = match (&self.load, part) {
            (Load::Files(workload, _), _) => match self.reals.take(variant) {
                Some(Real::LeftOut(why)) => Ok(Outcome::LeftOut(why)),
                Some(Real::Kernel(peer, ran)) => {
                    Ok(kernel::run(self, variant, (&peer, ran), &report))
                }
                Some(Real::Ours(speed)) => {
                    files::run(self, workload, variant, Some(speed), &report)
                }
                None => files::run(self, workload, variant, None, &report),
            },
            (Load::Iozone { speed, .. }, Part::Speed) => {
                benchmark::run(self, speed, variant, report)
            }
            (Load::Iozone { risk, .. }, Part::Risk) => {
                power::run(self, risk, variant, &report).map(|r| Outcome::Risk(Box::new(r)))
            }
        };
        done.map_err(|what| LabError::Variant { variant: variant.name.clone(), what })
    }

    /// Cuts of a variant: as many as were asked for, else as the scenario says.
    fn cuts_of(&self, variant: &Variant) -> u64 {
        let kernels = self.scenario.workload.kernel_cuts.filter(|_| variant.kernel.is_some());
        self.options.cuts.or(kernels).unwrap_or(self.cuts)
    }

    /// The page cache of the simulated machine, for a run of `iozone`.
    fn page_cache_bytes(&self, iozone: &iozone::Options) -> u64 {
        let files = iozone.children.iter().max().copied().unwrap_or(1) as u64;
        let data = files * iozone.file_bytes;
        ((data as f64 * self.scenario.machine.page_cache_per_data) as u64).max(4 << 20)
    }
}

/// IOzone's options of a command line, with another size if there is one.
fn iozone_options(line: &str, size: Option<&str>) -> Result<iozone::Options, String> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if let Some(text) = size {
        size::parse(text).map_err(|e| format!("size '{text}': {e}"))?;
        replace_size(&mut words, text);
    }
    match iozone::parse(&words) {
        Ok(iozone::Parsed::Run(options)) => Ok(*options),
        Ok(_) => Err("workload.iozone asks for help instead of a run".into()),
        Err(e) => Err(format!("workload.iozone: {}", e.message)),
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
