//! What quotas are to those who set and read them.

use steadfast_ext4_format::ondisk::{InodeNo, QuotaEntry};
use steadfast_ext4_format::{Ext4Error, Result};
use zerocopy::FromZeros;

use super::file::{add_quota_entry, quota_entry, write_quota_entry};
use super::usage::Change;
use super::{Quota, QuotaKind, QuotaLimits};
use crate::mounted::Ext4;

impl Ext4 {
    /// What an id uses and may use.
    ///
    /// # Errors
    /// Unsupported: the file system does not count this kind. Corrupt quota files.
    pub fn quota(&self, kind: QuotaKind, id: u32) -> steadfast_vfs::Result<Quota> {
        self.run(|| {
            let no = self.quota_file(kind)?;
            let entry = quota_entry(&self.parts.look(), no, id)?;
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
            let mut txn = self.parts.begin()?;
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
            self.parts.quotas.check_limits(&txn, no, (kind, id), &mut entry, Change::default())?;
            write_quota_entry(&mut txn, no, place, entry)?;
            txn.finish().map(drop)
        })
    }

    fn quota_file(&self, kind: QuotaKind) -> Result<InodeNo> {
        let file = self.parts.quotas.files.get(&kind).copied();
        file.ok_or_else(|| Ext4Error::Unsupported {
            what: format!("{kind:?} quota: the file system does not count it"),
        })
    }
}
