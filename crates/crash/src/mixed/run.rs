//! Runs the tasks and notes what they did.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_runtime::{spawn, yield_now};
use steadfast_vfs::{FileSystem, FsError, Ino, NewNode, OpenFlags, RenameFlags, Result, SetAttr};

use super::generate::{Generator, Like};
use super::judge::{Done, History};
use super::operation::{How, Index, Operation, byte};

/// Notes of operations in the record carry this label.
const NOTE: u64 = 0x006d_6978_6564;

/// The folder of a task.
pub(super) fn folder_name(task: usize) -> String {
    format!("task{task}")
}

/// Runs `tasks` tasks of `operations` operations each, drawn from `seed`. Their folders are made
/// first and made durable; `begin` is called then.
///
/// # Errors
/// If an operation fails: none should.
pub fn record(
    fs: &Arc<dyn FileSystem>,
    log: &RecordLog,
    seed: u64,
    (tasks, operations): (usize, usize),
    like: Like,
    begin: impl FnOnce(),
) -> std::result::Result<History, String> {
    let folders: Vec<Ino> = (0..tasks)
        .map(|task| {
            let node = NewNode { mode: 0o755, ..NewNode::default() };
            fs.mkdir(fs.root(), folder_name(task).as_bytes(), node).map(|a| a.ino)
        })
        .collect::<Result<_>>()
        .map_err(|e| e.to_string())?;
    fs.sync().map_err(|e| e.to_string())?;
    if like.transact {
        fs.transact().map_err(|e| e.to_string())?;
    }
    begin();
    let running: Vec<_> = folders
        .into_iter()
        .enumerate()
        .map(|(task, folder)| {
            let worker = Worker { fs: Arc::clone(fs), folder, task };
            let log = log.clone();
            let seed = seed.wrapping_mul(1000).wrapping_add(task as u64);
            let mut generator = Generator::new(seed, like);
            spawn(format!("task {task}"), move || -> std::result::Result<Vec<Done>, String> {
                let mut done = Vec::new();
                for index in 0..operations {
                    let op = generator.next();
                    let started = note(&log, task, index, 0);
                    worker
                        .carry_out(index, &op)
                        .map_err(|e| format!("task {task}, operation {index}, {op:?}: {e}"))?;
                    let acknowledged = note(&log, task, index, 1);
                    done.push(Done { op, started, acknowledged });
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

fn note(log: &RecordLog, task: usize, index: Index, end: u64) -> Moment {
    log.note(NOTE, [task as u64, index as u64, end])
}

struct Worker {
    fs: Arc<dyn FileSystem>,
    folder: Ino,
    task: usize,
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

    fn carry_out(&self, index: Index, op: &Operation) -> Result<()> {
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
                    How::Buffered => rw,
                    How::Sync => rw | OpenFlags::SYNC,
                    How::DataSync => rw | OpenFlags::DSYNC,
                    How::Direct => rw | OpenFlags::DIRECT,
                };
                self.write(index, name, (*offset, *len), flags)
            }
            Operation::Truncate { name, size } => {
                let set = SetAttr { size: Some(*size), ..SetAttr::default() };
                fs.setattr(self.find(name)?, set).map(drop)
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
        index: Index,
        name: &str,
        (offset, len): (u64, u64),
        flags: OpenFlags,
    ) -> Result<()> {
        let fh = self.fs.open(self.find(name)?, flags)?;
        let data: Bytes = (offset..offset + len).map(|at| byte(self.task, index, at)).collect();
        let written = self.fs.write(fh, offset, data)?;
        self.fs.release(fh)?;
        if written as u64 != len {
            return Err(FsError::Io { what: format!("{written} of {len} bytes written") });
        }
        Ok(())
    }
}
