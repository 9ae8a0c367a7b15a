//! Why a scenario could not be run.

/// Why a scenario could not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabError {
    /// No scenario of that name and no readable file.
    #[error(
        "'{name}' is no scenario of this program ({known}) and cannot be read as a file: {reason}"
    )]
    NotFound {
        /// What was asked for.
        name: String,
        /// Why the file cannot be read.
        reason: String,
        /// Names of the embedded scenarios.
        known: String,
    },
    /// The scenario file is wrong.
    #[error("scenario {origin}: {what}")]
    Scenario {
        /// File or embedded name.
        origin: String,
        /// What is wrong, with the place.
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
