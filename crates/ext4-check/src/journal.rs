//! The internal journal: its file has no holes and holds a journal.

use std::sync::Arc;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{Compat, Incompat};
use steadfast_journal::{Log, LogBlock, LogExtent};

use crate::FindingKind;
use crate::checker::Checker;
use crate::finding::as_finding;

const COPY_IS_GOOD: &str = "the superblock's copy of the inode is good: e2fsck restores it";

impl Checker<'_> {
    pub(super) fn check_journal(&mut self, has_overlay: bool) -> Result<()> {
        let features = self.image.layout.features;
        let external = self.image.sb.journal_inode.get() == 0;
        if !features.compat.contains(Compat::HAS_JOURNAL) || external {
            return Ok(());
        }
        let runs = std::mem::take(&mut self.journal_runs);
        let extents = runs
            .iter()
            .map(|(at, start, len)| LogExtent {
                log_block: LogBlock(*at),
                device_block: *start,
                len: *len,
            })
            .collect();
        let log =
            Log::internal(Arc::clone(self.image.device), self.image.layout.block_size, extents);
        let dirty = match log.and_then(|log| log.read_superblock()) {
            Ok(sb) => {
                // On the device: what the log holds may have restored it.
                let place = format!("inode {}", self.image.sb.journal_inode);
                if self.findings.any_at(&place) && self.copy_is_better() {
                    self.bad_journal(&format!("its inode is damaged; {COPY_IS_GOOD}"));
                }
                if sb.nr_users() > 1 {
                    let users = sb.nr_users();
                    self.bad_journal(&format!("it says that {users} file systems use it"));
                }
                sb.start().is_some()
            }
            Err(e) => {
                let mut text = as_finding(e.into())?;
                if self.copy_is_better() {
                    text += &format!("; {COPY_IS_GOOD}");
                }
                self.bad_journal(&text);
                return Ok(());
            }
        };
        // With an overlay the journal's contents are in place although it still says so.
        if dirty && !has_overlay && !features.incompat.contains(Incompat::NEEDS_RECOVERY) {
            self.bad_journal("holds transactions, but the superblock does not need recovery");
        }
        Ok(())
    }

    /// Whether a mount would go by the superblock's copy of the journal's inode.
    fn copy_is_better(&self) -> bool {
        let found = steadfast_ext4_format::journal::find_internal(
            self.image.device,
            &self.image.sb,
            &self.image.layout,
        );
        found.is_ok_and(|found| found.by_backup.is_some())
    }

    fn bad_journal(&mut self, text: &str) {
        let place = format_args!("inode {} (journal)", self.image.sb.journal_inode);
        self.findings.add(FindingKind::Journal, place, text);
    }
}
