//! Why something could not be explored. What is wrong with a crash state is no error: it is what an
//! exploration is for.

/// Why something could not be explored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CrashError {
    /// A workload could not be prepared or carried out.
    #[error("{0}")]
    Run(String),
    /// Something on this machine failed: a crash state could not be judged.
    #[error("{0}")]
    Host(String),
    /// Words that name no case, no schedule, no crash points.
    #[error("{0}")]
    Words(String),
    /// A kept recording that cannot be read.
    #[error("{0}")]
    Recording(String),
    /// A part of an exploration that is not as it was handed on.
    #[error("{0}")]
    Part(String),
}

/// A result of this crate.
pub type Result<T, E = CrashError> = std::result::Result<T, E>;

impl CrashError {
    /// Something on this machine failed.
    pub fn host(why: impl ToString) -> CrashError {
        CrashError::Host(why.to_string())
    }
}

impl From<String> for CrashError {
    /// What is said of a workload.
    fn from(why: String) -> CrashError {
        CrashError::Run(why)
    }
}

impl From<&str> for CrashError {
    /// What is said of a workload.
    fn from(why: &str) -> CrashError {
        CrashError::Run(why.to_owned())
    }
}

impl From<CrashError> for String {
    fn from(error: CrashError) -> String {
        error.to_string()
    }
}
