//! What a sweep fails with.

use std::io;
use std::path::{Path, PathBuf};

use crate::lines::LINE_MAX;
use crate::{MergeFault, PlanProgram};

/// What a function of a sweep gives, or why it does not.
pub type Result<T, E = SweepError> = std::result::Result<T, E>;

/// What a sweep fails with.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The plan cannot be written.
    #[error("writing the plan: {0}")]
    Writing(#[from] io::Error),
    /// A line is longer than any that a sweep writes.
    #[error("{}, line {line}: it has more than {LINE_MAX} bytes: no sweep writes such a line",
        path.display())]
    LongLine {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
    },
    /// A plan that cannot be made.
    #[error("{0}")]
    Unplannable(String),
    /// The file is no plan, or not as it was written.
    #[error("{}, line {line}: {what}; make the plan again with sweep plan", path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// Another build than the plan's.
    #[error(
        "{}: it was made by program {:.16} (version {}), this one is {:.16} (version {}): another \
         build may give other results; use that one on all machines, or make the plan again",
        plan.display(), both[0].sha256, both[0].version, both[1].sha256, both[1].version
    )]
    OtherProgram {
        /// The plan's file.
        plan: PathBuf,
        /// The plan's, and this one.
        both: Box<[PlanProgram; 2]>,
    },
    /// A file that cases read is another one here.
    #[error(
        "{}: its SHA-256 is {found:.16}, {} was made with {wanted:.16}: put that file there, or \
         make the plan again", input.display(), plan.display()
    )]
    OtherInput {
        /// The file.
        input: PathBuf,
        /// The plan's.
        plan: PathBuf,
        /// What it is here.
        found: String,
        /// What it was.
        wanted: String,
    },
    /// No such shard or case.
    #[error("{0}")]
    NoSuch(String),
    /// In the folder are results that these would be mixed with.
    #[error("{0}")]
    Folder(Box<MergeFault>),
    /// The results are refused.
    #[error("the results are refused:{}", listed(.0))]
    Refused(Vec<MergeFault>),
    /// What takes the results cannot.
    #[error("case '{case}': its result cannot be taken: {what}")]
    Taking {
        /// The case.
        case: String,
        /// Why.
        what: String,
    },
}

/// Each on a line of its own.
fn listed(faults: &[MergeFault]) -> String {
    faults.iter().map(|fault| format!("\n  {fault}")).collect()
}

impl SweepError {
    /// Whether results are refused: a problem that was found. What cannot be read, planned or named
    /// is the caller's.
    pub fn is_problem(&self) -> bool {
        matches!(
            self,
            SweepError::Refused(_)
                | SweepError::Folder(_)
                | SweepError::Taking { .. }
                | SweepError::Writing(_)
        )
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> SweepError {
        SweepError::Io { path: path.into(), source }
    }

    pub(crate) fn not_a_file(path: &Path) -> SweepError {
        SweepError::io(path, io::Error::other("it is no regular file, which is read twice"))
    }

    pub(crate) fn plan(path: &Path, line: u64, what: impl Into<String>) -> SweepError {
        SweepError::Plan { path: path.into(), line, what: what.into() }
    }
}
