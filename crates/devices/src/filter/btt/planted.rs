//! Bugs that the tests of power cuts can switch on for one namespace.

use steadfast_block::planted::PlantedBug;

/// Something that a sector namespace must not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The data is not written back before the flog says that it is there.
    DataNotPersisted,
    /// Nobody waits for the data before the flog says that it is there.
    NoFenceAfterData,
    /// Nobody waits for the flog before the map is changed.
    NoFenceAfterFlog,
    /// The map's change is not written back.
    MapNotPersisted,
    /// The map names the block before the data is in it.
    MapBeforeData,
    /// A lane's sequence number stays as it was.
    SequenceNotAdvanced,
    /// The half of a flog entry that makes it count is written first.
    HalvesSwapped,
    /// A free block is written while somebody still reads it.
    ReaderNotWaitedFor,
    /// Recovery leaves the map as it is.
    MapNotRecovered,
}

impl PlantedBug for Bug {
    const BUILT_IN: bool = cfg!(feature = "planted-bugs");
}
