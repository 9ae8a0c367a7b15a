//! A workload carried out on a file system, with what was seen after each operation.

use std::collections::BTreeMap;

use steadfast_crash::explore::ext4::words;
use steadfast_crash::program::{Tree, Unreadable};
use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_suite::operation::Operation;
use steadfast_vfs::{FileSystem, FsError};

use super::step::Workload;

/// Notes of operations carry this label.
const NOTE: u64 = 0x636f_7270_7573;

/// An operation that was carried out.
#[derive(Debug, Clone)]
pub(super) struct OperationRecord {
    pub op: Operation,
    pub started: Moment,
    pub returned: Moment,
    /// It was refused, and changed nothing.
    pub refused: bool,
}

/// What was done, and what was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct OperationTrace {
    pub(super) done: Vec<OperationRecord>,
    /// Before the first operation, and after each.
    pub(super) seen: Vec<Tree>,
    /// Of each look, which file has each name: a number that no other file ever has.
    pub(super) files: Vec<BTreeMap<Vec<u8>, u64>>,
}

impl OperationTrace {
    /// How many operations were refused: they count as not made.
    pub(super) fn refused(&self) -> usize {
        self.done.iter().filter(|done| done.refused).count()
    }

    /// How many notes were made before a tick: what a judge knows.
    pub(super) fn age(&self, tick: u64) -> u64 {
        let before = |moment: Moment| u64::from(moment.tick < tick);
        self.done.iter().map(|done| before(done.started) + before(done.returned)).sum()
    }

    /// Takes a look, and distinguishes the files: a number that was free in between is another
    /// file.
    fn look(&mut self, fs: &dyn FileSystem) -> std::result::Result<(), Unreadable> {
        let seen = Tree::look_whole(fs, fs.root())?;
        let mut known: BTreeMap<u64, u64> = BTreeMap::new();
        if let (Some(names), Some(files)) = (self.seen.last(), self.files.last()) {
            known.extend(names.nodes().map(|(path, node)| (node.attr.ino.0, files[path])));
        }
        let first = self.files.len() as u64 * (1 << 32);
        let mut fresh = BTreeMap::new();
        let files = seen.nodes().map(|(path, node)| {
            let (ino, next) = (node.attr.ino.0, first + fresh.len() as u64);
            let file = known.get(&ino).copied();
            (path.to_vec(), file.unwrap_or_else(|| *fresh.entry(ino).or_insert(next)))
        });
        self.files.push(files.collect());
        self.seen.push(seen);
        Ok(())
    }
}

/// Does what must be there before, and makes it durable.
///
/// # Errors
/// What was refused.
pub(super) fn set_up(fs: &dyn FileSystem, workload: &Workload) -> steadfast_crash::Result<()> {
    for (number, op) in workload.setup.iter().enumerate() {
        op.apply(fs, fs.root(), (0, number)).map_err(|e| format!("{op}: {e}"))?;
    }
    Ok(fs.sync().map_err(|e| format!("sync: {e}"))?)
}

/// Carries out what is recorded, and looks after each operation.
///
/// # Errors
/// What cannot be read of a file system that is not damaged, or not be done.
pub(super) fn play(
    fs: &dyn FileSystem,
    log: &RecordLog,
    workload: &Workload,
) -> steadfast_crash::Result<OperationTrace> {
    let mut trace = OperationTrace::default();
    trace.look(fs).map_err(words)?;
    for (number, op) in workload.ops.iter().enumerate() {
        let started = log.note(NOTE, [number as u64, 0, 0]);
        let refused = !apply(fs, workload, number)?;
        let returned = log.note(NOTE, [number as u64, 1, 0]);
        trace.done.push(OperationRecord { op: op.clone(), started, returned, refused });
        trace.look(fs).map_err(words)?;
    }
    Ok(trace)
}

/// Carries out what is recorded; how many operations were refused.
///
/// # Errors
/// What cannot be done.
pub(super) fn carry_out(fs: &dyn FileSystem, workload: &Workload) -> steadfast_crash::Result<u64> {
    let mut refused = 0;
    for number in 0..workload.ops.len() {
        refused += u64::from(!apply(fs, workload, number)?);
    }
    Ok(refused)
}

/// Whether an operation was done, and not refused.
fn apply(fs: &dyn FileSystem, workload: &Workload, number: usize) -> steadfast_crash::Result<bool> {
    let op = &workload.ops[number];
    match op.apply(fs, fs.root(), (0, workload.setup.len() + number)) {
        Ok(()) => Ok(true),
        // As a program that does not look at errors.
        Err(
            FsError::Exists
            | FsError::NotFound
            | FsError::NotEmpty
            | FsError::NotDirectory
            | FsError::IsDirectory
            | FsError::Invalid { .. }
            | FsError::NoData
            | FsError::Unsupported { .. },
        ) => Ok(false),
        Err(e) => Err(format!("{op}: {e}").into()),
    }
}
