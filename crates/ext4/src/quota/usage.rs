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

/// Change of bytes and inodes.
pub(super) type Change = (i64, i64);

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
            entry.space.set(entry.space.get().saturating_add_signed(change.0));
            entry.inodes.set(entry.inodes.get().saturating_add_signed(change.1));
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
                let bytes = i64::try_from(raw.sectors(block_size) * 512).unwrap_or(i64::MAX);
                for id in self.ids(raw) {
                    let change = changes.entry(id).or_default();
                    *change = (change.0.saturating_add(sign * bytes), change.1 + sign);
                }
            };
            if edit.life != Life::Begins {
                add(&edit.inode.state().raw, -1);
            }
            if edit.life != Life::Ends {
                add(&edit.raw, 1);
            }
        }
        changes.retain(|_, change| *change != (0, 0));
        changes
    }

    /// Bytes that may still be reserved for data of this file; `None` for any number.
    pub(crate) fn left(&self, txn: &Txn<'_>, no: InodeNo) -> Result<Option<u64>> {
        let raw = txn.raw_inode(no)?;
        let (mut left, now) = (None, txn.volume.clock.seconds());
        for (kind, id) in self.ids(&raw) {
            let Some((_, entry)) = quota_entry(txn, self.files[&kind], id)? else { continue };
            let used = entry.space.get() + self.delayed().get(&(kind, id)).unwrap_or(&0);
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
