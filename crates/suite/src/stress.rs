//! Random operations with a model: after any number of them the file system holds exactly what the
//! model does, byte for byte, also after a remount, and e2fsck finds nothing.
//!
//! Several tasks work at the same time. Each has a folder of its own, whose content it knows; all
//! share a folder in which they race for names, and a file of which each has parts, some of them in
//! the same pages as others'. Contents are written and read buffered, direct and mapped in turn.

mod contents;
mod draw;
mod random;
mod shared;
mod task;

use std::collections::BTreeMap;

use crate::{Result, SuiteError, Target, TargetKind};
use shared::SharedFile;
use task::{Fault, Task};

/// How much, and from which beginning.
#[derive(Debug, Clone, Copy)]
pub struct Stress {
    /// Operations of all tasks together.
    pub operations: u64,
    /// Tasks at the same time.
    pub tasks: usize,
    /// Remounts in between, evenly; everything is compared after each.
    pub remounts: u64,
    /// The same seed gives each task the same operations (but not the same races).
    pub seed: u64,
}

impl Stress {
    /// So many operations by four tasks with a remount in between.
    pub fn new(operations: u64, seed: u64) -> Stress {
        Stress { operations, tasks: 4, remounts: 1, seed }
    }
}

/// What a run that found no fault has done.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Operations done.
    pub operations: u64,
    /// Those that read or wrote with O_DIRECT.
    pub direct: u64,
    /// Those that read or wrote through a memory map.
    pub mapped: u64,
    /// Calls that the file system refused as not supported, by name, with how often.
    pub refused: BTreeMap<String, u64>,
}

impl Report {
    /// What was refused although such a target could do it.
    pub fn refused_for_no_reason(&self, kind: &TargetKind) -> Vec<&str> {
        let names = self.refused.keys().map(String::as_str);
        names.filter(|name| !kind.cannot().contains(name)).collect()
    }
}

impl Stress {
    /// Runs on a mounted, empty target, which is unmounted and checked at the end. `progress` is
    /// called with the number of operations done, after each round. A fault is an error that says
    /// what was found and what had been done before.
    pub fn run(&self, target: &mut Target, progress: &mut dyn FnMut(u64)) -> Result<Report> {
        let fault = |seed, what: Fault| SuiteError::Target(format!("seed {seed}: {what}"));
        let of = |what| fault(self.seed, what);
        let root = target.mountpoint();
        SharedFile::make(&root, self.tasks).map_err(of)?;
        let mut tasks = Vec::new();
        for i in 0..self.tasks {
            let folder = root.join(format!("task{i}"));
            std::fs::create_dir(&folder).map_err(SuiteError::host(&folder))?;
            let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(i as u64);
            let shared = SharedFile::new(&root, i, self.tasks);
            tasks.push(Task::new(folder, i, shared, seed).map_err(of)?);
        }
        let rounds = self.remounts + 1;
        let each = self.operations.div_ceil(rounds * self.tasks as u64).max(1);
        for _ in 0..rounds {
            at_once(&mut tasks, |task| task.run(each)).map_err(of)?;
            at_once(&mut tasks, |task| task.compare()).map_err(of)?;
            target.remount()?;
            at_once(&mut tasks, |task| task.compare())
                .map_err(|what| of(format!("after a remount: {what}")))?;
            progress(tasks.iter().map(|t| t.done).sum());
        }
        target.unmount()?;
        if let Some(found) = target.check()? {
            return Err(of(found));
        }
        let mut report = Report::default();
        for task in &tasks {
            report.operations += task.done;
            report.direct += task.direct + task.shared.direct;
            report.mapped += task.mapped + task.shared.mapped;
            for (name, count) in &task.refused {
                *report.refused.entry(name.clone()).or_default() += count;
            }
        }
        Ok(report)
    }
}

/// Has all tasks do something at the same time; the first fault, if there is one.
fn at_once(
    tasks: &mut [Task],
    work: impl Fn(&mut Task) -> std::result::Result<(), Fault> + Sync,
) -> std::result::Result<(), Fault> {
    std::thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = tasks.iter_mut().map(|t| scope.spawn(move || work(t))).collect();
        let mut outcome = Ok(());
        for thread in running {
            let done = match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            outcome = outcome.and(done);
        }
        outcome
    })
}
