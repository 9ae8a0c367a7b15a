//! The check as a whole: its phases, and what they hand on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{InodeNo, Layout, StateFlags, Superblock};
use steadfast_journal::Overlay;

use crate::bitmaps::BitmapCheck;
use crate::claims::Claims;
use crate::directory::DirectoryCheck;
use crate::encryption::Encryption;
use crate::finding::Findings;
use crate::found::ScannedDirectory;
use crate::image::Image;
use crate::quota::QuotaCheck;
use crate::report::{Counts, Report};
use crate::source::Source;
use crate::table::InodeTable;
use crate::values::Values;
use crate::xattr;

/// What was read, and everything that was found so far.
pub(super) struct Checker<'a> {
    pub(super) image: Image<'a>,
    pub(super) findings: Findings,
    pub(super) claims: Claims,
    pub(super) inodes: InodeTable,
    pub(super) directories: Vec<ScannedDirectory>,
    /// Blocks of attributes: how often they are used, and how often they say they are.
    pub(super) xattr_blocks: BTreeMap<u64, xattr::Use>,
    pub(super) values: Values,
    pub(super) encryption: Encryption,
    pub(super) orphans: BTreeSet<InodeNo>,
    pub(super) counts: Counts,
    /// Runs of the internal journal and of the orphan file: file block, first block, length.
    pub(super) journal_runs: Vec<(u32, u64, u32)>,
    pub(super) orphan_runs: Vec<(u32, u64, u32)>,
    pub(super) quota: QuotaCheck,
}

impl<'a> Checker<'a> {
    pub(super) fn new(
        device: &'a Arc<dyn BlockDevice>,
        overlay: Option<&'a Overlay>,
        sb: Superblock,
        layout: Layout,
        findings: Findings,
    ) -> Self {
        Checker {
            findings,
            claims: Claims::new(&layout),
            inodes: InodeTable::new(&layout),
            directories: Vec::new(),
            xattr_blocks: BTreeMap::new(),
            values: Values::default(),
            encryption: Encryption::default(),
            orphans: BTreeSet::new(),
            counts: Counts::default(),
            journal_runs: Vec::new(),
            orphan_runs: Vec::new(),
            quota: QuotaCheck::default(),
            image: Image {
                source: Source::new(device, overlay, layout.block_size),
                device,
                sb,
                layout,
                groups: Vec::new(),
            },
        }
    }

    /// All phases, in their order. `has_overlay`: the journal's contents are in place.
    pub(super) fn run(mut self, has_overlay: bool) -> Result<Report> {
        self.check_superblock();
        self.load_groups()?;
        self.claim_metadata();
        self.check_mmp()?;
        self.find_orphans()?;
        self.scan_inodes()?;
        self.check_xattr_refcounts();
        self.values.check(&mut self.findings, &mut self.inodes, &self.orphans);
        self.check_journal(has_overlay)?;
        self.check_orphan_file()?;
        self.quota.check(&self.image, &mut self.findings)?;
        self.check_directories()?;
        self.check_bitmaps()?;
        let state = StateFlags::from_bits_retain(self.image.sb.state.get());
        Ok(Report {
            more_findings: self.findings.dropped(),
            findings: self.findings.into_vec(),
            counts: self.counts,
            needs_recovery: self.image.needs_recovery(),
            unmounted_cleanly: state.contains(StateFlags::VALID),
            error_recorded: state.contains(StateFlags::ERROR),
            orphans: self.orphans.into_iter().collect(),
        })
    }

    fn check_directories(&mut self) -> Result<()> {
        let mut check = DirectoryCheck {
            image: &mut self.image,
            findings: &mut self.findings,
            inodes: &mut self.inodes,
            encryption: &self.encryption,
            orphans: &self.orphans,
            parents: BTreeMap::new(),
            dotdots: BTreeMap::new(),
        };
        check.check_directories(&self.directories)?;
        check.check_tree(&self.directories);
        Ok(())
    }

    fn check_bitmaps(&mut self) -> Result<()> {
        let mut check = BitmapCheck {
            image: &self.image,
            findings: &mut self.findings,
            claims: &self.claims,
            inodes: &self.inodes,
        };
        let (free_blocks, free_inodes) = check.run()?;
        self.counts.free_blocks = free_blocks;
        self.counts.free_inodes = free_inodes;
        let layout = &self.image.layout;
        let all = layout.blocks_count - layout.first_data_block;
        // The last cluster may reach beyond the end.
        self.counts.blocks = all.saturating_sub(free_blocks);
        Ok(())
    }
}
