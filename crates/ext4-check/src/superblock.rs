//! The superblock: whether there is one, and numbers that do not matter to the layout.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_ext4_format::ondisk::{
    Compat, Incompat, Layout, RoCompat, Superblock, check_writable_filesystem,
};
use steadfast_ext4_format::{Ext4Error, Result, superblock};
use steadfast_journal::{FsBlock, Overlay};

use crate::FindingKind;
use crate::checker::Checker;
use crate::finding::{Findings, as_finding};

/// Reads the superblock. `None` if it is so damaged that nothing else can be looked at, which is
/// among the findings then.
pub(super) fn load(
    device: &Arc<dyn BlockDevice>,
    overlay: Option<&Overlay>,
    findings: &mut Findings,
) -> Result<Option<(Superblock, Layout)>> {
    let info = device.info();
    let mut add = |what: String| {
        findings.add(FindingKind::Superblock, "superblock", what);
    };
    let found = match overlay.and_then(overlaid) {
        Some(newer) => Superblock::parse_mended(&newer),
        None => superblock::find(&**device).map(|found| found.superblock),
    };
    let sb = match found {
        Ok(sb) => sb,
        Err(e @ Ext4Error::NoFileSystem { .. }) => return Err(e),
        Err(e) => {
            add(as_finding(e)?);
            return Ok(None);
        }
    };
    if !sb.checksum_ok() {
        // Its features are no more to be trusted than the rest, so nothing is called unsupported.
        add(format!(
            "checksum is {:#010x}, computed {:#010x}",
            sb.checksum.get(),
            sb.computed_checksum()
        ));
        return Ok(None);
    }
    check_writable_filesystem(&sb)?;
    match Layout::new(&sb, info.size) {
        Ok(layout) => Ok(Some((sb, layout))),
        Err(e) => {
            add(as_finding(e)?);
            Ok(None)
        }
    }
}

/// The superblock in the overlay: in block 1 of 1 KiB, or at byte 1024 of a larger block 0.
fn overlaid(overlay: &Overlay) -> Option<bytes::Bytes> {
    if let Some(block) = overlay.get(&FsBlock(0)).filter(|b| b.len() >= 2048) {
        return Some(block.slice(1024..2048));
    }
    overlay.get(&FsBlock(1)).filter(|b| b.len() == 1024).cloned()
}

impl Checker<'_> {
    /// Numbers and flags that contradict each other.
    pub(super) fn check_superblock(&mut self) {
        let (sb, l) = (self.image.sb, &self.image.layout);
        let f = l.features;
        let mut bad = Vec::new();
        if sb.reserved_blocks() > sb.blocks_count() / 2 {
            bad.push(format!("{} of its blocks are reserved", sb.reserved_blocks()));
        }
        if sb.free_blocks() > sb.blocks_count() {
            bad.push(format!("{} free blocks", sb.free_blocks()));
        }
        if sb.free_inodes.get() > l.inodes_count {
            bad.push(format!("{} free inodes", sb.free_inodes));
        }
        if f.incompat.contains(Incompat::CSUM_SEED) && !f.metadata_csum() {
            bad.push("metadata_csum_seed without metadata_csum".into());
        }
        if f.ro_compat.contains(RoCompat::METADATA_CSUM | RoCompat::GDT_CSUM) {
            bad.push("both metadata_csum and uninit_bg".into());
        }
        if !f.compat.contains(Compat::RESIZE_INODE) && sb.reserved_gdt_blocks.get() != 0 {
            bad.push(format!("{} reserved blocks, no resize_inode", sb.reserved_gdt_blocks));
        }
        let journal = f.compat.contains(Compat::HAS_JOURNAL);
        if !journal && f.incompat.contains(Incompat::NEEDS_RECOVERY) {
            bad.push("needs_recovery, but there is no journal".into());
        }
        if !journal && sb.journal_inode.get() != 0 {
            bad.push("a journal's inode, but no journal".into());
        }
        if journal && sb.journal_inode.get() != 0 && sb.journal_uuid != [0; 16] {
            bad.push("both an internal and an external journal".into());
        }
        if sb.has_external_journal() && sb.journal_uuid == [0; 16] {
            bad.push(
                "a journal, but the superblock names no journal, neither an inode nor a device"
                    .into(),
            );
        }
        if f.compat.contains(Compat::ORPHAN_FILE) != (sb.orphan_file_inode.get() != 0) {
            bad.push(format!("orphan file inode {}", sb.orphan_file_inode));
        }
        let quota = [sb.user_quota_inode, sb.group_quota_inode, sb.project_quota_inode];
        let counted = f.ro_compat.contains(RoCompat::QUOTA);
        if !counted && quota.iter().any(|inode| inode.get() != 0) {
            bad.push("inodes of quotas, but no quota feature".into());
        }
        for text in bad {
            let place = "superblock";
            self.findings.add(FindingKind::Superblock, place, text);
        }
    }
}
