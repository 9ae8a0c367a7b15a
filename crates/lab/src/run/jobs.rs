//! Runs the parts of all seeds, as many at a time as the machine has processors.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering};
// Jobs report from inside their simulations to the world outside: a channel of the runtime would
// belong to one of the two.
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use steadfast_runtime::spawn;

use super::setting::{Part, Report, Setting, Watch};
use super::workload::JobResult;
use crate::{LabError, VariantError};

/// A job: a seed, a variant and a workload, each by its place, and what of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    pub seed: usize,
    pub variant: usize,
    pub load: usize,
    pub part: Part,
}

/// What came of a job.
pub(super) type JobEnd = Result<JobResult, VariantError>;

/// From a job to what shows progress, with the job's place.
enum Message {
    Begun,
    Progress(f64),
    Done(Box<JobEnd>),
}

/// How often somebody who wants to stop is asked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// All jobs: one seed after the other.
pub(super) fn of(settings: &[Arc<Setting>]) -> Vec<Job> {
    let jobs = settings.iter().enumerate().flat_map(|(seed, setting)| {
        let parts = setting.parts().into_iter();
        parts.map(move |(variant, load, part)| Job { seed, variant, load, part })
    });
    jobs.collect()
}

/// The order in which jobs are begun: of each seed what takes longest first, so that no processor
/// is idle while another has the last one to itself.
fn order(settings: &[Arc<Setting>], jobs: &[Job]) -> Vec<usize> {
    let takes = |job: &Job| match job.part {
        Part::Speed => {
            let setting = &settings[job.seed];
            setting.loads[job.load].weight(&setting.scenario.variants[job.variant])
        }
        Part::Risk => 0,
    };
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|i| (jobs[*i].seed, Reverse(takes(&jobs[*i]))));
    order
}

/// Jobs at a time: as many as the machine has processors, at most; in real time one.
fn workers(settings: &[Arc<Setting>], jobs: usize) -> usize {
    let real = settings.iter().any(|setting| setting.options.real.is_some());
    let most = if real { Ok(1) } else { std::thread::available_parallelism().map(usize::from) };
    most.unwrap_or(1).min(jobs)
}

