//! Bugs to be found: the test of the tests.
//!
//! With the feature `planted-bugs` one of them can be switched on for one volume, to see that the
//! campaign finds it. Without the feature every question is answered `false` when the program is
//! compiled, and nothing of the bugs is in it.

/// Something that a mirror must not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A region's state is written after the data that it is to cover.
    StateAfterData,
    /// A volatile leg is believed after a restart, and may be a source.
    VolatileSource,
    /// A leg that left while a region was copied is taken to hold it.
    CopyToWhoLeft,
    /// The map says that a region has checksums before they are written.
    ChecksumsAfterClean,
    /// What a cut left in doubt is read from one leg, and not given to the others first.
    OutOfSyncNotCopied,
    /// After a write that failed on all legs only one of them counts.
    FailedWriteLeavesOne,
    /// What a leg answers is not compared with its checksum.
    NothingCompared,
}

/// Which bug a volume has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Planted {
    #[cfg(feature = "planted-bugs")]
    bug: Option<Bug>,
}

impl Planted {
    /// With this bug.
    #[cfg(feature = "planted-bugs")]
    pub fn with(bug: Bug) -> Planted {
        Planted { bug: Some(bug) }
    }

    /// Whether this bug is switched on.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn has(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// No bugs are built in.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) const fn has(self, _: Bug) -> bool {
        false
    }
}
