//! The block of multiple-mount protection: without it no host may write.

use steadfast_ext4_format::ondisk::Incompat;
use steadfast_ext4_format::{Result, mmp};

use crate::FindingKind;
use crate::checker::Checker;
use crate::finding::as_finding;

impl Checker<'_> {
    pub(super) fn check_mmp(&mut self) -> Result<()> {
        if !self.image.layout.features.incompat.contains(Incompat::MMP) {
            return Ok(());
        }
        let read = mmp::place(&self.image.sb, &self.image.layout).and_then(|block| {
            mmp::decode(&self.image.source.block(block)?, &self.image.layout, block, false)
        });
        if let Err(e) = read {
            let text = as_finding(e)?;
            let place = format_args!("block {}", self.image.sb.mmp_block);
            self.findings.add(FindingKind::Mmp, place, text);
        }
        Ok(())
    }
}
