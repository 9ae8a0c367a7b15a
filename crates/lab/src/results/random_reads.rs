//! Random reads of a disk.

use serde::{Deserialize, Serialize};

use super::statistics::Percentiles;

/// Reads of a variant's disk at random places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RandomReadRow {
    /// The test's name.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Reads that were timed.
    pub reads: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// How long all took, in virtual seconds.
    pub seconds: f64,
    /// Reads a second.
    pub reads_per_s: f64,
    /// Microseconds of a read.
    pub latency_us: Percentiles,
}
