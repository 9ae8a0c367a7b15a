//! What a check says in the end.

use steadfast_ext4_format::ondisk::InodeNo;

use crate::finding::{Finding, Findings};

/// What was found in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Inodes in use, reserved ones included.
    pub inodes: u64,
    /// Of these, regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Devices, FIFOs and sockets.
    pub others: u64,
    /// Blocks in use, metadata included.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Free inodes.
    pub free_inodes: u64,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Finding>,
    /// How many more findings there are than `findings` holds.
    pub more_findings: u64,
    /// What is in use.
    pub counts: Counts,
    /// The journal holds transactions that were not in place (`needs_recovery`): without them,
    /// findings mean little.
    pub needs_recovery: bool,
    /// Whether the superblock says that it was unmounted cleanly.
    pub unmounted_cleanly: bool,
    /// Whether a kernel has recorded an error in the superblock.
    pub error_recorded: bool,
    /// Inodes that the next mount will delete or truncate. Not findings.
    pub orphans: Vec<InodeNo>,
}

impl Report {
    /// Whether nothing is wrong. A journal that must be replayed and orphans are no damage.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Where nothing but the superblock could be looked at.
    pub(super) fn of_superblock(findings: Findings) -> Report {
        let more_findings = findings.dropped();
        Report { more_findings, findings: findings.into_vec(), ..Report::default() }
    }
}
