//! What the running transaction has done since its last fast commit, as far as a fast commit can
//! record it.
//!
//! An operation says that it can be recorded ([`Txn::record`], [`Txn::record_name`]); one that does
//! not say so, or that turns out to have done more than can be recorded, makes the transaction
//! ineligible: it is committed in full. Recorded are data that finds or keeps its place in files,
//! their sizes, times, modes and owners, and new, further and moved names of regular files. Not
//! recorded, other than by the kernel, are final unlinks and truncations: its replay of
//! those cannot be relied on.

use steadfast_ext4_format::RangeSet;
use steadfast_ext4_format::ondisk::{InodeFlags, InodeNo};
use steadfast_vfs::FileType;

use super::txn::Txn;
use crate::state::{Life, MapChange, NameChange, NameRecord, OperationChanges, is_eligible};

impl Txn<'_> {
    /// This transaction does nothing that a fast commit cannot record.
    pub(crate) fn record(&mut self) {
        self.recorded.get_or_insert_default();
    }

    /// This transaction has done something that a replay would not do likewise.
    pub(crate) fn mark_ineligible(&mut self) {
        self.ineligible = true;
    }

    /// As [`record`](Self::record): a name of a regular file has come or gone.
    pub(crate) fn record_name(&mut self, what: NameChange, dir: InodeNo, no: InodeNo, name: &[u8]) {
        let name = name.to_vec();
        self.recorded.get_or_insert_default().push(NameRecord { what, dir, no, name });
    }

    /// Whether fast commits record what transactions do.
    pub(crate) fn may_be_recorded(&self) -> bool {
        self.parts.fast.is_some()
    }

    /// What this transaction, about to be finished, has done; `None` if it cannot be recorded.
    pub(crate) fn take_recorded(&mut self, revokes: bool) -> Option<OperationChanges> {
        let names = self.recorded.take()?;
        self.parts.fast.as_ref()?;
        // Blocks that are freed must not be taken for anything recorded before the transaction has
        // been committed in full; what frees some is not recorded at all.
        if self.ineligible
            || revokes
            || !self.space.freed.is_empty()
            || self.orphan_edit.is_some()
            || self.superblock.is_some()
        {
            return None;
        }
        let mut inodes = Vec::new();
        for (no, edit) in &self.inodes {
            if edit.raw.file_type() == Some(FileType::Directory) {
                // Its names are recorded, if only their very bytes name the files; anything else of
                // it would not be.
                let strange =
                    InodeFlags::CASEFOLD | InodeFlags::ENCRYPTED | InodeFlags::INLINE_DATA;
                let plain = !edit.raw.flags().intersects(strange);
                // One that grows would have to grow in a replay: e2fsck (1.47) does not do that,
                // and kernels (6.18) do not count the new block in the directory's inode.
                let grows = !edit.map_changes.is_empty();
                if names.is_empty() || edit.life != Life::GoesOn || !plain || grows {
                    return None;
                }
                continue;
            }
            let begins = edit.life == Life::Begins;
            let named = names.iter().any(|n| n.no == *no && n.what == NameChange::Created);
            if edit.life == Life::Ends || begins != named || !is_eligible(&edit.raw) {
                return None;
            }
            let mut ranges = RangeSet::new();
            for change in &edit.map_changes {
                let MapChange::Mapped(e) = change else { return None };
                ranges.insert(e.logical.into(), e.end());
            }
            inodes.push((*no, ranges));
        }
        Some(OperationChanges { names, inodes })
    }
}
