//! Checks the structure of a file system, reading only.
//!
//! What e2fsck -fn would find wrong is found here too, and what it calls clean is clean; the
//! tests hold the two against each other. Beside a device the check takes an overlay of blocks,
//! such as [`recover_dry`](steadfast_journal::recover_dry) gives, so that a file system can be
//! judged as it would be after recovery without writing to it.
//!
//! # How
//!
//! 1. Superblock and group descriptors; the places of all metadata are claimed.
//! 2. Every inode in use (`inodes`): its fields, and each block that it maps is claimed.
//! 3. Every directory block (`directory`), the indices (`index`), then who is whose parent and
//!    how many links each inode should have (`tree`).
//! 4. Bitmaps and counters against what was claimed (`bitmaps`).
//!
//! # Invariants
//!
//! * Nothing is written. Nothing on the device is believed before it has been checked: no number
//!   from disk is used as an index, a size or a place without a bound.
//! * Time and memory are bounded by the size of the file system in use, whatever its bytes say:
//!   a block is walked through only by the first who claims it, so trees cannot have cycles, and
//!   parts that descriptors mark as never used are not read.
//! * Findings are bounded in number; the rest is counted.
//!
//! ```
//! use std::sync::Arc;
//! use steadfast_block::BlockDevice;
//! use steadfast_devices::source::Ram;
//!
//! // Nothing was made on it yet: there is nothing to be damaged.
//! let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 16 << 20));
//! let said = steadfast_ext4_check::check(&disk, None).unwrap_err().to_string();
//! assert_eq!(said, "no ext2/3/4 file system: it holds zeros");
//! ```

mod ahead;
mod bitmaps;
mod blockmap;
mod claims;
mod directory;
mod encryption;
mod extents;
mod finding;
mod found;
mod groups;
mod index;
mod info;
mod inline;
mod inode_fields;
mod inodes;
mod journal;
mod mmp;
mod orphans;
mod quota;
mod resize;
mod source;
mod superblock;
mod table;
mod tree;
mod values;
mod xattr;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{GroupDesc, InodeNo, Layout, StateFlags, Superblock};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_journal::{JournalError, Overlay};

pub use finding::{Finding, FindingKind};
pub use info::{Field, Info, info};

use claims::Claims;
use finding::Findings;
use found::Directory;
use source::Source;
use table::InodeTable;

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
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// Everything that was found so far.
struct Checker<'a> {
    source: Source<'a>,
    device: &'a Arc<dyn BlockDevice>,
    sb: Superblock,
    layout: Layout,
    groups: Vec<GroupDesc>,
    findings: Findings,
    claims: Claims,
    inodes: InodeTable,
    directories: Vec<Directory>,
    /// Parent by the entry that names a directory.
    parents: BTreeMap<InodeNo, InodeNo>,
    /// Blocks of attributes: how often they are used, and how often they say they are.
    xattr_blocks: BTreeMap<u64, xattr::Use>,
    values: values::Values,
    encryption: encryption::Encryption,
    orphans: BTreeSet<InodeNo>,
    counts: Counts,
    /// What the ".." of each directory says.
    dotdots: BTreeMap<InodeNo, InodeNo>,
    /// Runs of the internal journal and of the orphan file: file block, first block, length.
    journal_runs: Vec<(u32, u64, u32)>,
    orphan_runs: Vec<(u32, u64, u32)>,
    quota: quota::QuotaCheck,
    /// Counters in the superblock may be old.
    in_use: bool,
}

/// Checks the file system on `device` as it would be with the blocks of `overlay` in place.
///
/// # Errors
/// Of the device; [`Ext4Error::Unsupported`] if the file system uses what this version does not
/// know; [`Ext4Error::NoFileSystem`] where there is none. Damage is no error but a finding, even
/// where nothing else could be looked at.
pub fn check(device: &Arc<dyn BlockDevice>, overlay: Option<&Overlay>) -> Result<Report> {
    let mut findings = Findings::default();
    let Some((sb, layout)) = superblock::load(device, overlay, &mut findings)? else {
        return Ok(empty_report(findings));
    };
    let state = StateFlags::from_bits_retain(sb.state.get());
    let needs_recovery =
        sb.features().incompat.contains(steadfast_ext4_format::ondisk::Incompat::NEEDS_RECOVERY);
    let mut checker = Checker {
        source: Source::new(device, overlay, layout.block_size),
        device,
        sb,
        groups: Vec::new(),
        findings,
        claims: Claims::new(&layout),
        inodes: InodeTable::new(&layout),
        directories: Vec::new(),
        parents: BTreeMap::new(),
        xattr_blocks: BTreeMap::new(),
        values: values::Values::default(),
        encryption: encryption::Encryption::default(),
        orphans: BTreeSet::new(),
        counts: Counts::default(),
        dotdots: BTreeMap::new(),
        journal_runs: Vec::new(),
        orphan_runs: Vec::new(),
        quota: quota::QuotaCheck::default(),
        in_use: needs_recovery || !state.contains(StateFlags::VALID),
        layout,
    };
    checker.run(overlay.is_some())?;
    Ok(Report {
        more_findings: checker.findings.dropped(),
        findings: checker.findings.into_vec(),
        counts: checker.counts,
        needs_recovery,
        unmounted_cleanly: state.contains(StateFlags::VALID),
        error_recorded: state.contains(StateFlags::ERROR),
        orphans: checker.orphans.into_iter().collect(),
    })
}

fn empty_report(findings: Findings) -> Report {
    Report {
        more_findings: findings.dropped(),
        findings: findings.into_vec(),
        counts: Counts::default(),
        needs_recovery: false,
        unmounted_cleanly: false,
        error_recorded: false,
        orphans: Vec::new(),
    }
}

impl Checker<'_> {
    fn run(&mut self, has_overlay: bool) -> Result<()> {
        self.check_superblock();
        self.load_groups()?;
        self.claim_metadata();
        self.check_mmp()?;
        self.find_orphans()?;
        self.scan_inodes()?;
        self.check_xattr_refcounts();
        self.check_values();
        self.check_journal(has_overlay)?;
        self.check_orphan_file()?;
        self.check_quotas()?;
        let directories = std::mem::take(&mut self.directories);
        self.check_directories(&directories)?;
        self.check_tree(&directories);
        self.check_bitmaps()
    }
}

/// Turns what a validation says into a finding; errors of the device stay errors, and so does what
/// is not implemented.
fn as_finding(e: Ext4Error) -> Result<String> {
    match e {
        Ext4Error::Corrupt { what, .. } | Ext4Error::Refused { what } => Ok(what),
        Ext4Error::Journal(e) => match e {
            JournalError::Block(e) => Err(Ext4Error::Block(e)),
            // Nothing is known to be wrong with it.
            e @ JournalError::Unsupported { .. } => Err(Ext4Error::Journal(e)),
            other => Ok(other.to_string()),
        },
        other => Err(other),
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
