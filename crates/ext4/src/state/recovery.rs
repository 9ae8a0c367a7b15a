//! What a mount has recovered.

use std::fmt;

use steadfast_journal::RecoveryReport;

/// What a mount did because the file system had not been unmounted before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountRecovery {
    /// What was replayed from the journal.
    pub log: RecoveryReport,
    /// Files that had no name any more, or were being cut: the mount deletes or cuts them. A
    /// read-only mount does not count them.
    pub orphans: usize,
    /// Nothing was written: a read-only mount has the replayed blocks in memory, and leaves
    /// orphans as they are.
    pub in_memory: bool,
}

impl fmt::Display for MountRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: u64, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let log = &self.log;
        match log.transactions {
            0 => write!(f, "its journal held no whole transaction")?,
            n => write!(
                f,
                "{} replayed from its journal ({})",
                count(n.into(), "transaction"),
                count(log.blocks_replayed, "block")
            )?,
        }
        if log.fast_commits > 0 {
            write!(f, ", {} replayed", count(log.fast_commits.into(), "fast commit"))?;
        }
        if self.in_memory {
            return write!(f, ", in memory only: the mount is read-only");
        }
        if self.orphans > 0 {
            write!(f, ", {} deleted or cut", count(self.orphans as u64, "orphan"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use steadfast_journal::Tid;

    use super::*;

    #[test]
    fn what_was_done_is_described() {
        let log = RecoveryReport {
            was_clean: false,
            transactions: 3,
            range: Some((Tid(5), Tid(7))),
            images: 9,
            blocks_replayed: 1,
            revoked: 0,
            fast_commits: 0,
            next_tid: Tid(8),
            newest_commit: None,
            errno: 0,
            findings: Vec::new(),
        };
        let mut recovery = MountRecovery { log, orphans: 0, in_memory: false };
        let plain = "3 transactions replayed from its journal (1 block)";
        assert_eq!(recovery.to_string(), plain);
        recovery.orphans = 2;
        assert_eq!(recovery.to_string(), format!("{plain}, 2 orphans deleted or cut"));
        recovery.log.fast_commits = 1;
        recovery.in_memory = true;
        let expected = ", 1 fast commit replayed, in memory only: the mount is read-only";
        assert_eq!(recovery.to_string(), format!("{plain}{expected}"));
        recovery.log.transactions = 0;
        recovery.log.fast_commits = 0;
        recovery.in_memory = false;
        recovery.orphans = 0;
        assert_eq!(recovery.to_string(), "its journal held no whole transaction");
    }
}
