//! Runs the tasks and notes what they did.

use std::sync::Arc;

use steadfast_devices::filter::record::{Moment, RecordLog, Recording};
use steadfast_runtime::{spawn, yield_now};
use steadfast_suite::operation::{Operation, OperationIndex};
use steadfast_vfs::{FileSystem, Ino, NewNode, Result};

use super::generate::{Generator, WorkloadMix};
use super::judge::{History, OperationAck};

/// Notes of operations in the record carry this label.
const NOTE: u64 = 0x006d_6978_6564;

/// The folder of a task.
pub(crate) fn folder_name(task: usize) -> String {
    format!("task{task}")
}

/// What the tasks do, each its own operations in order.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) tasks: Vec<Vec<Operation>>,
    /// An operation that fails changes nothing and is left out: others that it needs may have been
    /// taken out of the script.
    pub(super) may_fail: bool,
}

impl Script {
    /// `tasks` tasks of `operations` operations each, drawn from `seed`.
    pub(super) fn drawn(seed: u64, tasks: usize, operations: usize, like: WorkloadMix) -> Script {
        let task = |task: usize| {
            let seed = seed.wrapping_mul(1000).wrapping_add(task as u64);
            let mut generator = Generator::new(seed, like);
            (0..operations).map(|_| generator.next()).collect()
        };
        Script { tasks: (0..tasks).map(task).collect(), may_fail: false }
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.tasks.iter().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The operations of each task that had begun before a cut of the run.
    #[must_use]
    pub fn before(&self, recording: &Recording, cut: u64) -> Script {
        let mut begun = vec![0; self.tasks.len()];
        for note in recording.notes_before(cut).iter().filter(|note| note.label == NOTE) {
            let [task, _, end] = note.detail;
            if let Some(count) = begun.get_mut(task as usize).filter(|_| end == 0) {
                *count += 1;
            }
        }
        let first =
            |(ops, count): (&Vec<Operation>, usize)| ops.iter().take(count).cloned().collect();
        let tasks = self.tasks.iter().zip(begun).map(first).collect();
        Script { tasks, may_fail: self.may_fail }
    }

    /// Only the operations of which `keep` says so, by task and place.
    #[must_use]
    pub fn only(&self, keep: impl Fn(usize, usize) -> bool) -> Script {
        let task = |(task, ops): (usize, &Vec<Operation>)| {
            let kept = ops.iter().enumerate().filter(|(index, _)| keep(task, *index));
            kept.map(|(_, op)| op.clone()).collect()
        };
        Script { tasks: self.tasks.iter().enumerate().map(task).collect(), may_fail: true }
    }

    /// Task and place of each operation, task by task.
    pub fn places(&self) -> Vec<(usize, usize)> {
        let of = |(task, ops): (usize, &Vec<Operation>)| {
            (0..ops.len()).map(move |index| (task, index)).collect::<Vec<_>>()
        };
        self.tasks.iter().enumerate().flat_map(of).collect()
    }

    /// The operations in words, a line each.
    pub fn lines(&self) -> Vec<String> {
        let line =
            |(task, index): (usize, usize)| format!("task {task}: {}", self.tasks[task][index]);
        self.places().into_iter().map(line).collect()
    }
}

/// Runs a script. The tasks' folders are made first and made durable; `begin` is called then.
///
/// # Errors
/// If an operation fails: none that was drawn should.
pub fn record(
    fs: &Arc<dyn FileSystem>,
    log: &RecordLog,
    script: &Script,
    transact: bool,
    begin: impl FnOnce(),
) -> steadfast_crash::Result<History> {
    let folders: Vec<Ino> = (0..script.tasks.len())
        .map(|task| {
            let node = NewNode { mode: 0o755, ..NewNode::default() };
            fs.mkdir(fs.root(), folder_name(task).as_bytes(), node).map(|a| a.ino)
        })
        .collect::<Result<_>>()
        .map_err(|e| e.to_string())?;
    fs.sync().map_err(|e| e.to_string())?;
    if transact {
        fs.transact().map_err(|e| e.to_string())?;
    }
    begin();
    let running: Vec<_> = folders
        .into_iter()
        .zip(script.tasks.clone())
        .enumerate()
        .map(|(task, (folder, operations))| {
            let worker = Worker { fs: Arc::clone(fs), folder, task };
            let log = log.clone();
            let may_fail = script.may_fail;
            spawn(format!("task {task}"), move || -> steadfast_crash::Result<Vec<OperationAck>> {
                let mut done = Vec::new();
                for op in operations {
                    let index = done.len();
                    let started = note(&log, task, index, 0);
                    let outcome = worker.carry_out(index, &op);
                    let acknowledged = note(&log, task, index, 1);
                    match outcome {
                        Ok(()) => done.push(OperationAck { op, started, acknowledged }),
                        Err(_) if may_fail => {}
                        Err(e) => {
                            return Err(format!("task {task}, operation {index}, {op}: {e}").into());
                        }
                    }
                    yield_now();
                }
                Ok(done)
            })
        })
        .collect();
    let mut history = Vec::new();
    for task in running {
        history.push(task.join().unwrap_or_else(|p| p.resume())?);
    }
    Ok(History { tasks: history })
}

pub(crate) fn note(log: &RecordLog, task: usize, index: OperationIndex, end: u64) -> Moment {
    log.note(NOTE, [task as u64, index as u64, end])
}

/// Carries out the operations of a task in its folder.
pub(crate) struct Worker {
    pub fs: Arc<dyn FileSystem>,
    pub folder: Ino,
    pub task: usize,
}

impl Worker {
    pub fn carry_out(&self, index: OperationIndex, op: &Operation) -> Result<()> {
        op.apply(&*self.fs, self.folder, (self.task, index))
    }
}
