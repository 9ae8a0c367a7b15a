//! Why a scenario could not be run.

use crate::scenario::WrongFile;

/// Why a scenario could not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabError {
    /// No scenario of that name and no readable file.
    #[error(
        "'{name}' is no scenario of this program and cannot be read as a file: {reason}; {help}"
    )]
    NotFound {
        /// What was asked for.
        name: String,
        /// Why the file cannot be read.
        reason: String,
        /// The name that was meant, or all names.
        help: String,
    },
    /// The scenario file is wrong.
    #[error("{0}")]
    File(Box<WrongFile>),
    /// The scenario cannot be run as it was asked for.
    #[error("scenario {origin}: {what}")]
    Scenario {
        /// The scenario's name.
        origin: String,
        /// What is wrong, with the place.
        what: String,
    },
    /// What was asked for beside the scenario cannot be.
    #[error("{option}: {what}")]
    Option {
        /// As the command line calls it.
        option: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A variant could not be built or run.
    #[error("variant '{variant}': {what}")]
    Variant {
        /// The variant's name.
        variant: String,
        /// What went wrong and what to do.
        what: String,
    },
}
