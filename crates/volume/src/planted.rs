//! Bugs that the tests of the campaign can switch on for one volume.

use steadfast_block::planted::PlantedBug;

/// Something that a mirror must not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A region's state is written after the data that it covers.
    StateAfterData,
    /// A volatile leg is trusted after a restart, and may be a source.
    VolatileSource,
    /// A leg that was removed while a region was copied counts as a holder.
    CopyToWhoLeft,
    /// The map says that a region has checksums before they are written.
    ChecksumsAfterClean,
    /// An out-of-sync region is read from one leg, and the others are not synced first.
    OutOfSyncNotCopied,
    /// After a write that failed on all legs only one of them counts.
    FailedWriteLeavesOne,
    /// A leg's data is not compared with its checksum.
    NothingCompared,
}

impl PlantedBug for Bug {
    const BUILT_IN: bool = cfg!(feature = "planted-bugs");
}
