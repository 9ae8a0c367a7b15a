//! What the workload did and what it was promised.
//!
//! The ledger keeps every write and truncation of every file in the order in which they were
//! started, with the times of the call, of its acknowledgement, and of the moment from which it
//! was promised to be durable. Writes carry stamped data ([`steadfast_block::pattern`]) whose
//! tag names the write, so that after a power cut each sector tells which write it is from.
//!
//! One task writes to a file at a time; different files are independent.

use std::collections::BTreeMap;

use steadfast_runtime::{Mutex, Nanos};

/// A file of the workload, by its path in the file system.
pub type FileName = String;

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Wrote stamped data.
    Write {
        /// Byte offset, a multiple of 512.
        offset: u64,
        /// Bytes, a multiple of 512.
        len: u64,
        /// The data's tag.
        tag: u64,
    },
    /// Made the file empty, or made it anew.
    Truncate,
}

/// One operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What it did.
    pub action: Action,
    /// When the call was made.
    pub started: Nanos,
    /// When it returned.
    pub acknowledged: Option<Nanos>,
    /// From when on it was promised to survive a power cut.
    pub durable: Option<Nanos>,
}

/// The operations on all files.
#[derive(Debug, Default)]
pub struct Ledger {
    files: Mutex<BTreeMap<FileName, Vec<Operation>>>,
}

/// Names an operation that has started: pass it to [`Ledger::acknowledge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    file: FileName,
    index: usize,
}

impl Ledger {
    /// Notes that an operation starts at `at`.
    pub fn start(&self, file: &str, action: Action, at: Nanos) -> Started {
        let mut files = self.files.lock();
        let ops = files.entry(file.to_owned()).or_default();
        ops.push(Operation { action, started: at, acknowledged: None, durable: None });
        Started { file: file.to_owned(), index: ops.len() - 1 }
    }

    /// Notes that it returned at `at`; `durable` if that promised durability.
    pub fn acknowledge(&self, op: &Started, at: Nanos, durable: bool) {
        let mut files = self.files.lock();
        // OK to index: `Started` is only made by `start`, and nothing is ever removed.
        let op = files.get_mut(&op.file).map(|ops| &mut ops[op.index]);
        if let Some(op) = op {
            op.acknowledged = Some(at);
            op.durable = durable.then_some(at);
        }
    }

    /// Notes that an fsync or fdatasync of `file`, started at `started`, returned at `at`: all
    /// that was acknowledged before it started is durable.
    pub fn synced(&self, file: &str, started: Nanos, at: Nanos) {
        let mut files = self.files.lock();
        for op in files.get_mut(file).into_iter().flatten() {
            if op.durable.is_none() && op.acknowledged.is_some_and(|a| a <= started) {
                op.durable = Some(at);
            }
        }
    }

    /// Everything noted so far.
    pub fn files(&self) -> BTreeMap<FileName, Vec<Operation>> {
        self.files.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_was_acknowledged_before_it_started() {
        let ledger = Ledger::default();
        let write = |tag| Action::Write { offset: 0, len: 512, tag };
        let a = ledger.start("f", write(1), Nanos(1));
        ledger.acknowledge(&a, Nanos(2), false);
        let b = ledger.start("f", write(2), Nanos(3));
        ledger.synced("f", Nanos(4), Nanos(9));
        ledger.acknowledge(&b, Nanos(5), false);
        let files = ledger.files();
        assert_eq!(files["f"][0].durable, Some(Nanos(9)));
        assert_eq!(files["f"][1].durable, None);
    }
}
