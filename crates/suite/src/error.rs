//! What can go wrong with a judge itself, as opposed to what it finds.

use std::io;
use std::path::PathBuf;

/// Why a judge could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A program could not be started, or took too long.
    #[error("{program}: {source}")]
    Program {
        /// As it was called.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("{program} failed ({status}): {output}")]
    Failed {
        /// As it was called.
        program: String,
        /// Its exit status or signal.
        status: String,
        /// Both its outputs.
        output: String,
    },
    /// A file or folder of the host, not of the target.
    #[error("{}: {source}", path.display())]
    Host {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A case is not written in the language of cases.
    #[error("case {case}: {what}")]
    Script {
        /// The case's name, or the file's before the first case.
        case: String,
        /// The step, and what is wrong with it.
        what: String,
    },
    /// The target did not do what no judge can go on without.
    #[error("{0}")]
    Target(String),
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, SuiteError>;

impl SuiteError {
    pub(crate) fn host(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> SuiteError {
        let path = path.into();
        move |source| SuiteError::Host { path, source }
    }
}
