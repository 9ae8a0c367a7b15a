//! The set-ups of the table.

use std::time::Duration;

use steadfast_crash::Result;
use steadfast_ext4::{DataMode, MountOptions};

use crate::corpus::{Own, OwnKind};

/// A set-up of the table: its name, and how it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setups {
    /// ext4, data=ordered, checksums.
    Ordered,
    /// ext4, data=journal, checksums.
    Journal,
    /// ext4, data=transact, checksums.
    Transact,
    /// ext4, data=journal, without checksums.
    NoChecksums,
    /// ext2: no journal.
    Ext2,
}

impl Setups {
    /// All of them, in the table's order.
    pub const ALL: [Setups; 5] =
        [Setups::Ordered, Setups::Journal, Setups::Transact, Setups::NoChecksums, Setups::Ext2];

    /// For the head of the table.
    pub fn name(self) -> &'static str {
        match self {
            Setups::Ordered => "ordered",
            Setups::Journal => "journal",
            Setups::Transact => "transact",
            Setups::NoChecksums => "journal, no checksums",
            Setups::Ext2 => "ext2",
        }
    }

    /// Makes it.
    ///
    /// # Errors
    /// In words; ext2 needs e2fsck.
    pub fn make(self) -> Result<Own> {
        let with = |data| MountOptions { data, ..MountOptions::default() };
        let (kind, options) = match self {
            Setups::Ordered => (OwnKind::Ext4, with(DataMode::Ordered)),
            Setups::Journal => (OwnKind::Ext4, with(DataMode::Journal)),
            Setups::Transact => (OwnKind::Ext4, with(DataMode::Transact)),
            Setups::NoChecksums => (OwnKind::Ext4NoChecksums, with(DataMode::Journal)),
            Setups::Ext2 => (OwnKind::Ext2, MountOptions::default()),
        };
        Own::new(self.name(), kind, options, Duration::ZERO)
    }
}
