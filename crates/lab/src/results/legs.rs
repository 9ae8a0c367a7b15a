//! What cuts took of a volume, and of its legs.

use serde::{Deserialize, Serialize};

use super::{Percentiles, Rate};

/// A variant under one kind of cut.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LegRow {
    /// What was cut.
    pub test: String,
    /// Variant's name.
    pub variant: String,
    /// It is a model of somebody else's mirror.
    pub model: bool,
    /// Cuts.
    pub cuts: u64,
    /// Cuts after which flushed data could not be read any more.
    pub lost_flushed: Rate,
    /// How much of it, in KiB.
    pub lost_flushed_kb: Percentiles,
    /// How much of that no disk holds any more, in KiB.
    pub gone_kb: Percentiles,
    /// How much that was acknowledged and not flushed was lost, in KiB.
    pub lost_unflushed_kb: Percentiles,
    /// Cuts after which disks held different things when all was resynced.
    pub copies_differ: Rate,
    /// Cuts after which somebody had to do something before all legs were in use again.
    pub by_hand: Rate,
    /// Cuts after which nothing could be read.
    pub refused: Rate,
}
