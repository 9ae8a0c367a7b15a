//! Which planted bug one object has: the test of the tests.
//!
//! A crate that has bugs to plant has a feature `planted-bugs`, and says by
//! [`PlantedBug::BUILT_IN`] whether it is on. Without it every check is `false` at compile time,
//! and the bugs are not in the program.

/// Something that the code must not do, and that its tests are to find.
pub trait PlantedBug: Copy + Eq {
    /// The bugs are in the program.
    const BUILT_IN: bool;
}

/// The bug that is switched on, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BugSwitch<B>(Option<B>);

impl<B> Default for BugSwitch<B> {
    fn default() -> Self {
        BugSwitch(None)
    }
}

impl<B: PlantedBug> BugSwitch<B> {
    /// With this bug.
    pub fn with(bug: B) -> Self {
        BugSwitch(Some(bug))
    }

    /// Whether this bug is switched on.
    pub fn has(self, bug: B) -> bool {
        B::BUILT_IN && self.0 == Some(bug)
    }
}
