//! Workloads of the corpus.

use std::fmt;

use steadfast_suite::operation::{Operation, list, listed};

/// What an operation makes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Persists<'o> {
    /// A file or a directory, with all that stat says of it.
    All(&'o str),
    /// What is needed to read a file.
    Data(&'o str),
    /// Everything.
    Everything,
}

/// What it makes durable, if it does.
pub(super) fn persists(op: &Operation) -> Option<Persists<'_>> {
    match op {
        Operation::Fsync { name, data_only: true } => Some(Persists::Data(name)),
        Operation::Fsync { name, .. } | Operation::FsyncDir { name } => Some(Persists::All(name)),
        Operation::Sync => Some(Persists::Everything),
        _ => None,
    }
}

/// A workload: what is there before, and what is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Done before and durable.
    pub setup: Vec<Operation>,
    /// Recorded and cut.
    pub ops: Vec<Operation>,
}

impl Workload {
    /// Of operations in words.
    pub(crate) fn read(name: &str, setup: &str, ops: &str) -> Workload {
        // OK: the tests of the corpus read all that there are.
        let read = |text| list(text).unwrap_or_else(|e| panic!("{name}: {e}"));
        Workload { name: name.into(), setup: read(setup), ops: read(ops) }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        if !self.setup.is_empty() {
            write!(f, "[{}] ", listed(&self.setup))?;
        }
        f.write_str(&listed(&self.ops))
    }
}
