//! Tasks of a program in this process, side by side, in schedules that are enumerated.
//!
//! A [`Schedule`] says which task begins, and at which points the running task is preempted: where
//! a transaction begins, where a commit is asked for, and where the program itself calls
//! [`preemption_point`](steadfast_runtime::preemption_point). [`each_schedule`] goes through all
//! with up to so many preemptions, those with fewer first, and leaves out preemptions that change
//! nothing because no other task could have gone on ([`PreemptionPoint::alone`]).

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use steadfast_devices::filter::record::Recording;
use steadfast_runtime::{Preemption, PreemptionPoint, spawn};
use steadfast_vfs::FileSystem;

use super::ProgramRun;
use super::inside::{AckLog, Program};
use crate::CrashError;

pub use crate::schedule::Schedule;

/// What a task does; its failure ends the test.
pub type Work = Box<dyn FnOnce(Arc<dyn FileSystem>, &AckLog) -> crate::Result<()> + Send + 'static>;

/// A task of a program.
pub struct Task {
    /// Its name.
    pub name: String,
    /// What it does.
    pub work: Work,
}

/// A program whose tasks work side by side, as a schedule says. It ends when all have ended.
pub fn side_by_side(mut tasks: Vec<Task>, begins: usize, preemption: &Preemption) -> Program {
    let preemption = preemption.clone();
    Box::new(move |fs, said| {
        if let Some(first) = tasks.get_mut(..=begins) {
            first.rotate_right(1);
        }
        preemption.start();
        let spawned: Vec<_> = tasks
            .into_iter()
            .map(|Task { name, work }| {
                let (fs, said, of) = (Arc::clone(&fs), said.clone(), name.clone());
                spawn(name, move || {
                    work(fs, &said).map_err(|why| CrashError::Run(format!("task '{of}': {why}")))
                })
            })
            .collect();
        let ended: Vec<_> =
            spawned.into_iter().map(|task| task.join().unwrap_or_else(|p| p.resume())).collect();
        preemption.stop();
        ended.into_iter().collect()
    })
}

/// How many schedules there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Schedules that were run.
    pub run: u64,
    /// Of these, schedules that left a recording which none before them had left.
    pub distinct: u64,
    /// Schedules that are known and were not run, for want of the leave to run more.
    pub left: u64,
}

/// A recorded run, and the points that were passed in it.
pub type TaskRun = (ProgramRun, Vec<PreemptionPoint>);

/// Runs the schedules of `tasks` tasks with up to so many preemptions, but not more than `most`.
/// `record` runs one; `each` is given each recording that is new, and says whether to go on.
///
/// # Errors
/// What `record` or `each` says.
pub fn each_schedule<E>(
    (tasks, preemptions, most): (usize, usize, u64),
    record: &mut dyn FnMut(&Schedule) -> Result<TaskRun, E>,
    each: &mut dyn FnMut(&Schedule, ProgramRun) -> Result<(), E>,
) -> Result<Counts, E> {
    let mut counts = Counts::default();
    let mut seen = HashSet::new();
    let base = |begins| Schedule { begins, points: Vec::new() };
    let mut waiting: VecDeque<Schedule> = (0..tasks).map(base).collect();
    while let Some(schedule) = waiting.pop_front() {
        if counts.run == most {
            counts.left = waiting.len() as u64 + 1;
            break;
        }
        counts.run += 1;
        let (run, passed) = record(&schedule)?;
        if schedule.points.len() < preemptions {
            let from = schedule.points.last().map_or(0, |last| *last as usize + 1);
            let others = (from..passed.len()).filter(|next| !passed[*next].alone);
            waiting.extend(others.map(|next| Schedule {
                begins: schedule.begins,
                points: [&schedule.points[..], &[next as u64]].concat(),
            }));
        }
        if seen.insert(digest(&run)) {
            counts.distinct += 1;
            each(&schedule, run)?;
        }
    }
    Ok(counts)
}

/// A number that is the same for runs in which the same happened in the same order, whenever that
/// was.
fn digest(run: &ProgramRun) -> u64 {
    let mut hasher = DefaultHasher::new();
    let recording: &Recording = &run.recording;
    let mut happenings: Vec<(u64, u64, u64)> = Vec::new();
    for (number, event) in recording.events().iter().enumerate() {
        happenings.push((event.submitted.tick, 0, number as u64));
        happenings.extend(event.completed.map(|c| (c.tick, 1, number as u64)));
        (event.device.0, event.failed, &event.action).hash(&mut hasher);
    }
    for note in recording.notes() {
        happenings.push((note.moment.tick, 2, 0));
        (note.label, note.detail).hash(&mut hasher);
    }
    run.lines.iter().for_each(|line| line.text.hash(&mut hasher));
    happenings.sort_unstable();
    let order: Vec<(u64, u64)> = happenings.into_iter().map(|(_, what, who)| (what, who)).collect();
    order.hash(&mut hasher);
    hasher.finish()
}
