//! What can be wrong with a trace.

use steadfast_vfs::FsError;

use crate::format::VERSION;

/// Result of what is done with traces.
pub type Result<T, E = TraceError> = std::result::Result<T, E>;

/// Why a trace cannot be read, written or replayed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Its file cannot be read or written.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// It is no trace.
    #[error(
        "is no trace of Steadfast ({0}); `steadfast trace import` reads what others have recorded"
    )]
    NotATrace(String),
    /// What was to be imported is no recording of a known kind.
    #[error("{0}")]
    NotImported(String),
    /// Of another version.
    #[error("is a trace of version {found}; this program reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// It ends before its last line, perhaps within a frame.
    #[error(
        "ends after {calls} calls, before its last line: it was cut off, or is still written \
         (`--partial`, in a scenario `partial = true`, takes what is there)"
    )]
    CutOff {
        /// How many calls there are.
        calls: u64,
    },
    /// A frame is not what was written.
    #[error(
        "is damaged: {0}; make it anew (`trace show` and `trace replay` take what is before that \
         with `--partial`, a scenario with `partial = true`)"
    )]
    Damaged(String),
    /// A line that cannot be.
    #[error("line {line}: {what}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// What the replay needs cannot be made.
    #[error("making the files of the beginning: {0}")]
    Prepare(String),
    /// The file system failed.
    #[error("{0}")]
    FileSystem(#[from] FsError),
}
