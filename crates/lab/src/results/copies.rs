//! Copies by dd.

use serde::{Deserialize, Serialize};

/// A copy by dd on a variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CopyRow {
    /// The test's name.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Records that were read.
    pub records: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// How long it took, in virtual seconds.
    pub seconds: f64,
    /// Records a second.
    pub records_per_s: f64,
    /// What the source published, at its own size.
    pub published_records_per_s: Option<f64>,
}
