//! How the program fails.

use std::fmt;
use std::io;
use std::path::Path;

use steadfast_crash::CrashError;
use steadfast_sweep::{ChoiceError, SweepError};

pub type Result<T, E = SoakError> = std::result::Result<T, E>;

/// What it fails with.
#[derive(Debug)]
pub struct SoakError {
    what: String,
    is_problem: bool,
}

impl SoakError {
    /// Used wrongly.
    pub fn usage(what: impl Into<String>) -> SoakError {
        SoakError { what: what.into(), is_problem: false }
    }

    /// A file cannot be read or written.
    pub fn io(path: &Path, e: &io::Error) -> SoakError {
        SoakError::usage(format!("{}: {e}", path.display()))
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        if self.is_problem { 1 } else { 2 }
    }
}

impl fmt::Display for SoakError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl From<SweepError> for SoakError {
    fn from(e: SweepError) -> SoakError {
        SoakError { what: e.to_string(), is_problem: e.is_problem() }
    }
}

impl From<ChoiceError> for SoakError {
    fn from(e: ChoiceError) -> SoakError {
        SoakError::usage(e.to_string())
    }
}

impl From<CrashError> for SoakError {
    fn from(e: CrashError) -> SoakError {
        SoakError::usage(e.to_string())
    }
}

impl From<io::Error> for SoakError {
    fn from(e: io::Error) -> SoakError {
        SoakError { what: e.to_string(), is_problem: true }
    }
}

impl From<serde_json::Error> for SoakError {
    fn from(e: serde_json::Error) -> SoakError {
        SoakError { what: e.to_string(), is_problem: true }
    }
}
