//! The parent: files laid out, then each job in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::rng::Rng;
use steadfast_runtime::{Condvar, Mutex, sleep, spawn};
use steadfast_vfs::FileSystem;

use super::files::{self, FileCallError};
use super::plan::{FioJob, FioPlan, StartRule};
use super::results::FioResults;
use super::worker;

/// Which jobs have ended.
struct EndedJobs {
    ended: Mutex<Vec<bool>>,
    one_more: Condvar,
}

/// Runs a plan on a file system: in real time, or in virtual time if called inside a simulation.
/// `told`: a job whose files are being laid out.
///
/// Files stay, unless `unlink` says otherwise. A job that fails ends; the others go on.
///
/// # Errors
/// The files cannot be laid out.
pub fn run(
    fs: &Arc<dyn FileSystem>,
    plan: &FioPlan,
    told: impl FnMut(&FioJob),
) -> Result<FioResults, FileCallError> {
    files::lay_out(&**fs, plan, told)?;
    let ended = Arc::new(EndedJobs {
        ended: Mutex::new(vec![false; plan.jobs.len()]),
        one_more: Condvar::new(),
    });
    let tasks: Vec<_> = plan
        .jobs
        .iter()
        .enumerate()
        .map(|(number, job)| {
            let (fs, job, ended) = (Arc::clone(fs), Arc::clone(job), Arc::clone(&ended));
            let name = format!("{} {}", job.options.name, job.clone);
            spawn(name, move || {
                ended.wait(job.after);
                sleep(start_delay(&job));
                let ran = worker::run(&fs, &job, number as u64 + 1);
                ended.end(number);
                ran
            })
        })
        .collect();
    let ran = plan.jobs.iter().zip(tasks).map(|(job, task)| {
        let (figures, fault) = task.join().unwrap_or_else(|panicked| panicked.resume());
        (Arc::clone(job), figures, fault)
    });
    Ok(FioResults::of(ran.collect(), plan.notes.clone()))
}

fn start_delay(job: &FioJob) -> Duration {
    let (from, to) = job.options.startdelay;
    let mut rng = Rng::new(job.seed ^ 0x6465_6c61);
    let range = u64::try_from((to - from).as_nanos()).unwrap_or(u64::MAX);
    from + Duration::from_nanos(rng.below(range.saturating_add(1)))
}

impl EndedJobs {
    fn wait(&self, rule: StartRule) {
        let jobs = match rule {
            StartRule::Before(number) => 0..number,
            StartRule::Of(from, to) => from..to,
        };
        let ended = self.ended.lock();
        drop(self.one_more.wait_while(ended, |ended| !ended[jobs.clone()].iter().all(|e| *e)));
    }

    fn end(&self, number: usize) {
        self.ended.lock()[number] = true;
        self.one_more.notify_all();
    }
}
