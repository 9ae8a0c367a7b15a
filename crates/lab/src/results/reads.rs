//! What reading beside a writer found.

use serde::{Deserialize, Serialize};

use super::statistics::Percentiles;

/// How long it took to read a cold file while another was written flat out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadRow {
    /// The test: where the file is.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Seconds, before there was a writer.
    pub idle_seconds: Percentiles,
    /// Seconds, beside the writer.
    pub seconds: Percentiles,
    /// The median beside the writer over the median without.
    pub times_idle: f64,
    /// What the source published, or null.
    pub published_seconds: Option<f64>,
    /// Milliseconds of each read(2) beside the writer.
    pub call_ms: Percentiles,
    /// What the writer wrote meanwhile, in kB (1024 bytes) a second.
    pub written_kb_per_s: f64,
}

/// What waited in the request scheduler's queue, from when the writer began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueSeries {
    /// Variant's name.
    pub variant: String,
    /// Milliseconds between two values.
    pub every_ms: f64,
    /// When the first file was begun to be read, in seconds.
    pub reads_from_s: f64,
    /// KiB of writes that waited.
    pub write_kb: Vec<f64>,
    /// KiB of reads that waited.
    pub read_kb: Vec<f64>,
}