/// Runs the jobs. `None` stands for one that had not ended when somebody wanted to stop. If
/// something was measured before (`kept`), by a job or without one, a job that fails takes nothing
/// from the others.
///
/// # Errors
/// A job failed before anything was measured; no further one is begun then.
pub(super) fn run(
    settings: &[Arc<Setting>],
    jobs: &[Job],
    kept: bool,
    watch: &Watch<'_>,
) -> Result<Vec<Option<JobEnd>>, LabError> {
    let (tx, rx) = mpsc::channel();
    let stopped = watch.stop.load(Ordering::Relaxed);
    let next = Arc::new(AtomicUsize::new(if stopped { jobs.len() } else { 0 }));
    let order = Arc::new(order(settings, jobs));
    let tasks: Vec<_> = (0..workers(settings, jobs.len()))
        .map(|i| {
            let (settings, jobs, tx) = (settings.to_vec(), jobs.to_vec(), tx.clone());
            let (order, next) = (Arc::clone(&order), Arc::clone(&next));
            spawn(format!("lab {i}"), move || work(&settings, &jobs, &tx, (&order, &next)))
        })
        .collect();
    drop(tx);
    let mut state = State::new(settings, jobs, kept);
    loop {
        if watch.stop.load(Ordering::Relaxed) {
            // No further job is begun. Those that run are left alone, but for mounts of the
            // kernel's.
            next.store(jobs.len(), Ordering::Relaxed);
            if !state.must_end() {
                return state.end();
            }
        }
        match rx.recv_timeout(LOOK_EVERY) {
            Ok((job, message)) => {
                state.take(job, message);
                if state.failed.is_some() {
                    next.store(jobs.len(), Ordering::Relaxed);
                }
                (watch.progress)(state.share(), &state.words(job));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    for task in tasks {
        if let Err(panicked) = task.join() {
            panicked.resume();
        }
    }
    state.end()
}

/// One worker: a job after the other, until there is none.
fn work(
    settings: &[Arc<Setting>],
    jobs: &[Job],
    tx: &mpsc::Sender<(usize, Message)>,
    (order, next): (&[usize], &AtomicUsize),
) {
    loop {
        let Some(&job) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
        let what = jobs[job];
        // OK to ignore failed sends: if nobody listens any more, nobody wants to know.
        drop(tx.send((job, Message::Begun)));
        let progress = tx.clone();
        let report: Report = Arc::new(move |share| {
            drop(progress.send((job, Message::Progress(share))));
        });
        let outcome = Box::new(settings[what.seed].job(what, report));
        drop(tx.send((job, Message::Done(outcome))));
    }
}

/// What is known of the jobs.
struct State<'a> {
    settings: &'a [Arc<Setting>],
    jobs: &'a [Job],
    shares: Vec<f64>,
    running: Vec<bool>,
    outcomes: Vec<Option<JobEnd>>,
    /// Something was measured.
    kept: bool,
    /// What failed before anything was measured.
    failed: Option<LabError>,
}

impl<'a> State<'a> {
    fn new(settings: &'a [Arc<Setting>], jobs: &'a [Job], kept: bool) -> Self {
        State {
            settings,
            jobs,
            shares: vec![0.0; jobs.len()],
            running: vec![false; jobs.len()],
            outcomes: jobs.iter().map(|_| None).collect(),
            kept,
            failed: None,
        }
    }

    /// Takes a message of a job in.
    fn take(&mut self, job: usize, message: Message) {
        match message {
            Message::Begun => self.running[job] = true,
            Message::Progress(share) => self.shares[job] = share,
            Message::Done(outcome) => {
                self.shares[job] = 1.0;
                self.running[job] = false;
                match *outcome {
                    Err(e) if !self.kept => {
                        let Job { seed, variant, .. } = self.jobs[job];
                        let variant = &self.settings[seed].scenario.variants[variant];
                        self.failed.get_or_insert(e.of(variant));
                    }
                    outcome => {
                        self.kept |= outcome.is_ok();
                        self.outcomes[job] = Some(outcome);
                    }
                }
            }
        }
    }

    fn share(&self) -> f64 {
        self.shares.iter().sum::<f64>() / self.jobs.len().max(1) as f64
    }

    /// What a job is, in words.
    fn words(&self, job: usize) -> String {
        let Job { seed, variant, part, .. } = self.jobs[job];
        let setting = &self.settings[seed];
        let what = match part {
            Part::Speed => "benchmark",
            Part::Risk => "power cuts",
        };
        let name = &setting.scenario.variants[variant].name;
        match self.settings.len() {
            1 => format!("{name}: {what}"),
            _ => format!("seed {}: {name}: {what}", setting.options.seed),
        }
    }

    /// Whether a job runs that cannot be left alone: the kernel's file systems are mounted.
    fn must_end(&self) -> bool {
        let kernel =
            |job: &Job| self.settings[job.seed].scenario.variants[job.variant].kernel.is_some();
        self.jobs.iter().zip(&self.running).any(|(job, running)| *running && kernel(job))
    }

    fn end(self) -> Result<Vec<Option<JobEnd>>, LabError> {
        self.failed.map_or(Ok(self.outcomes), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunOptions;
    use crate::scenario::Scenario;

    #[test]
    fn of_each_seed_what_takes_longest_is_begun_first() {
        let scenario = Scenario::find("nvram-journal").unwrap();
        let setting = |seed| Setting::new(&scenario, &RunOptions { seed, ..RunOptions::default() });
        let settings = [1, 2].map(|seed| Arc::new(setting(seed).unwrap()));
        let jobs = of(&settings);
        let order = order(&settings, &jobs);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..jobs.len()), "each once");
        assert!(order.is_sorted_by_key(|i| jobs[*i].seed));
        for seed in 0..2 {
            let first = order.iter().map(|i| jobs[*i]).find(|job| job.seed == seed).unwrap();
            assert_eq!(scenario.variants[first.variant].name, "external-data");
            assert_eq!(first.part, Part::Speed);
        }
    }
}
