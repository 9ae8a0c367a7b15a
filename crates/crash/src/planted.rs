//! Bugs that the explorer is to find.

use steadfast_block::planted::BugSwitch;
use steadfast_ext4::MountOptions;
use strum::VariantArray;

/// A bug of the stack, switched on for all mounts of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackBug {
    /// In the journal.
    Journal(steadfast_journal::Bug),
    /// In the file system.
    Ext4(steadfast_ext4::Bug),
}

impl StackBug {
    /// All of them.
    pub fn all() -> impl Iterator<Item = StackBug> {
        let journal = steadfast_journal::Bug::VARIANTS.iter().copied().map(StackBug::Journal);
        journal.chain(steadfast_ext4::Bug::VARIANTS.iter().copied().map(StackBug::Ext4))
    }

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            StackBug::Journal(bug) => bug.into(),
            StackBug::Ext4(bug) => bug.into(),
        }
    }

    /// The bug of that name.
    pub fn named(name: &str) -> Option<StackBug> {
        StackBug::all().find(|bug| bug.name() == name)
    }

    /// Switches it on for mounts with these options.
    pub fn into_options(self, options: &mut MountOptions) {
        match self {
            StackBug::Journal(bug) => options.journal.planted = BugSwitch::with(bug),
            StackBug::Ext4(bug) => options.planted = BugSwitch::with(bug),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_name_of_its_own() {
        for bug in StackBug::all() {
            assert_eq!(StackBug::named(bug.name()), Some(bug), "{}", bug.name());
        }
        let known = StackBug::Journal(steadfast_journal::Bug::CommitWithoutPreflush);
        assert_eq!(StackBug::named("commit-without-preflush"), Some(known));
        assert_eq!(StackBug::named("none"), None);
    }
}
