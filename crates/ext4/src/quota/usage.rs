//! What a transaction changes of usage, and how much is left.

use std::collections::BTreeMap;

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{InodeNo, QuotaEntry, RawInode};
use steadfast_ext4_format::quota::counts;
use zerocopy::FromZeros;

use super::file::{add_quota_entry, quota_entry, write_quota_entry};
use super::limits::UNIT;
use crate::meta::Txn;
use crate::state::{Life, QuotaId, Quotas};

/// Change of what an id uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// Bytes that have a place.
    pub bytes: i64,
    pub inodes: i64,
    /// Bytes reserved for data of files that change their owner: they go with them, and are no
    /// part of what the quota files count.
    pub reserved: u64,
}

impl Quotas {
    /// Brings the quota files up to what this transaction does to the inodes.
    ///
    /// # Errors
    /// Quota exceeded: somebody would use more than he may. No space for a new entry.
    pub(crate) fn store(&self, txn: &mut Txn<'_>) -> Result<()> {
        for ((kind, id), change) in self.changes(txn) {
            let no = self.files[&kind];
            let (place, mut entry) = match quota_entry(txn, no, id)? {
                Some(found) => found,
                None => {
                    let place = add_quota_entry(txn, no, id)?;
                    let mut entry = QuotaEntry::new_zeroed();
                    entry.id.set(id);
                    (place, entry)
                }
            };
            entry.space.set(entry.space.get().saturating_add_signed(change.bytes));
            entry.inodes.set(entry.inodes.get().saturating_add_signed(change.inodes));
            self.check_limits(txn, no, (kind, id), &mut entry, change)?;
            write_quota_entry(txn, no, place, entry)?;
        }
        Ok(())
    }

    fn changes(&self, txn: &Txn<'_>) -> BTreeMap<QuotaId, Change> {
        let (sb, block_size) = (txn.superblock(), txn.volume.layout.block_size);
        let mut changes: BTreeMap<QuotaId, Change> = BTreeMap::new();
        for (no, edit) in &txn.inodes {
            if !counts(sb, *no, &edit.raw) {
                continue;
            }
            let mut add = |raw: &RawInode, sign: i64| {
                let bytes =
                    i64::try_from(raw.sectors(block_size).saturating_mul(512)).unwrap_or(i64::MAX);
                for id in self.ids(raw) {
                    let change = changes.entry(id).or_default();
                    change.bytes = change.bytes.saturating_add(sign * bytes);
                    change.inodes += sign;
                }
            };
            if edit.life != Life::Begins {
                add(&edit.inode.state().raw, -1);
            }
            if edit.life != Life::Ends {
                add(&edit.raw, 1);
            }
            let moved = self.moved_by(edit, &txn.volume.layout);
            if moved > 0 {
                let before = edit.inode.state().raw.clone();
                let stay: Vec<_> = self.ids(&before).collect();
                for id in self.ids(&edit.raw).filter(|id| !stay.contains(id)) {
                    changes.entry(id).or_default().reserved += moved;
                }
            }
        }
        changes.retain(|_, change| *change != Change::default());
        changes
    }

    /// Bytes that may still be reserved for data of this file; `None` for any number.
    pub(crate) fn left(&self, txn: &Txn<'_>, no: InodeNo) -> Result<Option<u64>> {
        let raw = txn.raw_inode(no)?;
        let (mut left, now) = (None, txn.volume.clock.seconds());
        for (kind, id) in self.ids(&raw) {
            let Some((_, entry)) = quota_entry(txn, self.files[&kind], id)? else { continue };
            let used = entry.space.get().saturating_add(self.delayed((kind, id)));
            let soft = entry.space_soft.get().saturating_mul(UNIT);
            let since = entry.space_time.get();
            let hard = match entry.space_hard.get().saturating_mul(UNIT) {
                _ if soft != 0 && since != 0 && now > since => soft,
                0 => continue,
                hard => hard,
            };
            let here = hard.saturating_sub(used);
            left = Some(left.map_or(here, |l: u64| l.min(here)));
        }
        Ok(left)
    }
}
