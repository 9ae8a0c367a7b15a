//! Bugs that the explorer is to find.

use steadfast_ext4::MountOptions;

/// A bug of the stack, switched on for all mounts of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Planted {
    /// In the journal.
    Journal(steadfast_journal::Bug),
    /// In the file system.
    Ext4(steadfast_ext4::Bug),
}

impl Planted {
    pub(super) fn into_options(self, options: &mut MountOptions) {
        match self {
            Planted::Journal(bug) => options.journal.planted = Some(bug),
            Planted::Ext4(bug) => options.planted = Some(bug),
        }
    }
}
