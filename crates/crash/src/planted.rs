//! Bugs that the explorer is to find.

use steadfast_ext4::MountOptions;
use strum::VariantArray;

/// A bug of the stack, switched on for all mounts of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// In the journal.
    Journal(steadfast_journal::Bug),
    /// In the file system.
    Ext4(steadfast_ext4::Bug),
}

impl Planted {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Planted> {
        let journal = steadfast_journal::Bug::VARIANTS.iter().copied().map(Planted::Journal);
        journal.chain(steadfast_ext4::Bug::VARIANTS.iter().copied().map(Planted::Ext4))
    }

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Planted::Journal(bug) => bug.into(),
            Planted::Ext4(bug) => bug.into(),
        }
    }

    /// The bug of that name.
    pub fn named(name: &str) -> Option<Planted> {
        Planted::all().find(|bug| bug.name() == name)
    }

    /// Switches it on for mounts with these options.
    pub fn into_options(self, options: &mut MountOptions) {
        match self {
            Planted::Journal(bug) => options.journal.planted = Some(bug),
            Planted::Ext4(bug) => options.planted = Some(bug),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_a_name_of_its_own() {
        for bug in Planted::all() {
            assert_eq!(Planted::named(bug.name()), Some(bug), "{}", bug.name());
        }
        let known = Planted::Journal(steadfast_journal::Bug::CommitWithoutPreflush);
        assert_eq!(Planted::named("commit-without-preflush"), Some(known));
        assert_eq!(Planted::named("none"), None);
    }
}
