//! What changes, and whether it may.

use std::collections::BTreeMap;

use steadfast_ext4_format::ondisk::{InodeNo, QuotaEntry, RawInode};
use steadfast_ext4_format::quota::{QuotaKind, counts};
use steadfast_ext4_format::{Ext4Error, Result};
use steadfast_vfs::FsError;
use zerocopy::FromZeros;

use super::file::{add_quota_entry, quota_entry, quota_info, write_quota_entry};
use super::{Quota, QuotaLimits};
use crate::meta::Txn;
use crate::mounted::Ext4;
use crate::state::QuotaId as Id;
use crate::state::{Inode, Life};

/// Bytes of the unit of limits of space.
const UNIT: u64 = 1024;

/// Change of bytes and inodes.
type Change = (i64, i64);

fn quota_changes(txn: &Txn<'_>) -> BTreeMap<Id, Change> {
    let (sb, block_size) = (txn.superblock(), txn.volume.layout.block_size);
    let mut changes: BTreeMap<Id, Change> = BTreeMap::new();
    for (no, edit) in &txn.inodes {
        if !counts(sb, *no, &edit.raw) {
            continue;
        }
        let mut add = |raw: &RawInode, sign: i64| {
            let bytes = i64::try_from(raw.sectors(block_size) * 512).unwrap_or(i64::MAX);
            for id in txn.volume.quotas.ids(raw) {
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

/// Brings the quota files up to what this transaction does to the inodes.
///
/// # Errors
/// Quota exceeded: somebody would use more than he may. No space for a new entry.
pub(crate) fn store_quotas(txn: &mut Txn<'_>) -> Result<()> {
    if !txn.volume.quotas.is_on() {
        return Ok(());
    }
    for ((kind, id), change) in quota_changes(txn) {
        let no = txn.volume.quotas.files[&kind];
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
        check_limits(txn, no, (kind, id), &mut entry, change)?;
        write_quota_entry(txn, no, place, entry)?;
    }
    Ok(())
}

/// Holds usage against the limits; starts and ends the time of grace.
fn check_limits(
    txn: &Txn<'_>,
    no: InodeNo,
    id: Id,
    entry: &mut QuotaEntry,
    change: Change,
) -> Result<()> {
    let info = quota_info(txn, no)?;
    let now = txn.volume.clock.seconds();
    let promised = txn.quota_promised;
    let delayed = txn.volume.quotas.delayed().get(&id).copied().unwrap_or(0);
    let waiting = if promised { 0 } else { delayed };
    let space = Limit {
        used: entry.space.get() + waiting,
        hard: entry.space_hard.get().saturating_mul(UNIT),
        soft: entry.space_soft.get().saturating_mul(UNIT),
        since: entry.space_time.get(),
    };
    let inodes = Limit {
        used: entry.inodes.get(),
        hard: entry.inodes_hard.get(),
        soft: entry.inodes_soft.get(),
        since: entry.inodes_time.get(),
    };
    let space_fits = change.0 <= 0 || promised || space.allows(now);
    if !space_fits || (change.1 > 0 && !inodes.allows(now)) {
        return Err(FsError::QuotaExceeded.into());
    }
    entry.space_time.set(space.grace(now, info.space_grace.get()));
    entry.inodes_time.set(inodes.grace(now, info.inode_grace.get()));
    Ok(())
}

/// Usage of one kind and its limits, in one unit; 0 is no limit.
struct Limit {
    used: u64,
    hard: u64,
    soft: u64,
    /// When the soft limit becomes a hard one, seconds; 0: it is not exceeded.
    since: u64,
}

impl Limit {
    fn exceeds_soft(&self) -> bool {
        self.soft != 0 && self.used > self.soft
    }

    fn allows(&self, now: u64) -> bool {
        let expired = self.exceeds_soft() && self.since != 0 && now > self.since;
        !(expired || (self.hard != 0 && self.used > self.hard))
    }

    fn grace(&self, now: u64, seconds: u32) -> u64 {
        match self.since {
            _ if !self.exceeds_soft() => 0,
            0 => now + u64::from(seconds),
            since => since,
        }
    }
}

impl Ext4 {
    /// Bytes that may still be reserved for data of this file; `None` for any number.
    pub(crate) fn quota_left(&self, inode: &Inode) -> Result<Option<u64>> {
        let quotas = &self.volume.quotas;
        if !quotas.is_on() {
            return Ok(None);
        }
        let txn = self.volume.look();
        let raw = txn.raw_inode(inode.no)?;
        let (mut left, now) = (None, self.volume.clock.seconds());
        for (kind, id) in quotas.ids(&raw) {
            let Some((_, entry)) = quota_entry(&txn, quotas.files[&kind], id)? else { continue };
            let used = entry.space.get() + quotas.delayed().get(&(kind, id)).unwrap_or(&0);
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

    /// What an id uses and may use.
    ///
    /// # Errors
    /// Unsupported: the file system does not count this kind. Corrupt quota files.
    pub fn quota(&self, kind: QuotaKind, id: u32) -> steadfast_vfs::Result<Quota> {
        self.run(|| {
            let no = self.quota_file(kind)?;
            let entry = quota_entry(&self.volume.look(), no, id)?;
            let entry = entry.map_or_else(QuotaEntry::new_zeroed, |(_, entry)| entry);
            Ok(Quota {
                space: entry.space.get(),
                inodes: entry.inodes.get(),
                limits: QuotaLimits {
                    space_hard_kib: entry.space_hard.get(),
                    space_soft_kib: entry.space_soft.get(),
                    inodes_hard: entry.inodes_hard.get(),
                    inodes_soft: entry.inodes_soft.get(),
                },
            })
        })
    }

    /// Changes what an id may use. What it uses already stays, even if it is more.
    ///
    /// # Errors
    /// As [`quota`](Self::quota); a read-only file system; no space.
    pub fn set_quota(
        &self,
        kind: QuotaKind,
        id: u32,
        limits: QuotaLimits,
    ) -> steadfast_vfs::Result<()> {
        self.run(|| {
            let no = self.quota_file(kind)?;
            let mut txn = self.volume.begin()?;
            let place = match quota_entry(&txn, no, id)? {
                Some((place, _)) => place,
                None => add_quota_entry(&mut txn, no, id)?,
            };
            let mut entry = quota_entry(&txn, no, id)?.map_or_else(QuotaEntry::new_zeroed, |e| e.1);
            entry.id.set(id);
            entry.space_hard.set(limits.space_hard_kib);
            entry.space_soft.set(limits.space_soft_kib);
            entry.inodes_hard.set(limits.inodes_hard);
            entry.inodes_soft.set(limits.inodes_soft);
            check_limits(&txn, no, (kind, id), &mut entry, (0, 0))?;
            write_quota_entry(&mut txn, no, place, entry)?;
            txn.finish().map(drop)
        })
    }

    fn quota_file(&self, kind: QuotaKind) -> Result<InodeNo> {
        let file = self.volume.quotas.files.get(&kind).copied();
        file.ok_or_else(|| Ext4Error::Unsupported {
            what: format!("{kind:?} quota: the file system does not count it"),
        })
    }
}
