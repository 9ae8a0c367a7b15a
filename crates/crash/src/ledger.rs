//! What the workload did and what it was promised.
//!
//! The ledger keeps every write and truncation of every file in the order in which they were
//! started, with the moments of the call, of its acknowledgement, and of the moment from which it
//! was promised to be durable. Writes carry stamped data ([`steadfast_block::pattern`]) whose
//! tag names the write, so that after a power cut each sector shows which write it is from.
//!
//! Moments are those of the devices' record ([`RecordLog`]), so that calls and requests are in one
//! order even where many happen at the same nanosecond.
//!
//! One task writes to a file at a time; different files are independent.

mod judge;

use std::collections::BTreeMap;
use std::fmt;

use steadfast_devices::filter::record::{Moment, RecordLog};
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
    /// Took the storage of a range away, which reads as zeros: a hole. Multiples of 512.
    Clear {
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Set the size, in bytes, a multiple of 512: what is beyond it has gone, what comes reads as
    /// zeros.
    Resize {
        /// The new size.
        size: u64,
    },
    /// Found places for a range; what had none reads as zeros.
    Allocate {
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The file does not become longer by it.
        keep_size: bool,
    },
}

impl Action {
    /// Made the file empty, or made it anew.
    pub const EMPTY: Action = Action::Resize { size: 0 };

    /// The range that reads as zeros from then on, whatever was there, if there is one.
    pub fn cleared(self) -> Option<(u64, u64)> {
        match self {
            Action::Clear { offset, len } => Some((offset, offset.saturating_add(len))),
            Action::Resize { size } => Some((size, u64::MAX)),
            Action::Write { .. } | Action::Allocate { .. } => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Write { offset, len, .. } => write!(f, "the write of {len} bytes at {offset}"),
            Action::Clear { offset, len } => write!(f, "the hole of {len} bytes at {offset}"),
            Action::Resize { size: 0 } => f.write_str("the truncation"),
            Action::Resize { size } => write!(f, "the new size of {size} bytes"),
            Action::Allocate { offset, len, .. } => {
                write!(f, "the allocation of {len} bytes at {offset}")
            }
        }
    }
}

/// One operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What it did.
    pub action: Action,
    /// When the call was made.
    pub started: Moment,
    /// When it returned.
    pub acknowledged: Option<Moment>,
    /// From when on it was promised to survive a power cut.
    pub durable: Option<Moment>,
}

/// Notes of the ledger in the record carry this label; their details mean nothing.
const NOTE: u64 = 0x6c65_6467_6572;

/// The operations on all files.
pub struct Ledger {
    log: RecordLog,
    accounts: Mutex<Accounts>,
}

/// What is known of each file.
#[derive(Default)]
struct Accounts {
    files: BTreeMap<FileName, Vec<Operation>>,
    /// So many operations of a file, from its first one on, are promised: a sync need not look at
    /// them again.
    promised: BTreeMap<FileName, usize>,
}

/// Names an operation that has started: pass it to [`Ledger::acknowledge`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationId {
    file: FileName,
    index: usize,
}

impl Ledger {
    /// A ledger whose moments are in the order of `log`.
    pub fn new(log: &RecordLog) -> Self {
        Ledger { log: log.clone(), accounts: Mutex::default() }
    }

    fn now(&self) -> Moment {
        self.log.note(NOTE, [0; 3])
    }

    /// Notes that an operation starts.
    pub fn start(&self, file: &str, action: Action) -> OperationId {
        let started = self.now();
        let mut accounts = self.accounts.lock();
        let ops = accounts.files.entry(file.to_owned()).or_default();
        ops.push(Operation { action, started, acknowledged: None, durable: None });
        OperationId { file: file.to_owned(), index: ops.len() - 1 }
    }

    /// Notes that it has returned; `durable` if that promised durability.
    pub fn acknowledge(&self, op: &OperationId, durable: bool) {
        let now = self.now();
        let mut accounts = self.accounts.lock();
        // OK to index: `OperationId` is only made by `start`, and nothing is ever removed.
        let op = accounts.files.get_mut(&op.file).map(|ops| &mut ops[op.index]);
        if let Some(op) = op {
            op.acknowledged = Some(now);
            op.durable = durable.then_some(now);
        }
    }

    /// Notes that an fsync or fdatasync of `file` (`None`: a sync of everything), begun at
    /// `started`, has returned: all that was acknowledged before it began is durable.
    pub fn synced(&self, file: Option<&str>, started: Nanos) {
        let now = self.now();
        let mut accounts = self.accounts.lock();
        let Accounts { files, promised } = &mut *accounts;
        for (name, ops) in files.iter_mut().filter(|(name, _)| file.is_none_or(|f| f == *name)) {
            let known = promised.get(name).copied().unwrap_or(0);
            let mut all_before = true;
            let mut count = known;
            for op in &mut ops[known..] {
                if op.durable.is_none() && op.acknowledged.is_some_and(|a| a.at <= started) {
                    op.durable = Some(now);
                }
                all_before &= op.durable.is_some();
                count += usize::from(all_before);
            }
            promised.insert(name.clone(), count);
        }
    }

    /// Looks at everything noted so far, without a copy of it.
    pub fn with_files<T>(&self, look: impl FnOnce(&BTreeMap<FileName, Vec<Operation>>) -> T) -> T {
        look(&self.accounts.lock().files)
    }

    /// Everything noted so far.
    pub fn files(&self) -> BTreeMap<FileName, Vec<Operation>> {
        self.accounts.lock().files.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use steadfast_runtime::{Sim, now, sleep};

    use super::*;

    #[test]
    fn a_sync_covers_what_was_acknowledged_before_it_started() {
        let files = Sim::new(0).run(|| {
            let ledger = Ledger::new(&RecordLog::new());
            let write = |tag| Action::Write { offset: 0, len: 512, tag };
            let a = ledger.start("f", write(1));
            ledger.acknowledge(&a, false);
            let b = ledger.start("f", write(2));
            sleep(Duration::from_nanos(1));
            let started = now();
            sleep(Duration::from_nanos(1));
            ledger.acknowledge(&b, false);
            ledger.synced(Some("f"), started);
            ledger.files()
        });
        let ops = &files.unwrap()["f"];
        assert!(ops[0].durable.is_some() && ops[1].durable.is_none());
    }

    #[test]
    fn what_one_sync_leaves_out_the_next_covers() {
        let files = Sim::new(0).run(|| {
            let ledger = Ledger::new(&RecordLog::new());
            let write = |tag| ledger.start("f", Action::Write { offset: 0, len: 512, tag });
            let step = || sleep(Duration::from_nanos(1));
            let early = write(1);
            ledger.acknowledge(&early, false);
            let late = write(2);
            let synchronous = write(3);
            ledger.acknowledge(&synchronous, true);
            step();
            let first = now();
            step();
            ledger.synced(Some("f"), first);
            ledger.acknowledge(&late, false);
            step();
            let second = now();
            step();
            ledger.synced(None, second);
            (ledger.files(), first, second)
        });
        let (files, first, second) = files.unwrap();
        let durable: Vec<_> = files["f"].iter().map(|op| op.durable.unwrap().at).collect();
        assert!(durable[0] > first && durable[0] < second, "{durable:?}");
        assert!(durable[1] > second && durable[2] < first, "{durable:?}");
    }
}
