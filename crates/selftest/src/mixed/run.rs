//! Runs the tasks and notes what they did.

use std::sync::Arc;
use std::time::Duration;

use steadfast_devices::filter::record::{Moment, RecordLog, Recording};
use steadfast_runtime::{sleep, spawn, yield_now};
use steadfast_vfs::{
    FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr, SetXattr,
};

use super::generate::{Generator, WorkloadMix};
use super::judge::{History, OperationAck};
use super::operation::{Operation, OperationIndex, WriteKind, attribute, fill};
use super::seen::ATTRIBUTE;

/// How long a file is kept open that has lost its name.
const OPEN_WITHOUT_NAME: Duration = Duration::from_millis(3);

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
            |(task, index): (usize, usize)| format!("task {task}: {:?}", self.tasks[task][index]);
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
                            return Err(
                                format!("task {task}, operation {index}, {op:?}: {e}").into()
                            );
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
    fn at(&self, name: &str) -> Result<(Ino, Vec<u8>)> {
        let mut dir = self.folder;
        let (folders, last) = name.rsplit_once('/').unwrap_or(("", name));
        for step in folders.split('/').filter(|s| !s.is_empty()) {
            dir = self.fs.lookup(dir, step.as_bytes())?.ino;
        }
        Ok((dir, last.as_bytes().to_vec()))
    }

    fn find(&self, name: &str) -> Result<Ino> {
        if name.is_empty() {
            return Ok(self.folder);
        }
        let (dir, last) = self.at(name)?;
        Ok(self.fs.lookup(dir, &last)?.ino)
    }

    pub fn carry_out(&self, index: OperationIndex, op: &Operation) -> Result<()> {
        let fs = &*self.fs;
        let rw = OpenFlags::READ | OpenFlags::WRITE;
        match op {
            Operation::Create { name } => {
                let (dir, last) = self.at(name)?;
                let (_, fh) = fs.create(dir, &last, NewNode::default(), rw)?;
                fs.release(fh)
            }
            Operation::Mkdir { name } => {
                let (dir, last) = self.at(name)?;
                fs.mkdir(dir, &last, NewNode { mode: 0o755, ..NewNode::default() }).map(drop)
            }
            Operation::Symlink { name, target } => {
                let (dir, last) = self.at(name)?;
                fs.symlink(dir, &last, target.as_bytes(), NewNode::default()).map(drop)
            }
            Operation::Link { from, to } => {
                let (ino, (dir, last)) = (self.find(from)?, self.at(to)?);
                fs.link(ino, dir, &last).map(drop)
            }
            Operation::Unlink { name } => {
                let (dir, last) = self.at(name)?;
                fs.unlink(dir, &last)
            }
            Operation::UnlinkOpen { name } => {
                let fh = fs.open(self.find(name)?, rw)?;
                let (dir, last) = self.at(name)?;
                let removed = fs.unlink(dir, &last);
                // Others commit meanwhile.
                sleep(OPEN_WITHOUT_NAME);
                fs.release(fh)?;
                removed
            }
            Operation::Rmdir { name } => {
                let (dir, last) = self.at(name)?;
                fs.rmdir(dir, &last)
            }
            Operation::Rename { from, to } => {
                let ((from_dir, from), (to_dir, to)) = (self.at(from)?, self.at(to)?);
                fs.rename(from_dir, &from, to_dir, &to, RenameFlags::empty())
            }
            Operation::Write { name, offset, len, how } => {
                let flags = match how {
                    WriteKind::Buffered | WriteKind::Mapped => rw,
                    WriteKind::Sync => rw | OpenFlags::SYNC,
                    WriteKind::DataSync => rw | OpenFlags::DSYNC,
                    WriteKind::Direct => rw | OpenFlags::DIRECT,
                };
                self.write(index, name, (*offset, *len), (flags, *how))
            }
            Operation::Truncate { name, size } => {
                let set = SetAttr { size: Some(*size), ..SetAttr::default() };
                fs.setattr(self.find(name)?, set).map(drop)
            }
            Operation::Fallocate { name, what, offset, len } => {
                let fh = fs.open(self.find(name)?, rw)?;
                fs.fallocate(fh, *what, *offset, *len)?;
                fs.release(fh)
            }
            Operation::SetAttribute { name, len } => {
                fs.setxattr(self.find(name)?, ATTRIBUTE, &attribute(*len), SetXattr::Any)
            }
            Operation::Exchange { one, other } => {
                let ((from_dir, from), (to_dir, to)) = (self.at(one)?, self.at(other)?);
                fs.rename(from_dir, &from, to_dir, &to, RenameFlags::EXCHANGE)
            }
            Operation::Chmod { name, mode } => {
                let set = SetAttr { mode: Some(*mode), ..SetAttr::default() };
                fs.setattr(self.find(name)?, set).map(drop)
            }
            Operation::Fsync { name, data_only } => {
                let fh = fs.open(self.find(name)?, rw)?;
                fs.fsync(fh, *data_only)?;
                fs.release(fh)
            }
            Operation::FsyncDir { name } => fs.fsyncdir(self.find(name)?),
            Operation::Sync => fs.sync(),
            Operation::Transact => fs.transact(),
        }
    }

    fn write(
        &self,
        index: OperationIndex,
        name: &str,
        (offset, len): (u64, u64),
        (flags, how): (OpenFlags, WriteKind),
    ) -> Result<()> {
        let fh = self.fs.open(self.find(name)?, flags)?;
        let mut data = vec![0; len as usize];
        fill(self.task, index, offset, &mut data);
        let written = match how {
            WriteKind::Mapped => {
                self.fs.write_as(fh, offset, data.into(), OpenFlags::WRITTEN_BACK)?
            }
            _ => self.fs.write(fh, offset, data.into())?,
        };
        self.fs.release(fh)?;
        if written as u64 != len {
            return Err(FsError::Io { what: format!("{written} of {len} bytes written") });
        }
        Ok(())
    }
}
