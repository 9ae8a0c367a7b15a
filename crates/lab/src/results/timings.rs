//! What hdparm's timings found.

use serde::{Deserialize, Serialize};

/// One timing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingRow {
    /// The command: `hdparm -t card`.
    pub test: String,
    /// The variant whose file it is; `null`: a device by itself.
    pub variant: Option<String>,
    /// Bytes that were read.
    pub bytes: u64,
    /// Seconds of the simulation's clock that it took.
    pub seconds: f64,
    /// Speed in kB (1024 bytes) a second.
    pub kb_per_s: f64,
    /// What the source published, or null.
    pub published_kb_per_s: Option<f64>,
}
