//! Limits, and the time of grace.

use steadfast_ext4_format::Result;
use steadfast_ext4_format::ondisk::{InodeNo, QuotaEntry};
use steadfast_vfs::FsError;

use super::file::quota_info;
use super::usage::Change;
use crate::meta::Txn;
use crate::state::{QuotaId, Quotas};

/// Bytes of the unit of limits of space.
pub(super) const UNIT: u64 = 1024;

impl Quotas {
    /// Holds usage against the limits; starts and ends the time of grace.
    pub(super) fn check_limits(
        &self,
        txn: &Txn<'_>,
        no: InodeNo,
        id: QuotaId,
        entry: &mut QuotaEntry,
        change: Change,
    ) -> Result<()> {
        let info = quota_info(txn, no)?;
        let now = txn.volume.clock.seconds();
        // Data that a call takes space for beside promised data is held against the limits. Write-
        // back alone is not: it was when it was promised, and the little metadata it needs never.
        let promised = txn.quota_promised && !txn.quota_asked;
        let waiting = self.delayed(id).saturating_add(change.reserved);
        let space = Limit {
            used: entry.space.get().saturating_add(waiting),
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
        let grows = change.bytes > 0 || change.reserved > 0;
        if (grows && !promised && !space.allows(now)) || (change.inodes > 0 && !inodes.allows(now))
        {
            return Err(FsError::QuotaExceeded.into());
        }
        entry.space_time.set(space.grace(now, info.space_grace.get()));
        entry.inodes_time.set(inodes.grace(now, info.inode_grace.get()));
        Ok(())
    }
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
